// SPDX-License-Identifier: GPL-2.0
/*
 * QJump: strict priority levels, each with a byte budget in any window of length T
 *
 * Source: Grosvenor et al.: "Queues don't matter when you can JUMP them!", NSDI 2015.
 *
 * skb->priority selects one of eight levels; 7 is the most urgent. The highest backlogged
 * level that is within its budget of B bytes per epoch of T ns sends; others wait. With n
 * hosts, packets of P bytes and links of R bit/s, B = P and T = 2 n P * 8 / R bound the
 * delay of a level to one epoch. A packet costs max(length + overhead, mpu). Once any
 * level has a budget, GSO packets are split just before they leave.
 *
 * Invariant: no more than B bytes leave in [t, t + T), for any t. The bytes sent are
 * recorded in slots. A packet is added to the newest slot if that was opened less than
 * a quantum q = T / 60 ago, otherwise to a new one; the slot's stamp becomes the time
 * of its newest packet. A slot expires at stamp + T. A packet of c bytes may leave if
 * the bytes in all slots plus c do not exceed B.
 *
 * Proof: every byte sent in a window of length T that ends with a packet is in a slot
 * whose stamp is inside the window, so it was counted when the packet was admitted. A
 * later stamp only keeps bytes longer, so a slot may take packets beyond its quantum
 * when no slot is free. A backlogged level gets at least B / (T + q) > 0.983 B / T.
 *
 * Times are those of dequeue. If frames leave up to S ns later, "slack S" makes the
 * window T + S: the invariant then holds on the wire. Bytes stay charged across changes
 * and while the device is down; a level that becomes limited has used up its budget.
 */

#include <linux/math64.h>
#include <linux/module.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "pkt_sched_qjump.h"
#include "sch_shared.h"

#define QJUMP_MAX_OVERHEAD	2048	/* bytes */
#define QJUMP_LIMIT		1000	/* packets per level, by default */
#define QJUMP_QUANTA		60
#define QJUMP_SLOTS		64	/* power of two, >= QJUMP_QUANTA + 2 */

static struct netlink_range_validation qjump_times = { .max = 3600ULL * NSEC_PER_SEC };
static struct netlink_range_validation qjump_budgets = { .max = S32_MAX };
static struct netlink_range_validation qjump_limits = { .min = 1, .max = 1000000 };

static const struct nla_policy qjump_level_policy[TCA_QJUMP_LEVEL_MAX + 1] = {
	[TCA_QJUMP_LEVEL_INDEX]		= NLA_POLICY_MAX(NLA_UINT, TC_QJUMP_LEVELS - 1),
	[TCA_QJUMP_LEVEL_BUDGET]	= NLA_POLICY_FULL_RANGE(NLA_UINT, &qjump_budgets),
	[TCA_QJUMP_LEVEL_LIMIT]		= NLA_POLICY_FULL_RANGE(NLA_UINT, &qjump_limits),
};

static const struct nla_policy qjump_policy[TCA_QJUMP_MAX + 1] = {
	[TCA_QJUMP_EPOCH]	= NLA_POLICY_FULL_RANGE(NLA_UINT, &qjump_times),
	[TCA_QJUMP_SLACK]	= NLA_POLICY_FULL_RANGE(NLA_UINT, &qjump_times),
	[TCA_QJUMP_LEVEL]	= NLA_POLICY_NESTED(qjump_level_policy),
	[TCA_QJUMP_PRIOMAP]	= NLA_POLICY_EXACT_LEN(TC_QJUMP_PRIOS),
	[TCA_QJUMP_OVERHEAD]	= NLA_POLICY_MAX(NLA_UINT, QJUMP_MAX_OVERHEAD),
	[TCA_QJUMP_MPU]		= NLA_POLICY_MAX(NLA_UINT, QJUMP_MAX_OVERHEAD),
};

/* Set by user space; validated as a whole before any of it takes effect. */
struct qjump_params {
	u64	epoch, slack;			/* ns; 0: none */
	u32	overhead, mpu;			/* bytes */
	u32	budget[TC_QJUMP_LEVELS];	/* bytes per epoch; 0: unlimited */
	u32	limit[TC_QJUMP_LEVELS];		/* packets that may wait */
	u8	priomap[TC_QJUMP_PRIOS + 1];	/* skb->priority -> level; last: above 15 */
};

