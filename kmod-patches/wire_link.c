// SPDX-License-Identifier: GPL-2.0
/*
 * One direction of a full-duplex Ethernet link
 *
 * Root of a port. Frames wait in eight queues with a byte limit each (tail
 * drop), by the tag's PCP, by skb->priority, or in one queue. One frame at a
 * time is on the wire, which is strict priority without preemption, and store
 * and forward: a frame is handed to the device when its last bit has arrived.
 * For a frame of L = max(64, length + 4 (tag, if accelerated) + 4 (FCS)) bytes
 * whose start is s, with R bit/s, X bytes of overhead (default 0) and a
 * propagation delay of D ns (IEEE 802.3: preamble 8, interframe gap 12 bytes):
 *
 *	s       = max(the wire is free, the frame's arrival)
 *	arrives = s + (8 + L + X)      * 8 / R + D
 *	free    = s + (8 + L + X + 12) * 8 / R
 *
 * When the wire becomes free the highest level that has a frame by then is
 * chosen. s is computed from arrivals, not from the time at which a timer
 * fired, so timer latency never accumulates nor changes the order; it only
 * delays handing over. Times are ns plus a rest in units of 1/R ns (64-bit
 * division with remainder), so there is no rounding error however long the
 * wire is busy; a frame is handed over at its time rounded up to a whole ns.
 *
 * For the same reason a start needs no timer. One fires when the last bit of a
 * frame has left, and what has started by any time is found out before anybody
 * looks at the queues or changes the parameters. A start has a timer of its own
 * where somebody else is told of it: with flow control, if the frame is to be
 * stamped, and if a child is to choose it.
 *
 * A qdisc grafted on class :1 takes the place of the queues and picks the next
 * frame. It does not tell when a frame it held became free to go: after it
 * had nothing to give, the next frame starts when it is taken. Frames on the
 * wire are part of this qdisc's backlog, not of a level's.
 *
 * A GSO packet is split when it comes: frames of a higher level pass between
 * those that it stands for, as with a network card that has a queue for each.
 *
 * With orphan (default) a frame that has left is taken off its socket's
 * account, as a NIC's completion does. Without, the sender of a packet that is
 * queued anywhere in an emulated network is held back by its own socket.
 */

#include <linux/bitops.h>
#include <linux/if_vlan.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/sch_generic.h>

#include "compat.h"
#include "sch_shared.h"
#include "wire.h"

#define CREATE_TRACE_POINTS
#include "wire_trace.h"

#define WIRE_PREAMBLE	8	/* bytes, with the start-of-frame delimiter */
#define WIRE_GAP	12	/* bytes */

#define WIRE_PAUSE_BYTES	64	/* of a MAC control frame */

/* Bytes from the first of the frame to the last of its FCS. */
static u32 wire_frame_len(const struct sk_buff *skb)
{
	u32 trailer = ETH_FCS_LEN + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0);

	return max_t(u32, skb->len + trailer, ETH_ZLEN + ETH_FCS_LEN);
}

/* The level of a frame whose tag stands in it. */
static u32 wire_classify_tag(const struct sk_buff *skb)
{
	struct vlan_hdr tag;
	const struct vlan_hdr *vh = skb_header_pointer(skb, ETH_HLEN, sizeof(tag), &tag);

	return vh ? ntohs(vh->h_vlan_TCI) >> VLAN_PRIO_SHIFT : 0;
}

/*
 * Here and below noinline and __always_inline stand only where the frames that
 * wait for nothing save instructions by them: a sixth of what this qdisc costs
 * them, by all seven (Linux 6.12, gcc 14).
 */
static __always_inline u32 wire_classify(const struct wire_params *p, const struct sk_buff *skb)
{
	if (unlikely(p->classify != TC_WIRE_PCP))
		return p->classify == TC_WIRE_PRIORITY && skb->priority < TC_WIRE_LEVELS ?
		       skb->priority : 0;
	if (skb_vlan_tag_present(skb))
		return skb_vlan_tag_get_prio(skb);
	return eth_type_vlan(skb->protocol) ? wire_classify_tag(skb) : 0;
}

