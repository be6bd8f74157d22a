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
 * Jitter is drawn for each frame and added to its handing over: wire_jitter.h.
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
 *
 * Every wire obeys pauses, and one with thresholds sends them: wire_pause.h.
 */

#include <linux/ktime.h>
#include <linux/skbuff.h>

#include "compat.h"
#include "split.h"
#include "wire_sched.h"

#define CREATE_TRACE_POINTS
#include "wire_trace.h"

#define WIRE_CLASS	1	/* minor number of the only class */

static struct Qdisc_ops wire_ops;

static struct wire_pause *wire_pause_of(const struct net_device *dev)
{
	struct Qdisc *root;

	if (!dev)
		return NULL;
	root = rcu_dereference(netdev_get_tx_queue(dev, 0)->qdisc);
	return root->ops == &wire_ops ? &((struct wire_sched *)qdisc_priv(root))->pause : NULL;
}

static int wire_enqueue_child(struct sk_buff *skb, struct Qdisc *sch,
			      struct sk_buff **to_free)
{
	struct wire_sched *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	bool empty = !q->child->q.qlen;
	int ret;

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
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static int wire_enqueue_frame(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct wire_sched *q = qdisc_priv(sch);

	if (q->child != &noop_qdisc)
		return wire_enqueue_child(skb, sch, to_free);
	if (!wire_queues_add(&q->queues, &q->params, sch, skb))
		return qdisc_drop(skb, sch, to_free);
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static noinline int wire_enqueue_gso(struct sk_buff *skb, struct Qdisc *sch,
				     struct sk_buff **to_free)
{
	int ret = split_gso(skb, sch, wire_enqueue_frame, to_free);

	return ret < 0 ? qdisc_drop(skb, sch, to_free) : ret;
}

static int wire_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	if (unlikely(skb_is_gso(skb)))
		return wire_enqueue_gso(skb, sch, to_free);
	return wire_enqueue_frame(skb, sch, to_free);
}

static void wire_start(struct wire_sched *q, struct net_device *dev, struct sk_buff *skb,
		       struct wire_time start)
{
	struct wire_cb *cb = wire_cb(skb);
	struct wire_level *l = &q->queues.level[cb->level];
	u64 arrival = cb->time, begin = wire_ceil(start);
	u32 len = cb->len + WIRE_PREAMBLE + q->params.overhead;

	wire_stamp(&q->params, skb);
	cb->time = wire_occupy(q, start, len);
	if (q->params.quantiles)
		cb->time = wire_jitter_add(&q->jitter, &q->params, skb, cb->time);
	wire_flight_add(&q->flight, skb);
	l->packets++;
	l->bytes += len + WIRE_GAP;
	l->max_wait = max(l->max_wait, begin - arrival);
	trace_wire_frame(dev, cb->level, cb->len, arrival, begin, cb->time);
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
	wire_pause_send(&q->pause, qdisc_dev(sch), time);
	return true;
}

/* With flow control: whether a frame may not start at that time, which is not after now. */
static noinline bool wire_defers(struct Qdisc *sch, u64 time, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);

	q->pause.again = wire_start_control(sch, time, now);
	if (q->pause.again)
		return true;
	if (wire_pause_holds(&q->pause, qdisc_dev(sch), time, now, &q->free))
		return true;
	q->pause.again = wire_ceil(q->free) > time;	/* it was held: choose anew */
	return q->pause.again;
}

static struct sk_buff *wire_pick_queued(struct Qdisc *sch, u64 now, struct wire_time *start)
{
	struct wire_sched *q = qdisc_priv(sch);
	unsigned long p = wire_queues_first(&q->queues, q->free, start);

	if (static_branch_unlikely(&wire_pauses) && wire_defers(sch, wire_ceil(*start), now))
		return NULL;
	return wire_queues_take(&q->queues, p, sch, wire_ceil(*start));
}

static struct sk_buff *wire_pick_child(struct Qdisc *sch, u64 now, struct wire_time *start)
{
	struct wire_sched *q = qdisc_priv(sch);
	struct sk_buff *skb;

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

/* Start every frame whose start is not after now. */
static void wire_advance(struct Qdisc *sch, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);

	while (wire_ceil(q->free) <= now) {
		struct wire_time start;
		struct sk_buff *skb;

		if (q->queues.backlogged)
			skb = wire_pick_queued(sch, now, &start);
		else if (q->child->q.qlen)
			skb = wire_pick_child(sch, now, &start);
		else
			return;
		if (skb)
			wire_start(q, qdisc_dev(sch), skb, start);
		else if (!q->pause.again)
			return;
	}
}

/* Control frames without any other, after wire_advance(); wake: when to look again. */
static noinline u64 wire_advance_control(struct Qdisc *sch, u64 now, u64 wake)
{
	struct wire_sched *q = qdisc_priv(sch);
	struct net_device *dev = qdisc_dev(sch);
	u64 since;

	smp_mb();	/* who kicks us has written before */
	while (wire_ceil(q->free) <= now && wire_start_control(sch, now, now))
		wake = max(wake, wire_ceil(q->free));
	wire_pause_obey(&q->pause, dev, now, now, &q->free);
	if (q->pause.paused)
		wake = U64_MAX;
	if (wire_pause_due(&q->pause, dev, now, &since))
		wake = min(wake, max(wire_ceil(q->free), since));
	return min(wake, wire_pause_next(&q->pause));
}

/*
 * Whether frames wait for the wire to be free. A child that had nothing to give
 * wakes us itself, but it may do so while a control frame is on the wire, and
 * not again: so that counts only as long as the wire is free.
 */
static bool wire_waits(const struct wire_sched *q, u64 now)
{
	if (q->queues.backlogged)
		return true;
	return q->child->q.qlen && !(q->child_held && wire_ceil(q->free) <= now);
}