struct qjump_slot {
	u64	last;		/* ns: departure of its newest packet */
	u64	bytes;
};

struct qjump_level {
	unsigned long bit;		/* BIT(p) for level p */
	struct qdisc_skb_head queue;	/* qlen counts segments */
	u32	backlog;	/* bytes */
	u32	budget, limit;	/* copies of the parameters */
	u32	oldest, next;	/* free-running slot indices */
	u64	used;		/* bytes in all slots */
	u64	end;		/* ns: the newest slot takes packets until then */
	u64	held_until;	/* ns: the head may not leave earlier */
	u64	packets, bytes, drops, oversize, throttled;
	struct qjump_slot slot[QJUMP_SLOTS];
};

struct qjump_sched {
	unsigned long	backlogged;	/* bit p: level p has packets waiting */
	unsigned long	limited;	/* not 0: a level has a budget */
	unsigned long	gso;		/* GSO packets waiting */
	u64		window, quantum;	/* ns; window: epoch + slack */
	struct qjump_params params;
	struct qdisc_watchdog watchdog;
	struct qjump_level *level_of[TC_QJUMP_PRIOS + 1];	/* by skb->priority */
	struct qjump_level level[TC_QJUMP_LEVELS];
};

static struct qjump_slot *qjump_slot(struct qjump_level *l, u32 i)
{
	return &l->slot[i % QJUMP_SLOTS];
}

static void qjump_charge(struct qjump_sched *q, struct qjump_level *l, u32 cost, u64 now)
{
	bool full = l->next - l->oldest == QJUMP_SLOTS;
	struct qjump_slot *s;

	if (now >= l->end && (!full || qjump_slot(l, l->oldest)->last + q->window <= now)) {
		if (full)
			l->used -= qjump_slot(l, l->oldest++)->bytes;
		qjump_slot(l, l->next++)->bytes = 0;
		l->end = now + q->quantum;
	}
	s = qjump_slot(l, l->next - 1);
	s->last = now;
	s->bytes += cost;
	l->used += cost;
}

/* Charge cost <= budget bytes, or return false and note how long they must wait. */
static bool qjump_admit(struct qjump_sched *q, struct qjump_level *l, u32 cost, u64 now)
{
	u64 used = l->used, until = 0;
	u32 i;

	for (i = l->oldest; used + cost > l->budget; i++) {
		used -= qjump_slot(l, i)->bytes;
		until = qjump_slot(l, i)->last + q->window;
	}
	if (until > now) {
		l->held_until = until;
		l->throttled++;
		return false;
	}
	l->used = used;
	l->oldest = i;
	qjump_charge(q, l, cost, now);
	return true;
}

static u32 qjump_cost(const struct qjump_params *p, u32 len)
{
	return max(len + p->overhead, p->mpu);
}

static u32 qjump_segs(const struct sk_buff *skb)
{
	return max_t(u32, skb_shinfo(skb)->gso_segs, 1);
}

static int qjump_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct qjump_level *l = *(q->level_of + min_t(u32, skb->priority, TC_QJUMP_PRIOS));
	bool is_gso = skb_is_gso(skb);
	u32 segs = is_gso ? qjump_segs(skb) : 1;
	bool oversize = is_gso ? segs > l->limit :
			l->budget && qjump_cost(&q->params, qdisc_pkt_len(skb)) > l->budget;

	if (unlikely(oversize || l->queue.qlen + segs > l->limit)) {
		l->drops++;
		l->oversize += oversize;
		return oversize ? qdisc_drop(skb, sch, to_free) :
				  compat_drop_at_limit(skb, sch, to_free);
	}
	if (is_gso) {
		q->gso++;
		l->queue.qlen += segs - 1;
	}
	__qdisc_enqueue_tail(skb, &l->queue);
	q->backlogged |= l->bit;
	l->backlog += qdisc_pkt_len(skb);
	qstats_backlog_add(sch, qdisc_pkt_len(skb));
	qdisc_qlen_inc(sch);
	return NET_XMIT_SUCCESS;
}