/* t + bytes * 8 / rate, exactly */
static struct wire_time wire_after(struct wire_time t, u32 bytes, u64 rate)
{
	u64 rest;

	t.ns += div64_u64_rem((u64)bytes * 8 * NSEC_PER_SEC + t.rest, rate, &rest);
	t.rest = rest;
	return t;
}

static bool wire_to_be_stamped(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->tx_flags;
}

/*
 * The transmit time stamp, as a NIC takes it: when the frame starts. A veth
 * stamps when it is handed the frame, which here is one serialisation and D
 * later. It finds no socket to tell, unless frames stay on its account.
 */
static void wire_stamp(const struct wire_params *p, struct sk_buff *skb)
{
	skb_tx_timestamp(skb);
	if (!p->orphan)
		skb_shinfo(skb)->tx_flags &= ~SKBTX_ANY_SW_TSTAMP;
}

/* No frame, nor a control frame, overtakes another because the delay was shortened. */
static u64 wire_flight_behind(const struct wire_flight *f, u64 time)
{
	return f->line.tail ? max(time, wire_cb(f->line.tail)->time) : time;
}

/* A frame has started that overtakes none. */
static void wire_flight_append(struct wire_flight *f, struct sk_buff *skb)
{
	if (f->line.tail)
		wire_cb(skb)->time = wire_flight_behind(f, wire_cb(skb)->time);
	__qdisc_enqueue_tail(skb, &f->line);
}

/*
 * The next to be handed over, or NULL. Of two at one time that in the line has
 * started first: the other came when the line went further than that.
 */
static struct sk_buff *wire_flight_next(const struct wire_flight *f)
{
	struct sk_buff *skb = f->line.head;
	struct rb_node *node;

	if (likely(RB_EMPTY_ROOT(&f->ahead)))
		return skb;
	node = rb_first(&f->ahead);
	return wire_cb(rb_to_skb(node))->time < wire_cb(skb)->time ? rb_to_skb(node) : skb;
}

/* Take out skb, which is that of wire_flight_next(). */
static void wire_flight_take(struct wire_flight *f, struct sk_buff *skb, struct net_device *dev)
{
	if (likely(skb == f->line.head)) {
		__qdisc_dequeue_head(&f->line);
		return;
	}
	wire_flight_cut(f, skb);
	skb->dev = dev;		/* the node lay over this too */
}

/* Put a frame that has come behind those of its level. False: that is full. */
static bool wire_queues_add(struct wire_queues *w, const struct wire_params *params,
			    struct Qdisc *sch, struct sk_buff *skb)
{
	const struct wire_cb *cb = wire_cb(skb);
	struct wire_level *l = &w->level[cb->level];

	if (unlikely(l->backlog + cb->len > params->limit)) {
		l->drops++;
		return false;
	}
	__qdisc_enqueue_tail(skb, &l->queue);
	__set_bit(cb->level, &w->backlogged);
	l->backlog += cb->len;
	l->max_backlog = max(l->max_backlog, l->backlog);
	if (static_branch_unlikely(&wire_pauses))
		wire_pause_charge(sch, skb);
	return true;
}

/*
 * The highest level with a frame by the time the wire is free; if none, the
 * first to come. There is one that is not paused; start: when it would start.
 */
static unsigned long wire_queues_first(const struct wire_queues *w, struct wire_time free,
				       struct wire_time *start)
{
	u64 by = wire_ceil(free), first = U64_MAX;
	unsigned long ready = w->backlogged & ~w->paused, best = 0;

	while (ready) {
		unsigned long p = __fls(ready);
		u64 arrival = wire_cb(w->level[p].queue.head)->time;

		if (arrival < first) {
			first = arrival;
			best = p;
			if (arrival <= by)
				break;
		}
		ready &= ~BIT(p);
	}
	*start = wire_not_before(free, first);
	return best;
}

static struct sk_buff *wire_queues_take(struct wire_queues *w, unsigned long p, struct Qdisc *sch,
					u64 time)
{
	struct wire_level *l = &w->level[p];
	struct sk_buff *skb = __qdisc_dequeue_head(&l->queue);

	if (!l->queue.head)
		__clear_bit(p, &w->backlogged);
	l->backlog -= wire_cb(skb)->len;
	l->max_wait = max(l->max_wait, time - wire_cb(skb)->time);
	if (static_branch_unlikely(&wire_pauses))
		wire_pause_release(sch, skb, time);
	return skb;
}

