// SPDX-License-Identifier: GPL-2.0
/*
 * QJump by the rules of the module that its authors published in 2015
 *
 * Source: camsas/qjump-tc at commit bb164fc, 2015. Two forks have the same rules:
 * czlee/qjump-tc, which reads the kernel's clock instead of the TSC, and
 * Vincinator/qjump-tc, for Linux 5.9. This qdisc exists to repeat the published
 * results; for anything else use qjump.
 *
 * - Each level has its own epoch and account. The first epoch starts when the qdisc
 *   is created. A packet that arrives at now >= end starts the next one, even if it
 *   is dropped: end = now + T, with the whole budget and no carry-over. So two budgets
 *   may leave back to back: one just before the end of an epoch, one just after it.
 * - A packet is charged its length at enqueue, and dropped if the rest of the budget
 *   is smaller. A GSO packet is charged as a whole. A packet larger than the budget is
 *   never sent; with a budget of 0, no packet is.
 * - The queue has no limit: behind a parent that holds packets back for k epochs, k
 *   budgets pile up and may leave in one epoch.
 * - Priorities above the top level belong to it. The original has min(8, transmit
 *   queues) levels, this qdisc always 8.
 * - A qdisc without an epoch takes the module parameters: T = timeq us, and the budget
 *   of priority 7 - X is pXrate * bytesq.
 *
 * Left out: "autoclass", off by default, which retries a refused packet at the lower
 * levels and writes the outcome into the socket. This qdisc does not write
 * skb->priority, queue_mapping or sockets. In the original p5rate and p6rate could not
 * be set, so the budgets of priorities 2 and 1 were 0. New: a level may be unlimited,
 * to limit only some levels by this rule.
 */

#include <linux/bitops.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "pkt_sched_qjump2015.h"
#include "sch_shared.h"

static unsigned int timeq = 100;	/* us */
static unsigned int bytesq = 128;	/* bytes */
static unsigned int prate[TC_QJUMP2015_LEVELS] = { 1, 5, 10, 100, 1000, 0, 0, 10000 };
module_param(timeq, uint, 0644);
MODULE_PARM_DESC(timeq, "epoch in us, for a qdisc without one");
module_param(bytesq, uint, 0644);
MODULE_PARM_DESC(bytesq, "bytes that a rate of 1 stands for");
module_param_named(p0rate, prate[0], uint, 0644);
MODULE_PARM_DESC(p0rate, "budget of priority 7 in units of bytesq, 0 = drop every packet; pXrate is for priority 7 - X");
module_param_named(p1rate, prate[1], uint, 0644);
module_param_named(p2rate, prate[2], uint, 0644);
module_param_named(p3rate, prate[3], uint, 0644);
module_param_named(p4rate, prate[4], uint, 0644);
module_param_named(p5rate, prate[5], uint, 0644);
module_param_named(p6rate, prate[6], uint, 0644);
module_param_named(p7rate, prate[7], uint, 0644);

static struct netlink_range_validation qjump2015_epochs = {
	.min = NSEC_PER_USEC,
	.max = 3600ULL * NSEC_PER_SEC,
};

static const struct nla_policy qjump2015_policy[TCA_QJUMP2015_MAX + 1] = {
	[TCA_QJUMP2015_EPOCH]	= NLA_POLICY_FULL_RANGE(NLA_U64, &qjump2015_epochs),
	[TCA_QJUMP2015_BUDGETS]	= NLA_POLICY_EXACT_LEN(TC_QJUMP2015_LEVELS * sizeof(u32)),
};

struct qjump2015_level {
	struct qdisc_skb_head queue;
	u32	backlog;	/* bytes waiting */
	u32	budget;		/* bytes per epoch; 0: every packet is dropped */
	u64	used;		/* bytes charged in this epoch */
	u64	end;		/* ns: end of this epoch */
	u64	packets, bytes, drops, oversize;
};

struct qjump2015_sched {
	u64	epoch;		/* ns */
	struct qjump2015_level level[TC_QJUMP2015_LEVELS];
};

static int qjump2015_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct qjump2015_sched *q = qdisc_priv(sch);
	struct qjump2015_level *l = &q->level[min_t(u32, skb->priority, TC_QJUMP2015_LEVELS - 1)];
	u32 len = qdisc_pkt_len(skb);
	u64 now = ktime_get_ns();

	if (now >= l->end) {
		l->end = now + q->epoch;
		l->used = 0;
	}
	if (l->budget != TC_QJUMP2015_UNLIMITED && l->used + len > l->budget) {
		l->drops++;
		l->oversize += len > l->budget;
		return qdisc_drop(skb, sch, to_free);
	}
	l->used += len;
	__qdisc_enqueue_tail(skb, &l->queue);
	l->backlog += len;
	qstats_backlog_add(sch, len);
	qdisc_qlen_inc(sch);
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *qjump2015_dequeue(struct Qdisc *sch)
{
	struct qjump2015_sched *q = qdisc_priv(sch);
	int i;

	for (i = TC_QJUMP2015_LEVELS - 1; i >= 0; i--) {
		struct qjump2015_level *l = &q->level[i];
		struct sk_buff *skb = __qdisc_dequeue_head(&l->queue);

		if (!skb)
			continue;
		l->backlog -= qdisc_pkt_len(skb);
		l->packets++;
		l->bytes += qdisc_pkt_len(skb);
		qstats_backlog_sub(sch, qdisc_pkt_len(skb));
		qdisc_qlen_dec(sch);
		qdisc_bstats_update(sch, skb);
		return skb;
	}
	return NULL;
}