static __always_inline struct sk_buff *qjump_unlink(struct Qdisc *sch, struct qjump_level *l)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = __qdisc_dequeue_head(&l->queue);

	if (!l->queue.head)
		q->backlogged &= ~l->bit;
	l->backlog -= qdisc_pkt_len(skb);
	qstats_backlog_sub(sch, qdisc_pkt_len(skb));
	qdisc_qlen_dec(sch);
	return skb;
}

static __always_inline struct sk_buff *qjump_take(struct Qdisc *sch, struct qjump_level *l)
{
	struct sk_buff *skb = qjump_unlink(sch, l);

	l->packets++;
	l->bytes += qdisc_pkt_len(skb);
	qdisc_bstats_update(sch, skb);
	return skb;
}

/* Inlined slow paths, or array indices that UBSAN checks, make the fast path save registers. */
static noinline void qjump_drop(struct Qdisc *sch, struct qjump_level *l, struct sk_buff *skb)
{
	l->drops++;
	qdisc_qstats_drop(sch);
	qdisc_tree_reduce_backlog(sch, 1, qdisc_pkt_len(skb));
	kfree_skb(skb);
}

/* Replace the head of the queue by its segments. */
static noinline void qjump_split(struct Qdisc *sch, struct qjump_level *l)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = qjump_unlink(sch, l), *segs, *seg, *last;
	int n = 0, bytes = 0;

	segs = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs))
		return qjump_drop(sch, l, skb);
	for (seg = segs; seg; last = seg, seg = seg->next) {
		compat_set_pkt_len(seg, seg->len);
		bytes += seg->len;
		n++;
	}
	last->next = l->queue.head;
	if (!l->queue.head)
		l->queue.tail = last;
	l->queue.head = segs;
	l->queue.qlen += n;
	l->backlog += bytes;
	q->backlogged |= l->bit;
	qstats_backlog_add(sch, bytes);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen + n);
	qdisc_tree_reduce_backlog(sch, 1 - n, qdisc_pkt_len(skb) - bytes);
	consume_skb(skb);
}

/* Slow path: the most urgent level is out of budget, or its head may have to be split. */
static noinline struct sk_buff *qjump_dequeue_others(struct Qdisc *sch, u64 now)
{
	struct qjump_sched *q = qdisc_priv(sch);
	unsigned long held = 0, ready;
	u64 wake = U64_MAX;

	while ((ready = q->backlogged & ~held)) {
		struct qjump_level *l = q->level + __fls(ready);
		u32 cost = qjump_cost(&q->params, qdisc_pkt_len(l->queue.head));

		if (skb_is_gso(l->queue.head)) {
			q->gso--;
			l->queue.qlen -= qjump_segs(l->queue.head) - 1;
			if (q->limited) {
				qjump_split(sch, l);
				continue;
			}
		}
		if (unlikely(l->budget && cost > l->budget)) {	/* a change lowered it */
			l->oversize++;
			qjump_drop(sch, l, qjump_unlink(sch, l));
			continue;
		}
		if (!l->budget || (now >= l->held_until && qjump_admit(q, l, cost, now)))
			return qjump_take(sch, l);
		wake = min(wake, l->held_until);
		held |= l->bit;
	}
	if (held) {
		qdisc_qstats_overlimit(sch);
		qdisc_watchdog_schedule_ns(&q->watchdog, wake);
	}
	return NULL;
}

static noinline struct sk_buff *qjump_dequeue_limited(struct Qdisc *sch, struct qjump_level *l)
{
	struct qjump_sched *q = qdisc_priv(sch);
	u32 cost = qjump_cost(&q->params, qdisc_pkt_len(l->queue.head));
	u64 now = ktime_get_ns();

	if (unlikely(l->used + cost > l->budget))
		return qjump_dequeue_others(sch, now);
	qjump_charge(q, l, cost, now);
	return qjump_take(sch, l);
}

static struct sk_buff *qjump_dequeue(struct Qdisc *sch)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct qjump_level *l;

	if (!q->backlogged)
		return NULL;
	if (unlikely(q->gso))
		return qjump_dequeue_others(sch, q->limited ? ktime_get_ns() : 0);
	l = q->level + __fls(q->backlogged);
	return l->budget ? qjump_dequeue_limited(sch, l) : qjump_take(sch, l);
}

