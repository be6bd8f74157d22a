// SPDX-License-Identifier: GPL-2.0
/*
 * One direction of a full-duplex Ethernet link
 *
 * The root qdisc of a port. Frames wait in eight queues by the PCP of their tag or by
 * skb->priority, or in a single queue; each queue has a byte limit (tail drop). One
 * frame at a time is on the wire, in strict priority order without preemption. The
 * wire is store and forward: a frame is handed to the device once its last bit has
 * arrived. For a frame of L = max(64, length + 4 (tag, if accelerated) + 4 (FCS))
 * bytes that starts at s, with R bit/s, X bytes of overhead (default 0) and a
 * propagation delay of D ns (IEEE 802.3: preamble 8, interframe gap 12 bytes):
 *
 *	s       = max(time the wire becomes free, arrival of the frame)
 *	arrives = s + (8 + L + X)      * 8 / R + D
 *	free    = s + (8 + L + X + 12) * 8 / R
 *
 * When the wire becomes free, the highest level that has a frame by then sends. s is
 * computed from arrivals, not from the time at which a timer fired, so timer latency
 * neither accumulates nor reorders; it only delays the handover. Times are ns plus a
 * rest in units of 1/R ns (64-bit division with remainder), so there is no rounding
 * error however long the wire is busy. A frame is handed over at its time rounded up
 * to a whole ns.
 *
 * For the same reason a start needs no timer. The timer fires when the last bit of a
 * frame has left; wire_settle() starts frames retroactively before anything looks at
 * the queues or changes the parameters. A start needs its own timer only where others
 * observe it: with flow control, if the frame is to be time-stamped, or if a child
 * chooses it.
 *
 * A qdisc grafted to class :1 replaces the queues and picks the next frame. It does
 * not report when a frame that it held back became eligible, so after it had nothing
 * to give, the next frame starts when it is dequeued. Frames on the wire count in the
 * backlog of this qdisc, not in that of a level.
 *
 * A GSO packet is split on arrival, so that frames of a higher level pass between its
 * segments, as on a network card with a queue per level.
 *
 * With orphan (the default), a frame that has left is no longer charged to its socket,
 * like on a NIC's completion. Without it, a packet queued anywhere in the emulated
 * network holds back its sender by the socket's send buffer. A frame that the wire
 * keeps for longer than a NIC waits with its completions is not charged from its start
 * on, or TCP's limit on what its device may hold would bound its rate on a long wire.
 */

#include <linux/bitops.h>
#include <linux/if_vlan.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
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

#define WIRE_COMPLETES	(50 * NSEC_PER_USEC)	/* tx-usecs of a NIC; ns */

#define WIRE_PAUSE_BYTES	64	/* size of a MAC control frame */

static unsigned int wire_window_ns = NSEC_PER_MSEC;
module_param_named(window_ns, wire_window_ns, uint, 0644);
MODULE_PARM_DESC(window_ns, "Window of the trace event wire_queue, in ns");

/* Return L: the bytes of the frame, including FCS. */
static u32 wire_frame_len(const struct sk_buff *skb)
{
	u32 trailer = ETH_FCS_LEN + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0);

	return max_t(u32, skb->len + trailer, ETH_ZLEN + ETH_FCS_LEN);
}

/* Return the level of a frame with an inline tag. */
static u32 wire_classify_tag(const struct sk_buff *skb)
{
	struct vlan_hdr tag;
	const struct vlan_hdr *vh = skb_header_pointer(skb, ETH_HLEN, sizeof(tag), &tag);

	return vh ? ntohs(vh->h_vlan_TCI) >> VLAN_PRIO_SHIFT : 0;
}

/*
 * noinline and __always_inline are used here and below only where they save
 * instructions for frames that do not wait: all seven together, a sixth of the
 * cost of this qdisc (Linux 6.12, gcc 14).
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

/* Return t + bytes * 8 / rate, exactly. */
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
 * Take the transmit time stamp as a NIC does, when the frame starts. veth takes it
 * at the handover, later by the serialisation time and D. Without orphan the frame
 * still has its socket then, so clear the flag to get one stamp only.
 */
static void wire_stamp(const struct wire_params *p, struct sk_buff *skb)
{
	skb_tx_timestamp(skb);
	if (!p->orphan)
		skb_shinfo(skb)->tx_flags &= ~SKBTX_ANY_SW_TSTAMP;
}