static struct sk_buff *wire_dequeue(struct Qdisc *sch)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns(), wake = U64_MAX, next = U64_MAX;
	struct sk_buff *skb;

	wire_advance(sch, now);
	skb = wire_flight_next(&q->flight);
	if (skb) {
		wake = wire_cb(skb)->time;
		if (wake <= now) {
			struct wire_level *l = &q->queues.level[wire_cb(skb)->level];

			l->max_late = max(l->max_late, now - wake);
			wire_flight_take(&q->flight, skb, qdisc_dev(sch));
			qdisc_qstats_backlog_dec(sch, skb);
			sch->q.qlen--;
			qdisc_bstats_update(sch, skb);
			if (q->params.orphan)
				skb_orphan(skb);
			return skb;
		}
	}
	if (wire_waits(q, now))
		next = wire_ceil(q->free);
	if (static_branch_unlikely(&wire_pauses))
		next = wire_advance_control(sch, now, next);
	wake = min(wake, next);
	if (wake != U64_MAX)
		qdisc_watchdog_schedule_ns(&q->watchdog, wake);
	return NULL;
}

static int wire_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct wire_sched *q = qdisc_priv(sch);
	struct wire_params p = q->params;
	int err = wire_params_parse(&p, opt, extack);

	if (err)
		return err;
	if (p.xoff && sch->parent != TC_H_ROOT)
		return refuse(extack, "Only the wire at the root of a device can send pauses");
	if (p.xoff)
		static_branch_enable(&wire_pauses);
	sch_tree_lock(sch);
	if (p.rate != q->params.rate)	/* the rest is counted in units of the rate */
		q->free = (struct wire_time) { .ns = wire_ceil(q->free) };
	if (p.xoff != q->params.xoff || p.xon != q->params.xon)
		wire_pause_change(&q->pause, qdisc_dev(sch), p.xoff, p.xon);
	if (p.seed != q->params.seed || p.quantiles != q->params.quantiles)
		prandom_seed_state(&q->jitter.rnd, p.seed);
	q->params = p;
	sch_tree_unlock(sch);
	return 0;
}

static int wire_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct wire_sched *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	q->child = &noop_qdisc;
	wire_pause_renew(&q->pause);
	if (qdisc_under_mq(sch))
		return refuse(extack, "Below a multi-queue root each queue would be its own wire");
	if (!opt)
		return refuse(extack, "A wire needs a rate");
	q->params.limit = WIRE_LIMIT;
	q->params.orphan = 1;
	return wire_change(sch, opt, extack);
}

static void wire_reset(struct Qdisc *sch)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();

	qdisc_watchdog_cancel(&q->watchdog);
	wire_queues_purge(&q->queues, sch, now);
	wire_flight_purge(&q->flight);
	memset(q->jitter.last, 0, sizeof(q->jitter.last));
	qdisc_reset(q->child);
	q->child_held = false;
	wire_pause_reset(&q->pause, qdisc_dev(sch), now, &q->free);
	q->free = (struct wire_time) {};
}

static void wire_destroy(struct Qdisc *sch)
{
	struct wire_sched *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->child);
}

static int wire_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct wire_sched *q = qdisc_priv(sch);

	return wire_params_dump(&q->params, skb);
}

static int wire_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct nlattr *stats = nla_nest_start(d->skb, TCA_STATS_APP);
	struct wire_sched *q = qdisc_priv(sch);
	int err;

	if (!stats)
		return -1;
	sch_tree_lock(sch);
	err = wire_queues_dump(&q->queues, d->skb);
	if (err >= 0)
		err = wire_pause_dump(&q->pause, d->skb);
	sch_tree_unlock(sch);
	if (err < 0) {
		nla_nest_cancel(d->skb, stats);
		return -1;
	}
	nla_nest_end(d->skb, stats);
	return 0;
}

static int wire_graft(struct Qdisc *sch, unsigned long cl, struct Qdisc *new,
		      struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct wire_sched *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->child);
	q->child_held = false;
	return 0;
}

static struct Qdisc *wire_leaf(struct Qdisc *sch, unsigned long cl)
{
	struct wire_sched *q = qdisc_priv(sch);

	return q->child;
}

static unsigned long wire_find(struct Qdisc *sch, u32 classid)
{
	return TC_H_MIN(classid) == WIRE_CLASS ? WIRE_CLASS : 0;
}

static void wire_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop)
		tc_qdisc_stats_dump(sch, WIRE_CLASS, walker);
}

static int wire_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
			   struct tcmsg *tcm)
{
	struct wire_sched *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(WIRE_CLASS);
	tcm->tcm_info = q->child->handle;
	return 0;
}

static const struct Qdisc_class_ops wire_class_ops = {
	.graft	= wire_graft,
	.leaf	= wire_leaf,
	.find	= wire_find,
	.walk	= wire_walk,
	.dump	= wire_dump_class,
};

static struct Qdisc_ops wire_ops __read_mostly = {
	.id		= "wire",
	.cl_ops		= &wire_class_ops,
	.priv_size	= sizeof(struct wire_sched),
	.enqueue	= wire_enqueue,
	.dequeue	= wire_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= wire_init,
	.reset		= wire_reset,
	.destroy	= wire_destroy,
	.change		= wire_change,
	.dump		= wire_dump,
	.dump_stats	= wire_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("wire");

static int __init wire_module_init(void)
{
	return register_qdisc(&wire_ops);
}

static void __exit wire_module_exit(void)
{
	unregister_qdisc(&wire_ops);
}

module_init(wire_module_init)
module_exit(wire_module_exit)
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("One direction of a full-duplex Ethernet link");