static int qjump_level_parse(struct qjump_params *p, const struct nlattr *attr,
			     struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_QJUMP_LEVEL_MAX + 1];
	int err = nla_parse_nested(tb, TCA_QJUMP_LEVEL_MAX, attr, qjump_level_policy, extack);
	u32 i;

	if (err)
		return err;
	if (!tb[TCA_QJUMP_LEVEL_INDEX])
		return refuse_at(extack, attr, "A level needs an index");
	i = nla_get_uint(tb[TCA_QJUMP_LEVEL_INDEX]);
	p->budget[i] = nla_get_uint_default(tb[TCA_QJUMP_LEVEL_BUDGET], p->budget[i]);
	p->limit[i] = nla_get_uint_default(tb[TCA_QJUMP_LEVEL_LIMIT], p->limit[i]);
	return 0;
}

static int qjump_level_check(const struct net_device *dev, const struct qjump_params *p, int i,
			     const struct nlattr *epoch, struct netlink_ext_ack *extack)
{
	u64 mss = dev->mtu - min(dev->mtu / 2, 80U);	/* TCP over full-size frames */

	if (p->limit[i] < dev->gso_max_segs && p->limit[i] * mss < dev->gso_max_size)
		NL_SET_ERR_MSG_MOD(extack, "A limit is too low for the device's GSO packets");
	if (!p->budget[i])
		return 0;
	if (p->epoch < NSEC_PER_USEC)
		return refuse_at(extack, epoch, "A budget needs an epoch of 1 us or more");
	if (p->budget[i] < qjump_cost(p, TC_QJUMP_MIN_FRAME))
		return refuse(extack, "A frame of 64 bytes costs more than a budget");
	if (p->budget[i] < qjump_cost(p, psched_mtu(dev)))
		NL_SET_ERR_MSG_MOD(extack, "A budget is too small for the device's largest frame");
	if (!memchr(p->priomap, i, sizeof(p->priomap)))
		NL_SET_ERR_MSG_MOD(extack, "A level has a budget, but no priority is mapped to it");
	return 0;
}

static int qjump_params_parse(const struct Qdisc *sch, struct qjump_params *p,
			      const struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_QJUMP_MAX + 1];
	int rem, i, err = nla_parse_nested(tb, TCA_QJUMP_MAX, opt, qjump_policy, extack);
	const struct nlattr *attr;

	if (err)
		return err;
	p->epoch = nla_get_uint_default(tb[TCA_QJUMP_EPOCH], p->epoch);
	p->slack = nla_get_uint_default(tb[TCA_QJUMP_SLACK], p->slack);
	p->overhead = nla_get_uint_default(tb[TCA_QJUMP_OVERHEAD], p->overhead);
	p->mpu = nla_get_uint_default(tb[TCA_QJUMP_MPU], p->mpu);
	if (tb[TCA_QJUMP_PRIOMAP])
		memcpy(p->priomap, nla_data(tb[TCA_QJUMP_PRIOMAP]), TC_QJUMP_PRIOS);
	nla_for_each_nested(attr, opt, rem)
		if (nla_type(attr) == TCA_QJUMP_LEVEL && !err)
			err = qjump_level_parse(p, attr, extack);
	for (i = 0; i < TC_QJUMP_PRIOS; i++)
		if (p->priomap[i] >= TC_QJUMP_LEVELS)
			return refuse_at(extack, tb[TCA_QJUMP_PRIOMAP], "Levels are 0 to 7");
	for (i = 0; i < TC_QJUMP_LEVELS && !err; i++)
		err = qjump_level_check(qdisc_dev(sch), p, i, tb[TCA_QJUMP_EPOCH], extack);
	return err;
}

static int qjump_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct qjump_params p = q->params;
	int i, err = opt ? qjump_params_parse(sch, &p, opt, extack) : 0;
	u64 now;

	if (err)
		return err;
	sch_tree_lock(sch);
	now = ktime_get_ns();
	q->params = p;
	q->limited = 0;
	q->window = p.epoch + p.slack;
	q->quantum = div_u64(q->window, QJUMP_QUANTA) + 1;
	for (i = 0; i <= TC_QJUMP_PRIOS; i++)
		q->level_of[i] = &q->level[p.priomap[i]];
	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		struct qjump_level *l = &q->level[i];
		bool was_unlimited = l->limit && !l->budget;

		l->end = min(l->end, now);	/* the quantum has changed */
		l->held_until = 0;
		l->budget = p.budget[i];
		l->limit = p.limit[i];
		q->limited |= l->budget;
		if (was_unlimited)
			qjump_charge(q, l, l->budget, now);
	}
	if (sch->q.qlen)	/* packets that were held may leave now */
		qdisc_watchdog_schedule_ns(&q->watchdog, now);
	sch_tree_unlock(sch);
	return 0;
}

