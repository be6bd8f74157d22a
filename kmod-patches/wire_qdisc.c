// SPDX-License-Identifier: GPL-2.0
/* The wire as a queueing discipline: operations other than enqueue and dequeue. */

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/rtnetlink.h>
#include <net/netlink.h>
#include <net/sch_generic.h>

#include "compat.h"
#include "sch_shared.h"
#include "wire.h"
#include "wire_trace.h"

#define WIRE_LIMIT	152200	/* bytes; 100 frames of 1522 */
#define WIRE_CLASS	1	/* minor number of the only class */

static int wire_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct wire_sched *q = qdisc_priv(sch);
	struct wire_params p = q->params;
	int err = wire_params_parse(&p, opt, extack);
	bool pauses = q->params.xoff;
	u64 now;

	if (err)
		return err;
	if (p.xoff && sch->parent != TC_H_ROOT)
		return refuse(extack, "Only the wire at the root of a device can send pauses");
	if (p.xoff && !pauses)
		wire_pauses_begin();
	sch_tree_lock(sch);
	now = ktime_get_ns();
	wire_settle(sch, now);
	if (p.rate != q->params.rate)	/* rest is in units of 1/rate */
		q->free = (struct wire_time) { .ns = wire_ceil(q->free) };
	if (p.xoff != q->params.xoff || p.xon != q->params.xon || p.pfc != q->params.pfc)
		wire_pause_change(&q->pause, qdisc_dev(sch), &p);
	if (p.seed != q->params.seed || p.quantiles != q->params.quantiles)
		prandom_seed_state(&q->jitter.rnd, p.seed);
	wire_params_store(&q->params, &p);
	if (sch->q.qlen)	/* waiting frames may leave before the timer fires */
		qdisc_watchdog_schedule_ns(&q->watchdog, now);
	sch_tree_unlock(sch);
	if (pauses && !p.xoff)
		wire_pauses_end(qdisc_dev(sch));
	return 0;
}

static int wire_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct wire_sched *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	q->child = &noop_qdisc;
	wire_pause_renew(&q->pause);
	if (qdisc_under_mq(sch))
		return refuse(extack,
			      "Cannot be attached below a multi-queue qdisc: each queue would be its own wire");
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
	q->child_blocked = false;
	wire_pause_reset(q, qdisc_dev(sch), now);
	q->free = (struct wire_time) {};
}

static void wire_destroy(struct Qdisc *sch)
{
	struct wire_sched *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	if (q->params.xoff)
		wire_pauses_end(qdisc_dev(sch));
	qdisc_put(q->child);
}

static int wire_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct wire_sched *q = qdisc_priv(sch);

	return wire_params_dump(&q->params, skb);
}

static u64 wire_held_ns(const struct wire_held *h, bool held)
{
	return h->ns + (held ? ktime_get_ns() - h->since : 0);
}

static int wire_pause_dump(const struct wire_sched *q, struct sk_buff *skb)
{
	const struct wire_pause *p = &q->pause;
	u64 paused = wire_held_ns(&p->held, q->queues.paused), bytes = 0, most = 0;
	int i;

	for (i = 0; i < TC_WIRE_LEVELS; i++) {
		bytes += wire_account_bytes(&p->account[i]);
		most = max(most, READ_ONCE(p->account[i].max));
	}
	if (nla_put_u32(skb, TCA_WIRE_STATS_PAUSE_ON, !!p->xoff) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_PAUSE_SENT, p->sent, TCA_WIRE_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_PAUSE_RECEIVED, p->received,
			      TCA_WIRE_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_PAUSED, paused, TCA_WIRE_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_INGRESS, bytes, TCA_WIRE_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_MAX_INGRESS, most, TCA_WIRE_STATS_PAD))
		return -EMSGSIZE;
	return 0;
}

static int wire_level_dump(const struct wire_sched *q, u32 p, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_WIRE_STATS_LEVEL);
	const struct wire_level *l = &q->queues.level[p];
	const struct wire_account *a = &q->pause.account[p];
	u64 paused = wire_held_ns(&q->pause.held_level[p], q->queues.paused & BIT(p));

	if (!nest || nla_put_u32(skb, TCA_WIRE_LEVEL_STATS_INDEX, p) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_PACKETS, l->packets,
			      TCA_WIRE_LEVEL_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_BYTES, l->bytes,
			      TCA_WIRE_LEVEL_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_DROPS, l->drops,
			      TCA_WIRE_LEVEL_STATS_PAD) ||
	    nla_put_u32(skb, TCA_WIRE_LEVEL_STATS_QLEN, l->queue.qlen) ||
	    nla_put_u32(skb, TCA_WIRE_LEVEL_STATS_BACKLOG, l->backlog) ||
	    nla_put_u32(skb, TCA_WIRE_LEVEL_STATS_MAX_BACKLOG, l->max_backlog) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_MAX_WAIT, l->max_wait,
			      TCA_WIRE_LEVEL_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_MAX_LATE, l->max_late,
			      TCA_WIRE_LEVEL_STATS_PAD))
		return -EMSGSIZE;
	if ((q->pause.pfc || paused) &&
	    (nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_PAUSED, paused,
			       TCA_WIRE_LEVEL_STATS_PAD) ||
	     nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_INGRESS, wire_account_bytes(a),
			       TCA_WIRE_LEVEL_STATS_PAD) ||
	     nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_MAX_INGRESS, READ_ONCE(a->max),
			       TCA_WIRE_LEVEL_STATS_PAD)))
		return -EMSGSIZE;
	return nla_nest_end(skb, nest);
}

static int wire_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct nlattr *stats = nla_nest_start(d->skb, TCA_STATS_APP);
	struct wire_sched *q = qdisc_priv(sch);
	u64 now;
	int p, err = 0;

	if (!stats)
		return -1;
	sch_tree_lock(sch);
	now = ktime_get_ns();
	wire_settle(sch, now);
	if (trace_wire_queue_enabled())
		wire_trace_window(&q->queues, qdisc_dev(sch), now);
	for (p = 0; p < TC_WIRE_LEVELS && err >= 0; p++)
		err = wire_level_dump(q, p, d->skb);
	if (err >= 0)
		err = wire_pause_dump(q, d->skb);
	sch_tree_unlock(sch);
	if (err < 0) {
		nla_nest_cancel(d->skb, stats);
		return -1;
	}
	nla_nest_end(d->skb, stats);
	return 0;
}

static int wire_graft(struct Qdisc *sch, unsigned long cl, struct Qdisc *new, struct Qdisc **old,
		      struct netlink_ext_ack *extack)
{
	struct wire_sched *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->child);
	sch_tree_lock(sch);
	q->child_blocked = false;
	sch_tree_unlock(sch);
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

struct Qdisc_ops wire_ops __read_mostly = {
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
