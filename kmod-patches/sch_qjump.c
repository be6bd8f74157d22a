// SPDX-License-Identifier: GPL-2.0
/*
 * QJump: strict priority levels with a byte budget each
 *
 * Source: Grosvenor, Schwarzkopf, Gog, Watson, Moore, Hand, Crowcroft: "Queues
 * don't matter when you can JUMP them!", NSDI 2015, section 3.
 *
 * Packets are sorted by skb->priority into eight levels, named by 802.1Q
 * priority: 7 is the most urgent. Level p may send B_p bytes in an epoch of
 * T ns (0 = unlimited). With n hosts, packets of P bytes and links of R bit/s,
 *
 *	T   = 2 n P * 8 / R	network epoch (the 2: epochs are not aligned)
 *	B_p = f_p * P		f_p: throughput factor, 1 for level 7 ... n for 0
 *
 * bound the delay of a level with f = 1 to one epoch. The highest level that
 * is backlogged and within its budget sends.
 *
 * What exceeds a budget is held and charged at dequeue (mode delay), or charged
 * at enqueue and dropped (mode drop; behind a parent that holds packets back,
 * several budgets may then leave at once). qjump_params.h has the rules of mode
 * 2015, epoch.h the kinds of epochs and the proof that "rolling" never lets more
 * than a budget leave in any window of T, measured at dequeue by
 * CLOCK_MONOTONIC. (A parent that peeks, as tbf, sends later than that.)
 *
 * Cost of a packet: max(length + overhead * segments, mpu). A GSO packet dearer
 * than 1/16 of the budget is split at enqueue, lest a budget's rest be too
 * small for it (TCP got 69 % of 98410 B by packets of 68 kB); so is every one
 * when there is an mpu. A frame dearer than the budget can never leave: it is
 * dropped and counted as oversize.
 *
 * The module's parameters are those of 2015 and only fill in a bare
 * "tc qdisc add dev X root qjump". There, pXrate is for priority 7 - X:
 *	T = timeq us, B_p = p(7-p)rate * bytesq
 *
 * skb->priority and skb->queue_mapping are never written.
 */
#include "compat.h"
#include "qjump_packet.h"

/* Drop what a smaller budget will never let go. */
static void qjump_prune(struct Qdisc *sch, struct qjump_level *l, int *n, int *bytes)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct qdisc_skb_head all = l->queue;
	struct sk_buff *skb;

	l->queue = (struct qdisc_skb_head) {};
	while ((skb = __qdisc_dequeue_head(&all))) {
		u32 len = qdisc_pkt_len(skb);
		u32 cost = qjump_cost(&q->params, skb);

		if (cost <= l->budget) {
			qjump_cb(skb)->cost = cost;
			__qdisc_enqueue_tail(skb, &l->queue);
			continue;
		}
		l->backlog -= len;
		l->drops++;
		l->oversize++;
		sch->qstats.backlog -= len;
		sch->q.qlen--;
		rtnl_qdisc_drop(skb, sch);
		(*n)++;
		*bytes += len;
	}
}

static void qjump_apply(struct Qdisc *sch, const struct qjump_params *p)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct epoch_rule rule = qjump_rule(p);
	bool restart = p->mode != q->params.mode ||
		       memcmp(&rule, &q->rule, offsetofend(struct epoch_rule, kind));
	int i, n = 0, bytes = 0;

	sch_tree_lock(sch);
	q->params = *p;
	q->rule = rule;
	q->asleep = 0;
	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		struct qjump_level *l = &q->level[i];

		if (restart) {
			epoch_reset(&l->account);
			l->account.end = p->mode == TC_QJUMP_2015 ? ktime_get_ns() + p->epoch : 0;
		}
		l->held_until = 0;
		l->held = false;
		l->bit = BIT(i);
		l->budget = p->budget[i];
		l->limit = qjump_limit(sch, p, i);
		l->packets_limit = p->packets[i];
		l->limited = l->budget || p->mode == TC_QJUMP_2015;
		if (l->budget)
			qjump_prune(sch, l, &n, &bytes);
		__assign_bit(i, &q->backlogged, l->queue.head);
		__assign_bit(i, &q->metered, l->limited && p->mode == TC_QJUMP_DELAY);
	}
	qdisc_tree_reduce_backlog(sch, n, bytes);
	sch_tree_unlock(sch);
	if (sch->q.qlen)	/* what was held may be free now */
		qdisc_watchdog_schedule_ns(&q->watchdog, ktime_get_ns());
}

static int qjump_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct qjump_params p = q->params;
	int err = qjump_params_parse(&p, opt, extack);

	if (err)
		return err;
	qjump_params_warn(sch, &p, extack);
	qjump_apply(sch, &p);
	return 0;
}

static int qjump_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct qjump_params p = {};
	int err;

	qdisc_watchdog_init(&q->watchdog, sch);
	if (qdisc_under_mq(sch))
		return refuse(extack, "Below a multi-queue root each queue would have a budget");
	qjump_params_defaults(&p, TC_QJUMP_DELAY);
	err = opt && nla_len(opt) ? qjump_params_parse(&p, opt, extack) :
				    qjump_params_bare(&p, extack);
	if (err)
		return err;
	qjump_params_warn(sch, &p, extack);
	qjump_apply(sch, &p);
	return 0;
}

static void qjump_reset(struct Qdisc *sch)
{
	struct qjump_sched *q = qdisc_priv(sch);
	int i;

	qdisc_watchdog_cancel(&q->watchdog);
	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		struct qjump_level *l = &q->level[i];

		__qdisc_reset_queue(&l->queue);
		l->backlog = 0;
		l->held_until = 0;
		l->held = false;
		epoch_reset(&l->account);
	}
	q->backlogged = 0;
	q->asleep = 0;
}

static void qjump_destroy(struct Qdisc *sch)
{
	qdisc_watchdog_cancel(&((struct qjump_sched *)qdisc_priv(sch))->watchdog);
}

static int qjump_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct qjump_sched *q = qdisc_priv(sch);

	return qjump_params_dump(&q->params, skb);
}

static int qjump_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct tc_qjump_xstats st = {
		.version = TC_QJUMP_XSTATS_VERSION,
		.levels = TC_QJUMP_LEVELS,
	};
	struct qjump_sched *q = qdisc_priv(sch);
	int i;

	sch_tree_lock(sch);
	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		const struct qjump_level *l = &q->level[i];

		st.level[i] = (struct tc_qjump_level_xstats) {
			.packets = l->packets,
			.bytes = l->bytes,
			.drops = l->drops,
			.oversize = l->oversize,
			.throttled = l->throttled,
			.qlen = l->queue.qlen,
			.backlog = l->backlog,
			.limit = l->limit,
		};
	}
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static struct Qdisc_ops qjump_ops __read_mostly = {
	.id		= "qjump",
	.priv_size	= sizeof(struct qjump_sched),
	.enqueue	= qjump_enqueue,
	.dequeue	= qjump_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= qjump_init,
	.reset		= qjump_reset,
	.destroy	= qjump_destroy,
	.change		= qjump_change,
	.dump		= qjump_dump,
	.dump_stats	= qjump_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("qjump");

static int __init qjump_module_init(void)
{
	return register_qdisc(&qjump_ops);
}

static void __exit qjump_module_exit(void)
{
	unregister_qdisc(&qjump_ops);
}

module_init(qjump_module_init)
module_exit(qjump_module_exit)
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("QJump: strict priority levels with a byte budget each");