/* Keep frames and control frames in order when the delay has been shortened. */
static u64 wire_flight_behind(const struct wire_flight *f, u64 time)
{
	return f->line.tail ? max(time, wire_cb(f->line.tail)->time) : time;
}

/* Append a frame that has started; it overtakes no other. */
static void wire_flight_append(struct wire_flight *f, struct sk_buff *skb)
{
	if (f->line.tail)
		wire_cb(skb)->time = wire_flight_behind(f, wire_cb(skb)->time);
	__qdisc_enqueue_tail(skb, &f->line);
}

/*
 * Return the next frame to hand over, or NULL. On a tie, the one in the list started
 * first: the other was put into the tree when the list already extended beyond it.
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

/* Remove skb, the frame returned by wire_flight_next(). */
static void wire_flight_take(struct wire_flight *f, struct sk_buff *skb, struct net_device *dev)
{
	if (likely(skb == f->line.head)) {
		__qdisc_dequeue_head(&f->line);
		return;
	}
	wire_flight_remove(f, skb);
	skb->dev = dev;		/* rbnode shares a union with this too */
}

/*
 * Report the window that was current until @time, if that is in another one. To be
 * called before the queues change, and only if the event is enabled.
 */
void wire_trace_window(struct wire_queues *w, const struct net_device *dev, u64 time)
{
	u64 window = div_u64(time, max(READ_ONCE(wire_window_ns), 1U));
	int p;

	if (window == w->window)
		return;
	if (w->waited)
		trace_wire_queue(dev, w);
	w->window = window;
	w->waited = w->backlogged;
	for (p = 0; p < TC_WIRE_LEVELS; p++)
		w->level[p].peak = w->level[p].backlog;
}

/* Append a frame to the queue of its level; return false if that is full. */
static bool wire_queues_add(struct wire_queues *w, const struct wire_params *params,
			    struct Qdisc *sch, struct sk_buff *skb)
{
	const struct wire_cb *cb = wire_cb(skb);
	struct wire_level *l = &w->level[cb->level];

	if (trace_wire_queue_enabled())
		wire_trace_window(w, qdisc_dev(sch), cb->time);
	if (unlikely(l->backlog + cb->len > params->limit)) {
		l->drops++;
		trace_wire_drop(qdisc_dev(sch), skb, cb->level, cb->len, cb->time, 0, 0);
		return false;
	}
	__qdisc_enqueue_tail(skb, &l->queue);
	__set_bit(cb->level, &w->backlogged);
	l->backlog += cb->len;
	l->max_backlog = max(l->max_backlog, l->backlog);
	if (trace_wire_queue_enabled()) {
		w->waited = true;
		l->peak = max(l->peak, l->backlog);
	}
	if (static_branch_unlikely(&wire_pauses))
		wire_pause_charge(sch, skb);
	return true;
}

/*
 * Return the highest level that has a frame by the time the wire is free, or else the
 * level whose frame came first; set *start to when that frame starts. At least one
 * backlogged level must not be paused.
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
	struct sk_buff *skb;

	if (trace_wire_queue_enabled())
		wire_trace_window(w, qdisc_dev(sch), time);
	skb = __qdisc_dequeue_head(&l->queue);
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

/* Occupy the wire from start for bytes and the gap; return the arrival of the last byte. */
static u64 wire_occupy(struct wire_sched *q, struct wire_time start, u32 bytes)
{
	q->free = wire_after(start, bytes + WIRE_GAP, q->params.rate);
	return wire_ceil(wire_after(start, bytes, q->params.rate)) + q->params.delay;
}

/* Return the bytes from preamble to FCS. */
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
	/* before wire_flight_insert(), which may overwrite skb->dev by rbnode */
	if (unlikely(wire_to_be_stamped(skb)))
		wire_stamp(&q->params, skb);
	if (q->params.quantiles) {
		wire_jitter_add(&q->jitter, &q->params, skb);
		wire_flight_insert(&q->flight, skb);
	} else {
		wire_flight_append(&q->flight, skb);
	}
	if (unlikely(cb->time > q->free.ns + WIRE_COMPLETES) && q->params.orphan)
		skb_orphan(skb);
	l->packets++;
	l->bytes += len + WIRE_GAP;
	trace_wire_frame(qdisc_dev(sch), skb, cb->level, cb->len, arrival, wire_ceil(start),
			 cb->time);
}