void wire_queues_purge(struct wire_queues *w, struct Qdisc *sch, u64 now)
{
	const struct sk_buff *skb;
	int p;

	for (p = 0; p < TC_WIRE_LEVELS; p++) {
		for (skb = w->level[p].queue.head; skb; skb = skb->next)
			wire_pause_release(sch, skb, now);
		__qdisc_reset_queue(&w->level[p].queue);
		w->level[p].backlog = 0;
	}
	w->backlogged = 0;
}

/* From start on, so many bytes and the gap; when the last of them is at the other end. */
static u64 wire_occupy(struct wire_sched *q, struct wire_time start, u32 bytes)
{
	q->free = wire_after(start, bytes + WIRE_GAP, q->params.rate);
	return wire_ceil(wire_after(start, bytes, q->params.rate)) + q->params.delay;
}

/* Bytes from the preamble to the last of the FCS. */
static u32 wire_sent_len(const struct wire_sched *q, u32 len)
{
	return len + WIRE_PREAMBLE + q->params.overhead;
}

static __always_inline void wire_start(struct Qdisc *sch, struct sk_buff *skb,
				       struct wire_time start)
{
	struct wire_sched *q = qdisc_priv(sch);
	struct wire_cb *cb = wire_cb(skb);
	struct wire_level *l = &q->queues.level[cb->level];
	u32 len = wire_sent_len(q, cb->len);
	u64 arrival = cb->time;

	cb->time = wire_occupy(q, start, len);
	/* Before it is put among those in flight, whose tree lies over skb->dev */
	if (unlikely(wire_to_be_stamped(skb)))
		wire_stamp(&q->params, skb);
	if (q->params.quantiles) {
		wire_jitter_add(&q->jitter, &q->params, skb);
		wire_flight_insert(&q->flight, skb);
	} else {
		wire_flight_append(&q->flight, skb);
	}
	l->packets++;
	l->bytes += len + WIRE_GAP;
	trace_wire_frame(qdisc_dev(sch), cb->level, cb->len, arrival, wire_ceil(start), cb->time);
}

/* Start the control frame that is due, if it was by that time; false: none was. */
static bool wire_start_control(struct Qdisc *sch, u64 by, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 since, time;

	if (!wire_pause_due(&q->pause, qdisc_dev(sch), now, &since) || since > by)
		return false;
	time = wire_occupy(q, wire_not_before(q->free, since),
			   WIRE_PREAMBLE + WIRE_PAUSE_BYTES + q->params.overhead);
	if (!q->params.quantiles)
		time = wire_flight_behind(&q->flight, time);
	wire_pause_send(&q->pause, qdisc_dev(sch), by, time);
	return true;
}

/* Whether all that waits is of levels that are paused. A child may have frames of any. */
static bool wire_is_held(const struct wire_sched *q)
{
	return q->queues.backlogged ? !(q->queues.backlogged & ~q->queues.paused) :
				      q->queues.paused;
}

/* With flow control: whether no frame may start, at least until another control frame arrives. */
static bool wire_holds(struct Qdisc *sch, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 next = wire_pause_next(&q->pause);

	if (!wire_is_held(q))
		return false;
	q->pause.again = next <= now && wire_pause_obey(q, qdisc_dev(sch), next, now);
	return true;
}

/* With flow control: whether another is to be chosen for that time, which is not after now. */
static bool wire_defers(struct Qdisc *sch, u64 time, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);

	q->pause.again = wire_start_control(sch, time, now) ||
			 wire_pause_obey(q, qdisc_dev(sch), time, now);
	return q->pause.again;
}

static struct sk_buff *wire_pick_queued(struct Qdisc *sch, u64 now, struct wire_time *start)
{
	struct wire_sched *q = qdisc_priv(sch);
	unsigned long p;

