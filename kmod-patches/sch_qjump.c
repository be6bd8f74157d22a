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
 * CLOCK_MONOTONIC. (A parent that peeks, as tbf, sends later than that.) Where
 * frames leave at most S ns after that, "slack S" holds them for T + S, and the
 * bound is one on the wire.
 *
 * Cost of a packet: max(length + overhead * segments, mpu). A GSO packet dearer
 * than 1/16 of the budget is split at enqueue, lest a budget's rest be too
 * small for it (TCP got 69 % of 98410 B by packets of 68 kB); so is every one
 * when there is an mpu. A frame dearer than the budget can never leave: it is
 * dropped and counted as oversize.
 *
 * Without parameters nothing is limited: strict priority. The module's own are
 * those of 2015 and only fill in a "mode 2015" without an epoch. There, pXrate
 * is for priority 7 - X:
 *	T = timeq us, B_p = p(7-p)rate * bytesq
 *
 * skb->priority and skb->queue_mapping are never written.
 */
#include "compat.h"
#include "qjump_packet.h"

/* A packet that waits goes on waiting, unless its budget will never let it go. */
static void qjump_keep(struct Qdisc *sch, struct qjump_level *l, struct sk_buff *skb, u32 cost)
{
	qjump_cb(skb)->cost = cost;
	if (cost <= l->budget) {
		qjump_append(skb, sch, l);
		return;
	}
	l->drops++;
	l->oversize++;
	rtnl_qdisc_drop(skb, sch);
}

/* The same for each of the packets that it stands for; false: it can't be split. */
static bool qjump_keep_split(struct Qdisc *sch, struct qjump_level *l, struct sk_buff *skb)
{
	netdev_features_t features = netif_skb_features(skb) & ~NETIF_F_GSO_MASK;
	struct qjump_sched *q = qdisc_priv(sch);
	struct sk_buff *segs, *next;

	segs = skb_gso_segment(skb, features);
	if (IS_ERR_OR_NULL(segs))
		return false;
	skb_list_walk_safe(segs, segs, next) {
		skb_mark_not_on_list(segs);
		compat_set_pkt_len(segs, segs->len);
		qjump_keep(sch, l, segs, qjump_cost(&q->params, segs));
	}
	consume_skb(skb);
	return true;
}

/*
 * What waits at a limited level, by its new parameters. What was charged when
 * it came is not charged again. By how much less waits then, parents are told.
 */
static void qjump_review(struct Qdisc *sch, struct qjump_level *l, bool was_limited, bool charged,
			 int *n, int *bytes)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct qdisc_skb_head all = l->queue;
	u32 backlog = l->backlog;
	struct sk_buff *skb;

	l->queue = (struct qdisc_skb_head) {};
	l->backlog = 0;
	sch->qstats.backlog -= backlog;
	sch->q.qlen -= all.qlen;
	*n += all.qlen;
	*bytes += backlog;
	while ((skb = __qdisc_dequeue_head(&all))) {
		u32 cost = qjump_cost(&q->params, skb);

		if (was_limited && (charged || !qjump_cb(skb)->cost))
			qjump_keep(sch, l, skb, 0);
		else if (!qjump_splits(q, l, skb, cost) || !qjump_keep_split(sch, l, skb))
			qjump_keep(sch, l, skb, cost);
	}
	*n -= l->queue.qlen;
	*bytes -= l->backlog;
}

/* A level that is limited by rolling epochs needs slots. */
static int qjump_alloc(struct qjump_sched *q, const struct qjump_params *p)
{
	int i;

	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		struct epoch_account *a = &q->level[i].account;

		if (p->epochs != TC_QJUMP_ROLLING || !p->budget[i] || a->slot)
			continue;
		a->slot = kcalloc(EPOCH_SLOTS, sizeof(*a->slot), GFP_KERNEL);
		if (!a->slot)
			return -ENOMEM;
	}
	return 0;
}