/* Start the control frame that was due at @by; return false if there is none. */
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

/* True if only paused levels have frames. A child may have frames of any level. */
static bool wire_is_held(const struct wire_sched *q)
{
	return q->queues.backlogged ? !(q->queues.backlogged & ~q->queues.paused) :
				      q->queues.paused;
}

/* With flow control: true if no frame may start before another control frame arrives. */
static bool wire_holds(struct Qdisc *sch, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 next = wire_pause_next(&q->pause);

	if (!wire_is_held(q))
		return false;
	q->pause.retry = next <= now && wire_pause_obey(q, qdisc_dev(sch), next, now);
	return true;
}

/* With flow control: true if a control frame at @time <= now changes the choice of a frame. */
static bool wire_defers(struct Qdisc *sch, u64 time, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);

	q->pause.retry = wire_start_control(sch, time, now) ||
			 wire_pause_obey(q, qdisc_dev(sch), time, now);
	return q->pause.retry;
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
	*start = wire_not_before(q->free, q->child_blocked ? now : q->child_since);
	if (static_branch_unlikely(&wire_pauses) && wire_defers(sch, wire_ceil(*start), now))
		return NULL;
	skb = q->child->dequeue(q->child);
	q->child_blocked = !skb;
	if (skb)
		*wire_cb(skb) = (struct wire_cb) {
			.time = wire_ceil(*start),	/* the child does not report arrivals */
			.level = wire_classify(&q->params, skb),
			.len = wire_frame_len(skb),
		};
	return skb;
}

/*
 * Do not read the length of noop_qdisc: all devices share it, so a graft elsewhere
 * may write it while we hold only our own lock.
 */
static bool wire_child_waits(const struct wire_sched *q)
{
	return q->child != &noop_qdisc && q->child->q.qlen;
}

/* Start all frames that are due to start by now. */
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
		else if (!static_branch_unlikely(&wire_pauses) || !q->pause.retry)
			return;
	}
}

/*
 * Starts have no timer, unless others observe them. Catch up before anything looks at
 * the queues or changes the parameters.
 */
void wire_settle(struct Qdisc *sch, u64 now)
{
	const struct wire_sched *q = qdisc_priv(sch);

	if (q->queues.backlogged && !static_branch_unlikely(&wire_pauses))
		wire_advance(sch, now);
}

/* Catch up for a frame that arrives now; true if it starts at once and skips the queues. */
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

	/* the timer may be late: start what was due before this frame arrived */
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
		q->child_blocked = false;
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

/* Send and obey control frames after wire_advance(); return when to wake up. */
static u64 wire_advance_control(struct Qdisc *sch, u64 now, u64 wake)
{
	struct wire_sched *q = qdisc_priv(sch);
	struct net_device *dev = qdisc_dev(sch);
	u64 since;

	smp_mb();	/* see what was written before wire_kick() */
	while (wire_ceil(q->free) <= now && wire_start_control(sch, now, now))
		wake = max(wake, wire_ceil(q->free));
	/* a child that woke us while paused does not wake us again */
	if (wire_pause_obey(q, dev, now, now))
		wake = min(wake, wire_ceil(q->free));
	if (wire_is_held(q))
		wake = U64_MAX;
	if (wire_pause_due(&q->pause, dev, now, &since))
		wake = min(wake, max(wire_ceil(q->free), since));
	return min(wake, wire_pause_next(&q->pause));
}

/*
 * True if the child must be asked for a frame once the wire is free. A child that had
 * nothing to give wakes us itself, but only once, and perhaps while a control frame
 * is on the wire: so rely on it only while the wire is free.
 */
static bool wire_asks_child(const struct wire_sched *q, u64 now)
{
	return wire_child_waits(q) && !(q->child_blocked && wire_ceil(q->free) <= now);
}

/*
 * Return when to wake up for waiting frames: when the last bit of the next one has
 * left. An arrival before that frame starts calls us again anyway.
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

/* Nothing to hand over yet: set the timer. first: the next frame in flight, or NULL. */
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
		return NULL;	/* qlen includes the frames on the wire */
	return wire_dequeue_frame(sch);
}