static int qjump_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct qjump_sched *q = qdisc_priv(sch);
	int i;

	qdisc_watchdog_init(&q->watchdog, sch);
	if (qdisc_under_mq(sch))
		return refuse(extack, "Not below a multi-queue qdisc: budgets would be per queue");
	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		q->level[i].bit = BIT(i);
		q->params.limit[i] = QJUMP_LIMIT;
		q->params.priomap[i] = i;
	}
	return qjump_change(sch, opt, extack);
}

/* Keep the slots: a device that goes down and up must not get a fresh budget. */
static void qjump_reset(struct Qdisc *sch)
{
	struct qjump_sched *q = qdisc_priv(sch);
	int i;

	qdisc_watchdog_cancel(&q->watchdog);
	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		__qdisc_reset_queue(&q->level[i].queue);
		q->level[i].backlog = 0;
		q->level[i].held_until = 0;
	}
	q->backlogged = 0;
	q->gso = 0;
}

/* Put a nest of attributes with types 1 to n. */
static int qjump_put(struct sk_buff *skb, int type, const u64 *value, int n)
{
	struct nlattr *nest = nla_nest_start(skb, type);
	int i, err = nest ? 0 : -EMSGSIZE;

	for (i = 0; i < n && !err; i++)
		err = nla_put_uint(skb, i + 1, value[i]);
	return err ?: nla_nest_end(skb, nest);
}

static int qjump_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct qjump_sched *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);
	u64 i;

	if (!nest || nla_put_uint(skb, TCA_QJUMP_EPOCH, q->params.epoch) ||
	    nla_put_uint(skb, TCA_QJUMP_SLACK, q->params.slack) ||
	    nla_put(skb, TCA_QJUMP_PRIOMAP, TC_QJUMP_PRIOS, q->params.priomap) ||
	    nla_put_uint(skb, TCA_QJUMP_OVERHEAD, q->params.overhead) ||
	    nla_put_uint(skb, TCA_QJUMP_MPU, q->params.mpu))
		return -EMSGSIZE;
	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		u64 value[] = { i, q->params.budget[i], q->params.limit[i] };

		if (qjump_put(skb, TCA_QJUMP_LEVEL, value, ARRAY_SIZE(value)) < 0)
			return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

static int qjump_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct nlattr *nest = nla_nest_start(d->skb, TCA_STATS_APP);
	struct qjump_sched *q = qdisc_priv(sch);
	int err = nest ? 0 : -EMSGSIZE;
	u64 i;

	sch_tree_lock(sch);
	for (i = 0; i < TC_QJUMP_LEVELS && err >= 0; i++) {
		const struct qjump_level *l = &q->level[i];
		u64 value[] = { i, l->packets, l->bytes, l->drops, l->oversize, l->throttled,
				l->queue.qlen, l->backlog };

		err = qjump_put(d->skb, TCA_QJUMP_STATS_LEVEL, value, ARRAY_SIZE(value));
	}
	sch_tree_unlock(sch);
	return err < 0 ? err : nla_nest_end(d->skb, nest);
}

static struct Qdisc_ops qjump_ops __read_mostly = {
	.id		= "qjump",
	.priv_size	= sizeof(struct qjump_sched),
	.enqueue	= qjump_enqueue,
	.dequeue	= qjump_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= qjump_init,
	.reset		= qjump_reset,
	.destroy	= qjump_reset,
	.change		= qjump_change,
	.dump		= qjump_dump,
	.dump_stats	= qjump_dump_stats,
	.owner		= THIS_MODULE,
};
module_driver(qjump_ops, register_qdisc, unregister_qdisc);
MODULE_ALIAS_NET_SCH("qjump");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("QJump: strict priority levels, each with a byte budget in any window");