	if (static_branch_unlikely(&wire_pauses) && wire_holds(sch, now))
		return NULL;
	p = wire_queues_first(&q->queues, q->free, start);
	if (static_branch_unlikely(&wire_pauses) && wire_defers(sch, wire_ceil(*start), now))
		return NULL;
	return wire_queues_take(&q->queues, p, sch, wire_ceil(*start));
}

static struct sk_buff *wire_pick_child(struct Qdisc *sch, u64 now, struct wire_time *start)
{
	struct wire_sched *q = qdisc_priv(sch);
	struct sk_buff *skb;

	if (static_branch_unlikely(&wire_pauses) && wire_holds(sch, now))
		return NULL;
	*start = wire_not_before(q->free, q->child_held ? now : q->child_since);
	if (static_branch_unlikely(&wire_pauses) && wire_defers(sch, wire_ceil(*start), now))
		return NULL;
	skb = q->child->dequeue(q->child);
	q->child_held = !skb;
	if (skb)
		*wire_cb(skb) = (struct wire_cb) {
			.time = wire_ceil(*start),	/* when it came the child does not tell */
			.level = wire_classify(&q->params, skb),
			.len = wire_frame_len(skb),
		};
	return skb;
}

/*
 * noop_qdisc is every device's: grafting one writes its length while another
 * wire has its own lock only.
 */
static bool wire_child_waits(const struct wire_sched *q)
{
	return q->child != &noop_qdisc && q->child->q.qlen;
}

/* Start every frame whose start is not after now. */
static void wire_advance(struct Qdisc *sch, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);

	while (wire_ceil(q->free) <= now) {
		struct wire_time start;
		struct sk_buff *skb;

		if (q->queues.backlogged)
			skb = wire_pick_queued(sch, now, &start);
		else if (wire_child_waits(q))
			skb = wire_pick_child(sch, now, &start);
		else
			return;
		if (skb)
			wire_start(sch, skb, start);
		else if (!static_branch_unlikely(&wire_pauses) || !q->pause.again)
			return;
	}
}

/*
 * Starts have no timer, unless others are told of them: start what has by now,
 * for whoever is about to look at the queues or to change the parameters.
 */
void wire_settle(struct Qdisc *sch, u64 now)
{
	const struct wire_sched *q = qdisc_priv(sch);

	if (q->queues.backlogged && !static_branch_unlikely(&wire_pauses))
		wire_advance(sch, now);
}

/* The same for a frame that comes now. True: it starts now, and passes by the queues. */
static __always_inline bool wire_starts_now(struct Qdisc *sch, u64 now)
{
	const struct wire_sched *q = qdisc_priv(sch);

	wire_settle(sch, now);
	return !q->queues.backlogged && wire_ceil(q->free) <= now &&
	       !static_branch_unlikely(&wire_pauses);
}

static int wire_enqueue_child(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct wire_sched *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	bool empty;
	int ret;

	/* what has started before this frame came, though the timer is late */
	if (wire_child_waits(q))
		wire_advance(sch, ktime_get_ns());
	empty = !q->child->q.qlen;
	ret = qdisc_enqueue(skb, q->child, to_free);
	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	if (empty) {
		q->child_since = ktime_get_ns();
		q->child_held = false;
	}
	qstats_backlog_add(sch, len);
	qdisc_qlen_inc(sch);
	return NET_XMIT_SUCCESS;
}

static __always_inline int wire_enqueue_frame(struct sk_buff *skb, struct Qdisc *sch,
					      struct sk_buff **to_free)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 now;

	if (q->child != &noop_qdisc)
		return wire_enqueue_child(skb, sch, to_free);
	now = ktime_get_ns();
	*wire_cb(skb) = (struct wire_cb) {
		.time = now,
		.level = wire_classify(&q->params, skb),
		.len = wire_frame_len(skb),
	};
	if (wire_starts_now(sch, now))
		wire_start(sch, skb, wire_not_before(q->free, now));
	else if (!wire_queues_add(&q->queues, &q->params, sch, skb))
		return compat_drop_at_limit(skb, sch, to_free);
	qdisc_qstats_backlog_inc(sch, skb);
	qdisc_qlen_inc(sch);
	return NET_XMIT_SUCCESS;
}

