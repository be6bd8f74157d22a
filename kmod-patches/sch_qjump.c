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
#include <linux/bitops.h>
#include <linux/ktime.h>
#include <linux/skbuff.h>

#include "compat.h"
#include "qjump_params.h"

struct qjump_level {
	struct qdisc_skb_head queue;
	u64	held_until;		/* ns: the head may not leave before */
	u32	budget;			/* bytes per epoch, 0 = unlimited */
	u32	backlog;		/* bytes waiting */
	u32	limit;			/* bytes */
	u32	most;			/* packets waiting */
	bool	held;			/* the head has been counted as throttled */
	u64	packets;		/* sent */
	u64	bytes;			/* sent */
	u64	drops;			/* packets */
	u64	oversize;		/* packets */
	u64	throttled;		/* packets */
	struct epoch_account account;
};

struct qjump_sched {
	unsigned long	backlogged;	/* bit p: level p has packets */
	unsigned long	metered;	/* bit p: level p is charged at dequeue */
	struct epoch_rule rule;
	struct qjump_params params;
	struct qdisc_watchdog watchdog;
	struct qjump_level level[TC_QJUMP_LEVELS];
};

static int qjump_drop(struct sk_buff *skb, struct Qdisc *sch, struct qjump_level *l,
		      struct sk_buff **to_free)
{
	l->drops++;
	return qdisc_drop(skb, sch, to_free);
}

/* Whether a packet of a limited level may be queued; mode drop charges it. */
static bool qjump_accept(struct qjump_sched *q, struct qjump_level *l,
			 const struct sk_buff *skb)
{
	u32 cost = qjump_cost(&q->params, skb);
	u64 now;

	if (unlikely(cost > l->budget)) {
		l->oversize++;
		if (q->params.mode == TC_QJUMP_2015)	/* starts an epoch all the same */
			epoch_wait(&q->rule, &l->account, l->budget, cost, ktime_get_ns());
		return false;
	}
	if (q->params.mode == TC_QJUMP_DELAY)
		return true;
	now = ktime_get_ns();
	if (epoch_wait(&q->rule, &l->account, l->budget, cost, now))
		return false;
	epoch_charge(&q->rule, &l->account, cost, now);
	return true;
}

static int qjump_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, u32 p,
			     struct sk_buff **to_free)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct qjump_level *l = &q->level[p];
	u32 len = qdisc_pkt_len(skb);

	if (unlikely(l->queue.qlen >= l->most || l->backlog + len > l->limit))
		return qjump_drop(skb, sch, l, to_free);
	if (l->budget && !qjump_accept(q, l, skb))
		return qjump_drop(skb, sch, l, to_free);
	__qdisc_enqueue_tail(skb, &l->queue);
	__set_bit(p, &q->backlogged);
	l->backlog += len;
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

/* As tbf_segment(): our parents counted one packet, tell them of the others. */
static int qjump_segment(struct sk_buff *skb, struct Qdisc *sch, u32 p,
			 struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb) & ~NETIF_F_GSO_MASK;
	struct qjump_sched *q = qdisc_priv(sch);
	unsigned int whole = qdisc_pkt_len(skb), len = 0, seg_len;
	struct sk_buff *segs, *next;
	int n = 0;

	segs = skb_gso_segment(skb, features);
	if (IS_ERR_OR_NULL(segs))
		return qjump_drop(skb, sch, &q->level[p], to_free);
	skb_list_walk_safe(segs, segs, next) {
		skb_mark_not_on_list(segs);
		seg_len = segs->len;
		compat_set_pkt_len(segs, seg_len);
		if (qjump_enqueue_one(segs, sch, p, to_free) == NET_XMIT_SUCCESS) {
			n++;
			len += seg_len;
		}
	}
	if (!n) {
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}
	qdisc_tree_reduce_backlog(sch, 1 - n, whole - len);
	consume_skb(skb);
	return NET_XMIT_SUCCESS;
}

static int qjump_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct qjump_sched *q = qdisc_priv(sch);
	u32 p = qjump_classify(&q->params, skb);
	u32 budget = q->level[p].budget;

	if (budget && skb_is_gso(skb) && q->params.mode != TC_QJUMP_2015 &&
	    (q->params.mpu || qjump_cost(&q->params, skb) > budget / QJUMP_SPLIT))
		return qjump_segment(skb, sch, p, to_free);
	return qjump_enqueue_one(skb, sch, p, to_free);
}

/* 0, and the head of the level is charged; or the time until which it is held. */
static u64 qjump_admit(struct qjump_sched *q, struct qjump_level *l, u64 now)
{
	u32 cost;

	if (now < l->held_until)
		return l->held_until;
	cost = qjump_cost(&q->params, l->queue.head);
	l->held_until = epoch_wait(&q->rule, &l->account, l->budget, cost, now);
	if (l->held_until) {
		l->throttled += !l->held;
		l->held = true;
		return l->held_until;
	}
	l->held = false;
	epoch_charge(&q->rule, &l->account, cost, now);
	return 0;
}

static struct sk_buff *qjump_dequeue(struct Qdisc *sch)
{
	struct qjump_sched *q = qdisc_priv(sch);
	unsigned long ready = q->backlogged;
	u64 now = 0, wake = U64_MAX;

	if (!ready)
		return NULL;
	do {
		unsigned long p = __fls(ready);
		struct qjump_level *l = &q->level[p];
		struct sk_buff *skb;
		u32 len;

		if (q->metered & BIT(p)) {
			u64 until;

			now = now ?: ktime_get_ns();
			until = qjump_admit(q, l, now);
			if (until) {
				wake = min(wake, until);
				ready &= ~BIT(p);
				continue;
			}
		}
		skb = __qdisc_dequeue_head(&l->queue);
		if (!l->queue.head)
			__clear_bit(p, &q->backlogged);
		len = qdisc_pkt_len(skb);
		l->backlog -= len;
		l->packets++;
		l->bytes += len;
		sch->qstats.backlog -= len;
		sch->q.qlen--;
		qdisc_bstats_update(sch, skb);
		return skb;
	} while (ready);
	qdisc_qstats_overlimit(sch);
	qdisc_watchdog_schedule_ns(&q->watchdog, wake);
	return NULL;
}

/* Drop what a smaller budget will never let go. */
static void qjump_prune(struct Qdisc *sch, struct qjump_level *l, int *n, int *bytes)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct qdisc_skb_head all = l->queue;
	struct sk_buff *skb;

	l->queue = (struct qdisc_skb_head) {};
	while ((skb = __qdisc_dequeue_head(&all))) {
		u32 len = qdisc_pkt_len(skb);

		if (qjump_cost(&q->params, skb) <= l->budget) {
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
	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		struct qjump_level *l = &q->level[i];

		if (restart) {
			epoch_reset(&l->account);
			l->account.end = p->mode == TC_QJUMP_2015 ? ktime_get_ns() + p->epoch : 0;
		}
		l->held_until = 0;
		l->held = false;
		l->budget = p->budget[i];
		l->limit = qjump_limit(sch, p, i);
		l->most = p->packets[i];
		if (l->budget)
			qjump_prune(sch, l, &n, &bytes);
		__assign_bit(i, &q->backlogged, l->queue.head);
		__assign_bit(i, &q->metered, l->budget && p->mode == TC_QJUMP_DELAY);
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