static void qjump_apply(struct Qdisc *sch, const struct qjump_params *p)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct epoch_rule rule = qjump_rule(p), before;
	bool charges, charged, was_limited;
	int i, n = 0, bytes = 0;
	u64 now;

	sch_tree_lock(sch);
	now = ktime_get_ns();
	charges = q->params.mode != TC_QJUMP_DELAY;
	before = q->rule;
	q->params = *p;
	q->rule = rule;
	q->asleep = 0;
	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		struct qjump_level *l = &q->level[i];

		was_limited = l->limited;
		charged = charges && !(q->metered & BIT(i));
		if (!was_limited || !p->budget[i]) {
			epoch_reset(&l->account);
			if (p->mode == TC_QJUMP_2015)
				l->account.end = now + p->epoch;
		} else if (memcmp(&rule, &before, offsetofend(struct epoch_rule, kind))) {
			epoch_change(&before, &rule, &l->account, now);
		}
		l->held_until = 0;
		l->held = false;
		l->bit = BIT(i);
		l->budget = p->budget[i];
		l->limit = qjump_limit(sch, p, i);
		l->packets_limit = p->packets[i];
		l->limited = l->budget || p->mode == TC_QJUMP_2015;
		if (l->limited)
			qjump_review(sch, l, was_limited, charged, &n, &bytes);
		__assign_bit(i, &q->backlogged, l->queue.head);
		/* In the other modes what has not been charged yet is, until it is gone. */
		__assign_bit(i, &q->metered, l->limited && (p->mode == TC_QJUMP_DELAY ||
							    (l->queue.head && !charged)));
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
	err = qjump_alloc(q, &p);
	if (err)
		return err;
	qjump_params_warn(sch, &p, extack);
	qjump_apply(sch, &p);
	return 0;
}

static int qjump_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct qjump_sched *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	if (qdisc_under_mq(sch))
		return refuse(extack, "Below a multi-queue root each queue would have a budget");
	qjump_params_defaults(&q->params, TC_QJUMP_DELAY);
	if (opt)
		return qjump_change(sch, opt, extack);
	qjump_apply(sch, &q->params);
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
	struct qjump_sched *q = qdisc_priv(sch);
	int i;

	qdisc_watchdog_cancel(&q->watchdog);
	for (i = 0; i < TC_QJUMP_LEVELS; i++)
		kfree(q->level[i].account.slot);
}

static int qjump_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct qjump_sched *q = qdisc_priv(sch);

	return qjump_params_dump(&q->params, skb);
}

static int qjump_level_dump_stats(const struct qjump_level *l, u32 i, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_QJUMP_STATS_LEVEL);

	if (!nest || nla_put_u32(skb, TCA_QJUMP_LEVEL_STATS_INDEX, i) ||
	    nla_put_u64_64bit(skb, TCA_QJUMP_LEVEL_STATS_PACKETS, l->packets,
			      TCA_QJUMP_LEVEL_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_QJUMP_LEVEL_STATS_BYTES, l->bytes,
			      TCA_QJUMP_LEVEL_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_QJUMP_LEVEL_STATS_DROPS, l->drops,
			      TCA_QJUMP_LEVEL_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_QJUMP_LEVEL_STATS_OVERSIZE, l->oversize,
			      TCA_QJUMP_LEVEL_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_QJUMP_LEVEL_STATS_THROTTLED, l->throttled,
			      TCA_QJUMP_LEVEL_STATS_PAD) ||
	    nla_put_u32(skb, TCA_QJUMP_LEVEL_STATS_QLEN, l->queue.qlen) ||
	    nla_put_u32(skb, TCA_QJUMP_LEVEL_STATS_BACKLOG, l->backlog) ||
	    nla_put_u32(skb, TCA_QJUMP_LEVEL_STATS_LIMIT, l->limit))
		return -EMSGSIZE;
	return nla_nest_end(skb, nest);
}

static int qjump_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct nlattr *stats = nla_nest_start(d->skb, TCA_STATS_APP);
	struct qjump_sched *q = qdisc_priv(sch);
	int i, err = 0;

	if (!stats)
		return -1;
	sch_tree_lock(sch);
	for (i = 0; i < TC_QJUMP_LEVELS && err >= 0; i++)
		err = qjump_level_dump_stats(&q->level[i], i, d->skb);
	sch_tree_unlock(sch);
	if (err < 0) {
		nla_nest_cancel(d->skb, stats);
		return -1;
	}
	nla_nest_end(d->skb, stats);
	return 0;
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