static noinline int wire_enqueue_gso(struct sk_buff *skb, struct Qdisc *sch,
				     struct sk_buff **to_free)
{
	int ret = split_gso(skb, sch, wire_enqueue_frame, to_free);

	return ret < 0 ? qdisc_drop(skb, sch, to_free) : ret;
}

int wire_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	if (unlikely(skb_is_gso(skb)))
		return wire_enqueue_gso(skb, sch, to_free);
	return wire_enqueue_frame(skb, sch, to_free);
}

/* Control frames without any other, after wire_advance(); wake: when to look again. */
static u64 wire_advance_control(struct Qdisc *sch, u64 now, u64 wake)
{
	struct wire_sched *q = qdisc_priv(sch);
	struct net_device *dev = qdisc_dev(sch);
	u64 since;

	smp_mb();	/* who kicks us has written before */
	while (wire_ceil(q->free) <= now && wire_start_control(sch, now, now))
		wake = max(wake, wire_ceil(q->free));
	/* a child may have woken us while it was paused, and does not again */
	if (wire_pause_obey(q, dev, now, now))
		wake = min(wake, wire_ceil(q->free));
	if (wire_is_held(q))
		wake = U64_MAX;
	if (wire_pause_due(&q->pause, dev, now, &since))
		wake = min(wake, max(wire_ceil(q->free), since));
	return min(wake, wire_pause_next(&q->pause));
}

/*
 * Whether a child is to be asked for a frame when the wire is free. One that had
 * nothing to give wakes us itself, but it may do so while a control frame is on
 * the wire, and not again: so that counts only as long as the wire is free.
 */
static bool wire_asks_child(const struct wire_sched *q, u64 now)
{
	return wire_child_waits(q) && !(q->child_held && wire_ceil(q->free) <= now);
}

/*
 * When to look again for the sake of what waits: when the last bit of the next
 * frame has left, if none comes before that starts, for then we are asked again.
 */
static u64 wire_next(const struct wire_sched *q, u64 now)
{
	const struct sk_buff *skb;

	if (!q->queues.backlogged)
		return wire_asks_child(q, now) ? wire_ceil(q->free) : U64_MAX;
	skb = q->queues.level[__fls(q->queues.backlogged)].queue.head;
	if (static_branch_unlikely(&wire_pauses) || unlikely(wire_to_be_stamped(skb)))
		return wire_ceil(q->free);
	return wire_ceil(wire_after(q->free, wire_sent_len(q, wire_cb(skb)->len), q->params.rate));
}

/* Nothing is to be handed over yet; first is what will be if nothing comes before it, or NULL. */
static noinline void wire_sleep(struct Qdisc *sch, const struct sk_buff *first, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 wake = wire_next(q, now);

	if (static_branch_unlikely(&wire_pauses))
		wake = wire_advance_control(sch, now, wake);
	if (first)
		wake = min(wake, wire_cb(first)->time);
	if (wake != U64_MAX)
		qdisc_watchdog_schedule_ns(&q->watchdog, wake);
}

static noinline struct sk_buff *wire_dequeue_frame(struct Qdisc *sch)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns(), late;
	struct wire_level *l;
	struct sk_buff *skb;

	if (q->queues.backlogged || q->child != &noop_qdisc)
		wire_advance(sch, now);
	skb = wire_flight_next(&q->flight);
	if (!skb || wire_cb(skb)->time > now) {
		wire_sleep(sch, skb, now);
		return NULL;
	}
	wire_flight_take(&q->flight, skb, qdisc_dev(sch));
	l = &q->queues.level[wire_cb(skb)->level];
	late = now - wire_cb(skb)->time;
	if (late > l->max_late)
		l->max_late = late;
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_qlen_dec(sch);
	qdisc_bstats_update(sch, skb);
	if (q->params.orphan)
		skb_orphan(skb);
	return skb;
}

struct sk_buff *wire_dequeue(struct Qdisc *sch)
{
	if (!sch->q.qlen && !static_branch_unlikely(&wire_pauses))
		return NULL;	/* nothing waits, and nothing is on the wire */
	return wire_dequeue_frame(sch);
}