/* Compute epoch and budgets from the module parameters. */
static int qjump2015_published(u64 *epoch, u32 *budget, struct netlink_ext_ack *extack)
{
	int x;

	*epoch = (u64)timeq * NSEC_PER_USEC;
	if (*epoch < qjump2015_epochs.min || *epoch > qjump2015_epochs.max)
		return refuse(extack,
			      "The module parameter timeq must lie between 1 us and 1 hour");
	for (x = 0; x < TC_QJUMP2015_LEVELS; x++) {
		u64 bytes = (u64)prate[x] * bytesq;

		if (bytes >= TC_QJUMP2015_UNLIMITED)
			return refuse(extack,
				      "A module parameter pXrate times bytesq exceeds 32 bits");
		budget[TC_QJUMP2015_LEVELS - 1 - x] = bytes;
	}
	return 0;
}

static int qjump2015_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_QJUMP2015_MAX + 1] = {};
	struct qjump2015_sched *q = qdisc_priv(sch);
	u32 budget[TC_QJUMP2015_LEVELS];
	u64 epoch = q->epoch, now;
	int i, err;

	for (i = 0; i < TC_QJUMP2015_LEVELS; i++)
		budget[i] = q->level[i].budget;
	err = opt ? nla_parse_nested(tb, TCA_QJUMP2015_MAX, opt, qjump2015_policy, extack) : 0;
	if (err)
		return err;
	if (tb[TCA_QJUMP2015_EPOCH])
		epoch = nla_get_u64(tb[TCA_QJUMP2015_EPOCH]);
	if (tb[TCA_QJUMP2015_BUDGETS])
		nla_memcpy(budget, tb[TCA_QJUMP2015_BUDGETS], sizeof(budget));
	if (!epoch) {
		if (tb[TCA_QJUMP2015_BUDGETS])
			return refuse(extack, "Budgets need an epoch");
		err = qjump2015_published(&epoch, budget, extack);
		if (err)
			return err;
	}
	sch_tree_lock(sch);
	now = ktime_get_ns();
	for (i = 0; i < TC_QJUMP2015_LEVELS; i++) {
		q->level[i].end = min(q->level[i].end, now + epoch) ?: now + epoch;
		q->level[i].budget = budget[i];
	}
	q->epoch = epoch;
	sch_tree_unlock(sch);
	return 0;
}

static int qjump2015_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	if (qdisc_under_mq(sch))
		return refuse(extack,
			      "Cannot be attached below a multi-queue qdisc: each queue would have its own budgets");
	return qjump2015_change(sch, opt, extack);
}

static void qjump2015_reset(struct Qdisc *sch)
{
	struct qjump2015_sched *q = qdisc_priv(sch);
	int i;

	for (i = 0; i < TC_QJUMP2015_LEVELS; i++) {
		__qdisc_reset_queue(&q->level[i].queue);
		q->level[i].backlog = 0;
	}
}

static int qjump2015_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);
	const struct qjump2015_sched *q = qdisc_priv(sch);
	u32 budget[TC_QJUMP2015_LEVELS];
	int i;

	for (i = 0; i < TC_QJUMP2015_LEVELS; i++)
		budget[i] = q->level[i].budget;
	if (!nest || nla_put_u64_64bit(skb, TCA_QJUMP2015_EPOCH, q->epoch, TCA_QJUMP2015_PAD) ||
	    nla_put(skb, TCA_QJUMP2015_BUDGETS, sizeof(budget), budget))
		return -EMSGSIZE;
	return nla_nest_end(skb, nest);
}

static int qjump2015_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct tc_qjump2015_xstats st = {};
	struct qjump2015_sched *q = qdisc_priv(sch);
	int i;

	sch_tree_lock(sch);
	for (i = 0; i < TC_QJUMP2015_LEVELS; i++) {
		const struct qjump2015_level *l = &q->level[i];

		st.level[i] = (struct tc_qjump2015_level) {
			.packets = l->packets, .bytes = l->bytes, .drops = l->drops,
			.oversize = l->oversize, .qlen = l->queue.qlen, .backlog = l->backlog,
		};
	}
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static struct Qdisc_ops qjump2015_ops __read_mostly = {
	.id		= "qjump2015",
	.priv_size	= sizeof(struct qjump2015_sched),
	.enqueue	= qjump2015_enqueue,
	.dequeue	= qjump2015_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= qjump2015_init,
	.reset		= qjump2015_reset,
	.change		= qjump2015_change,
	.dump		= qjump2015_dump,
	.dump_stats	= qjump2015_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("qjump2015");

module_driver(qjump2015_ops, register_qdisc, unregister_qdisc);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("QJump by the rules of 2015: levels with a byte budget, charged when packets come");
