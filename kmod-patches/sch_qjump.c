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
 * several budgets may then leave at once). The rules of mode 2015, the kinds of
 * epochs and the proof that "rolling" never lets more than a budget leave in any
 * window of T are below. T is measured at dequeue, by CLOCK_MONOTONIC. (A parent
 * that peeks, as tbf, sends later than that.) Where frames leave at most S ns
 * after that, "slack S" holds them for T + S, and the bound is one on the wire.
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
 *
 * Epochs
 * ------
 * How many bytes a level may send in an epoch of T ns: three rules.
 *
 * first-packet: an epoch of T starts with the first packet seen after the
 *	previous one ended (the rule of 2015). Two budgets can leave across an
 *	edge: the last bytes of one epoch, then the first of the next.
 * aligned: epochs are [base + k T, base + (k+1) T). A window of T touches two
 *	epochs, so at most two budgets leave in it: the factor 2 of the paper's
 *	"network epoch", e >= 2 n P / R.
 * rolling (default): never more than one budget B in [t, t + T), for any t.
 *
 * Rolling: the bytes sent are kept in slots. A packet goes into the newest
 * slot if that was opened less than a quantum q = T / 60 ago, otherwise into a
 * new one; the slot's stamp `last` is moved to the time of its newest packet.
 * `used` is the sum of the slots. From last + T on a slot may be forgotten, and
 * is when its bytes or its place are needed. A packet of c bytes may leave at
 * `now` if used + c <= B.
 *
 * Proof of the bound. Take any window [t, t + T) and the last packet sent in
 * it, at time s. Every byte sent in the window left at some r with
 * s - T < r <= s (as r >= t and s < t + T). Its slot's stamp was, when s was
 * decided, at least r > s - T, so the slot had not been forgotten and the byte
 * was in `used` (or is of this packet). Hence all bytes of the window are
 * <= used + c <= B. Putting a byte into a slot whose stamp is later only keeps
 * it longer, so merging is always safe: that is done as well when all 64
 * slots are taken and none is old enough (a change made the epoch longer). As
 * q < T, the newest slot is not forgotten while packets may still join it.
 *
 * Share. Slots open at least q apart and live less than T + q after that, so
 * at most 62 of them count. A byte is kept at most q too long: a backlogged
 * level gets at least B / (T + q) > 0.983 B / T, less the part of B that its
 * packets do not fill.
 *
 * Mode 2015
 * ---------
 * Mode 2015 has the rules of the module that its authors published
 * (camsas/qjump-tc at commit bb164fc, 2015; the forks czlee/qjump-tc,
 * which reads the kernel's clock instead of the TSC, and Vincinator/qjump-tc, for
 * Linux 5.9, have the same):
 *
 * - Each level has an epoch and an account of its own. The first epoch starts
 *   when the qdisc is made. A packet that arrives when now >= end starts the next
 *   one: end = now + T, and the whole budget is there again (nothing is carried
 *   over). A packet that is dropped starts one too. So two budgets may leave
 *   back to back: one just before an end, one from it on.
 * - A packet is charged its length when it is enqueued, and dropped if that is
 *   more than what is left. A GSO packet is charged whole. What is dearer than
 *   the budget is never sent, and with a budget of 0 nothing is; "unlimited"
 *   does not exist.
 * - Nothing limits what waits: a parent that holds packets back for k epochs
 *   holds k budgets, and may let them go in one epoch.
 * - Priorities above the top level belong to it. There are min(8, transmit
 *   queues) levels, here always 8.
 * - "autoclass", off by default, tries a refused packet again at the lower levels
 *   (3 is followed by 0) and writes what it found into the socket. Not here:
 *   skb->priority, which it wrote too, queue_mapping and sockets are left alone.
 * - p5rate and p6rate could not be set: the budgets of priorities 2 and 1 were 0.
 */

#include <linux/bitops.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "pkt_sched_qjump.h"
#include "sch_shared.h"

#define QJUMP_MAX_OVERHEAD	2048		/* bytes */
#define QJUMP_MIN_LIMIT		(64 * 1024)	/* bytes; default limit of a level */
#define QJUMP_SPLIT		16		/* GSO: largest part of a budget, inverse */
#define QJUMP_PACKETS		1000		/* default limit of a level */
#define QJUMP_UNBOUNDED		S32_MAX		/* bytes; backlogs are u32 */

#define EPOCH_QUANTA	60
#define EPOCH_SLOTS	64	/* power of two, >= EPOCH_QUANTA + 2 */

static unsigned int timeq = 100;	/* us */
static unsigned int bytesq = 128;	/* bytes */
static unsigned int prate[TC_QJUMP_LEVELS] = { 1, 5, 10, 100, 1000, 0, 0, 10000 };
module_param(timeq, uint, 0644);
MODULE_PARM_DESC(timeq, "epoch in us, for a mode 2015 without one");
module_param(bytesq, uint, 0644);
MODULE_PARM_DESC(bytesq, "bytes that a rate of 1 stands for");
module_param_named(p0rate, prate[0], uint, 0644);
MODULE_PARM_DESC(p0rate, "budget of priority 7 in units of bytesq, 0 = nothing passes; pXrate is for priority 7 - X");
module_param_named(p1rate, prate[1], uint, 0644);
module_param_named(p2rate, prate[2], uint, 0644);
module_param_named(p3rate, prate[3], uint, 0644);
module_param_named(p4rate, prate[4], uint, 0644);
module_param_named(p5rate, prate[5], uint, 0644);
module_param_named(p6rate, prate[6], uint, 0644);
module_param_named(p7rate, prate[7], uint, 0644);

static struct netlink_range_validation qjump_epoch_range = {
	.min = NSEC_PER_USEC,
	.max = 3600ULL * NSEC_PER_SEC,
};

static struct netlink_range_validation qjump_base_range = {
	.max = S64_MAX,
};

static struct netlink_range_validation qjump_slack_range = {
	.max = 3600ULL * NSEC_PER_SEC,
};

/* Backlogs are u32, and a packet is added to them before they are compared. */
static struct netlink_range_validation qjump_limit_range = {
	.max = QJUMP_UNBOUNDED,
};

static struct netlink_range_validation qjump_packets_range = {
	.min = 1,
	.max = QJUMP_UNBOUNDED,
};

static const struct nla_policy qjump_level_policy[TCA_QJUMP_LEVEL_MAX + 1] = {
	[TCA_QJUMP_LEVEL_INDEX]		= NLA_POLICY_MAX(NLA_U32, TC_QJUMP_LEVELS - 1),
	[TCA_QJUMP_LEVEL_BUDGET]	= { .type = NLA_U32 },
	[TCA_QJUMP_LEVEL_LIMIT]		= NLA_POLICY_FULL_RANGE(NLA_U32, &qjump_limit_range),
	[TCA_QJUMP_LEVEL_PACKETS]	= NLA_POLICY_FULL_RANGE(NLA_U32, &qjump_packets_range),
};

static const struct nla_policy qjump_policy[TCA_QJUMP_MAX + 1] = {
	[TCA_QJUMP_EPOCH]	= NLA_POLICY_FULL_RANGE(NLA_U64, &qjump_epoch_range),
	[TCA_QJUMP_BASE]	= NLA_POLICY_FULL_RANGE(NLA_U64, &qjump_base_range),
	[TCA_QJUMP_MODE]	= NLA_POLICY_MAX(NLA_U32, __TC_QJUMP_MODE_MAX - 1),
	[TCA_QJUMP_EPOCHS]	= NLA_POLICY_MAX(NLA_U32, __TC_QJUMP_EPOCHS_MAX - 1),
	[TCA_QJUMP_LEVEL]	= NLA_POLICY_NESTED(qjump_level_policy),
	[TCA_QJUMP_PRIOMAP]	= NLA_POLICY_EXACT_LEN(TC_QJUMP_PRIOS),
	[TCA_QJUMP_OVERHEAD]	= NLA_POLICY_MAX(NLA_U32, QJUMP_MAX_OVERHEAD),
	[TCA_QJUMP_MPU]		= NLA_POLICY_MAX(NLA_U32, QJUMP_MAX_OVERHEAD),
	[TCA_QJUMP_SLACK]	= NLA_POLICY_FULL_RANGE(NLA_U64, &qjump_slack_range),
};

/* What user space sets; validated as a whole before it is used. */
struct qjump_params {
	u64	epoch;				/* ns, 0 = none given */
	u64	base;				/* ns, CLOCK_MONOTONIC */
	u64	slack;				/* ns */
	u32	mode;				/* enum tc_qjump_mode */
	u32	epochs;				/* enum tc_qjump_epochs */
	u32	budget[TC_QJUMP_LEVELS];	/* bytes per epoch, 0 = unlimited (2015: none) */
	u32	limit[TC_QJUMP_LEVELS];		/* bytes waiting, 0 = automatic */
	u32	packets[TC_QJUMP_LEVELS];	/* packets waiting */
	u32	overhead;			/* bytes per packet */
	u32	mpu;				/* bytes */
	u8	priomap[TC_QJUMP_PRIOS + 1];	/* skb->priority -> level; last: all above */
};

/* Where in a message each parameter came from, for the answer. */
struct qjump_attrs {
	struct nlattr *tb[TCA_QJUMP_MAX + 1];
	const struct nlattr *level[TC_QJUMP_LEVELS];
};

struct epoch_rule {
	u64	length;		/* ns; rolling: slack included */
	u64	quantum;	/* ns; rolling only */
	u64	base;		/* ns; aligned only */
	u32	kind;		/* enum tc_qjump_epochs */
};

struct epoch_slot {
	u64	last;		/* ns: when its newest packet left */
	u32	bytes;
};

struct epoch_account {
	u64	used;		/* bytes charged to this epoch or window */
	u64	end;		/* ns: end of the epoch; rolling: of the newest slot */
	struct epoch_slot *newest;	/* rolling; valid before end, or if all are taken */
	u32	oldest;		/* free-running index of the oldest slot */
	u32	next;		/* free-running index of the slot to open next */
	struct epoch_slot *slot;	/* rolling: EPOCH_SLOTS of them */
};

struct qjump_level {
	unsigned long bit;		/* bit p for level p */
	struct qdisc_skb_head queue;
	u32	backlog;		/* bytes waiting */
	u32	limit;			/* bytes */
	u32	packets_limit;		/* packets */
	u32	budget;			/* bytes per epoch */
	bool	limited;		/* it has a budget, or mode 2015 none for it */
	bool	held;			/* the head has been counted as throttled */
	u64	held_until;		/* ns: the head may not leave before */
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
	unsigned long	asleep;		/* bit p: level p is held until the watchdog fires */
	struct epoch_rule rule;
	struct qjump_params params;
	struct qdisc_watchdog watchdog;
	struct qjump_level level[TC_QJUMP_LEVELS];
};

struct qjump_cb {
	u32	cost;			/* bytes; packets of limited levels only; 0: was charged */
};

static struct epoch_slot *epoch_slot(struct epoch_account *a, u32 i)
{
	return &a->slot[i % EPOCH_SLOTS];
}

static void epoch_reset(struct epoch_account *a)
{
	a->used = 0;
	a->end = 0;
	a->oldest = 0;
	a->next = 0;
}

static void epoch_forget_oldest(struct epoch_account *a)
{
	a->used -= epoch_slot(a, a->oldest)->bytes;
	a->oldest++;
}

/* First k with base + k T > now, as a time. */
static u64 epoch_next_edge(const struct epoch_rule *r, u64 now)
{
	u64 edge;

	if (now >= r->base)
		return r->base + (div64_u64(now - r->base, r->length) + 1) * r->length;
	edge = r->base - div64_u64(r->base - now, r->length) * r->length;
	return edge > now ? edge : edge + r->length;
}

/*
 * Another rule from now on. What has left in the epoch or the window that now
 * is in stays charged until the new rule would forget it, and in an epoch at
 * least to its end, if that is sooner: nobody has a fresh budget for a change.
 */
static void epoch_change(const struct epoch_rule *from, const struct epoch_rule *to,
			 struct epoch_account *a, u64 now)
{
	bool was_rolling = from->kind == TC_QJUMP_ROLLING;
	u64 kept = now;

	if (was_rolling && to->kind == TC_QJUMP_ROLLING) {
		/* the newest slot may be older than the new epoch: nobody joins it */
		a->end = min(a->end, now);
		return;
	}
	if (was_rolling) {
		while (a->oldest != a->next &&
		       epoch_slot(a, a->oldest)->last + from->length <= now)
			epoch_forget_oldest(a);
	} else if (now >= a->end) {
		a->used = 0;
	} else {
		kept = min(a->end, now + to->length) - 1;
	}
	a->oldest = 0;
	a->next = 0;
	if (to->kind == TC_QJUMP_ROLLING) {
		a->newest = epoch_slot(a, a->next++);
		*a->newest = (struct epoch_slot) { .last = now, .bytes = a->used };
		a->end = now + to->quantum;
	} else {
		a->end = to->kind == TC_QJUMP_ALIGNED ? epoch_next_edge(to, kept) :
							now + to->length;
	}
}

/* Aligned, first-packet: a new epoch. */
static void epoch_begin(const struct epoch_rule *r, struct epoch_account *a, u64 now)
{
	a->used = 0;
	a->end = r->kind == TC_QJUMP_ALIGNED ? epoch_next_edge(r, now) : now + r->length;
}

/* Rolling: forget slots until cost bytes fit; 0, or the time at which they will. */
static u64 epoch_window(const struct epoch_rule *r, struct epoch_account *a, u32 budget, u32 cost,
			u64 now)
{
	u64 excess;
	u32 i;

	while (a->used + cost > budget) {
		if (epoch_slot(a, a->oldest)->last + r->length > now)
			break;
		epoch_forget_oldest(a);
	}
	if (a->used + cost <= budget)
		return 0;
	excess = a->used + cost - budget;
	for (i = a->oldest; epoch_slot(a, i)->bytes < excess; i++)
		excess -= epoch_slot(a, i)->bytes;
	return epoch_slot(a, i)->last + r->length;
}

/* Rolling: note in a slot that cost bytes leave at now. */
static void epoch_stamp(const struct epoch_rule *r, struct epoch_account *a, u32 cost, u64 now)
{
	struct epoch_slot *s = a->newest;

	if (now >= a->end) {
		if (a->next - a->oldest == EPOCH_SLOTS) {
			if (unlikely(epoch_slot(a, a->oldest)->last + r->length > now))
				goto merge;
			epoch_forget_oldest(a);
		}
		s = epoch_slot(a, a->next++);
		s->bytes = 0;
		a->newest = s;
		a->end = now + r->quantum;
	}
merge:
	s->last = now;
	s->bytes += cost;
}

/*
 * 0 if cost bytes may leave at now, and they are charged; otherwise the time
 * at which they may. The caller guarantees cost <= budget.
 */
static u64 epoch_take(const struct epoch_rule *r, struct epoch_account *a, u32 budget, u32 cost,
		      u64 now)
{
	bool rolling = r->kind == TC_QJUMP_ROLLING;
	u64 until;

	if (!rolling && now >= a->end)
		epoch_begin(r, a, now);
	if (a->used + cost > budget) {
		until = rolling ? epoch_window(r, a, budget, cost, now) : a->end;
		if (until)
			return until;
	}
	a->used += cost;
	if (rolling)
		epoch_stamp(r, a, cost, now);
	return 0;
}

static u32 qjump_classify(const struct qjump_params *p, const struct sk_buff *skb)
{
	return p->priomap[min_t(u32, skb->priority, TC_QJUMP_PRIOS)];
}

static u32 qjump_cost(const struct qjump_params *p, const struct sk_buff *skb)
{
	u32 segments = skb_is_gso(skb) ? max_t(u32, skb_shinfo(skb)->gso_segs, 1) : 1;

	return max(qdisc_pkt_len(skb) + p->overhead * segments, p->mpu);
}

/*
 * The path of a packet: into its level, charged, and out by priority.
 *
 * What only some packets need is in functions that are not inline, lest the
 * others save registers for it. Where the compiler may inline it, an unlimited
 * level costs 9 % more instructions above noqueue and a limited one 7 %
 * (Linux 6.12, gcc 14); docs/qdisc-cost.md has the figures. For the same reason
 * functions take a level by its address and call one another last, and a
 * packet's cost is kept in its control block.
 */

static struct qjump_cb *qjump_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct qjump_cb));
	return (struct qjump_cb *)qdisc_skb_cb(skb)->data;
}

static int qjump_drop(struct sk_buff *skb, struct Qdisc *sch, struct qjump_level *l,
		      struct sk_buff **to_free)
{
	l->drops++;
	return qdisc_drop(skb, sch, to_free);
}

static int qjump_drop_at_limit(struct sk_buff *skb, struct Qdisc *sch, struct qjump_level *l,
			       struct sk_buff **to_free)
{
	l->drops++;
	return compat_drop_at_limit(skb, sch, to_free);
}

static bool qjump_full(const struct qjump_level *l, const struct sk_buff *skb)
{
	return l->queue.qlen >= l->packets_limit || l->backlog + qdisc_pkt_len(skb) > l->limit;
}

static int qjump_append(struct sk_buff *skb, struct Qdisc *sch, struct qjump_level *l)
{
	struct qjump_sched *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb);

	__qdisc_enqueue_tail(skb, &l->queue);
	q->backlogged |= l->bit;
	l->backlog += len;
	qstats_backlog_add(sch, len);
	qdisc_qlen_inc(sch);
	return NET_XMIT_SUCCESS;
}

/* Mode drop. */
static int qjump_enqueue_charged(struct sk_buff *skb, struct Qdisc *sch, struct qjump_level *l,
				 struct sk_buff **to_free)
{
	struct qjump_sched *q = qdisc_priv(sch);

	if (unlikely(q->metered & l->bit)) {	/* a change of mode: what waits is charged first */
		if (l->queue.head)
			return qjump_drop(skb, sch, l, to_free);
		q->metered &= ~l->bit;
	}
	if (epoch_take(&q->rule, &l->account, l->budget, qjump_cb(skb)->cost, ktime_get_ns()))
		return qjump_drop(skb, sch, l, to_free);
	return qjump_append(skb, sch, l);
}

static int qjump_drop_oversize(struct sk_buff *skb, struct Qdisc *sch, struct qjump_level *l,
			       struct sk_buff **to_free)
{
	struct qjump_sched *q = qdisc_priv(sch);

	l->oversize++;
	if (q->params.mode == TC_QJUMP_2015)	/* starts an epoch all the same */
		epoch_take(&q->rule, &l->account, l->budget, qjump_cb(skb)->cost, ktime_get_ns());
	return qjump_drop(skb, sch, l, to_free);
}

static int qjump_enqueue_cost(struct sk_buff *skb, struct Qdisc *sch, struct qjump_level *l,
			      u32 cost, struct sk_buff **to_free)
{
	struct qjump_sched *q = qdisc_priv(sch);

	if (unlikely(qjump_full(l, skb)))
		return qjump_drop_at_limit(skb, sch, l, to_free);
	qjump_cb(skb)->cost = cost;
	if (unlikely(cost > l->budget))
		return qjump_drop_oversize(skb, sch, l, to_free);
	if (q->params.mode != TC_QJUMP_DELAY)
		return qjump_enqueue_charged(skb, sch, l, to_free);
	return qjump_append(skb, sch, l);
}

static int qjump_enqueue_segment(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct qjump_level *l = &q->level[qjump_classify(&q->params, skb)];

	return qjump_enqueue_cost(skb, sch, l, qjump_cost(&q->params, skb), to_free);
}

/* Whether a GSO packet is too dear to be sent as one. */
static bool qjump_splits(const struct qjump_sched *q, const struct qjump_level *l,
			 const struct sk_buff *skb, u32 cost)
{
	return skb_is_gso(skb) && q->params.mode != TC_QJUMP_2015 &&
	       (q->params.mpu || cost > l->budget / QJUMP_SPLIT);
}

/* Not inlined, nor is qjump_dequeue_metered(): packets of no limit would save registers for it. */
static noinline int qjump_enqueue_gso(struct sk_buff *skb, struct Qdisc *sch, struct qjump_level *l,
				      struct sk_buff **to_free)
{
	struct qjump_sched *q = qdisc_priv(sch);
	u32 cost = qjump_cost(&q->params, skb);
	int ret;

	if (!qjump_splits(q, l, skb, cost))
		return qjump_enqueue_cost(skb, sch, l, cost, to_free);
	ret = split_gso(skb, sch, qjump_enqueue_segment, to_free);
	return ret < 0 ? qjump_drop(skb, sch, l, to_free) : ret;
}

static int qjump_enqueue_limited(struct sk_buff *skb, struct Qdisc *sch, struct qjump_level *l,
				 struct sk_buff **to_free)
{
	struct qjump_sched *q = qdisc_priv(sch);

	if (unlikely(skb_is_gso(skb)))
		return qjump_enqueue_gso(skb, sch, l, to_free);
	return qjump_enqueue_cost(skb, sch, l, qjump_cost(&q->params, skb), to_free);
}

static int qjump_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct qjump_level *l = &q->level[qjump_classify(&q->params, skb)];

	if (l->limited)
		return qjump_enqueue_limited(skb, sch, l, to_free);
	if (unlikely(qjump_full(l, skb)))
		return qjump_drop_at_limit(skb, sch, l, to_free);
	return qjump_append(skb, sch, l);
}

/* 0, and the head of the level is charged; or the time until which it is held. */
static u64 qjump_admit(struct qjump_sched *q, struct qjump_level *l, u64 now)
{
	u64 until;

	if (now < l->held_until)
		return l->held_until;
	until = epoch_take(&q->rule, &l->account, l->budget, qjump_cb(l->queue.head)->cost, now);
	if (unlikely(until)) {
		l->held_until = until;
		l->throttled += !l->held;
		l->held = true;
		return until;
	}
	l->held = false;
	return 0;
}

static struct sk_buff *qjump_take(struct Qdisc *sch, struct qjump_level *l)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = l->queue.head;
	u32 len = qdisc_pkt_len(skb);

	l->queue.head = skb->next;
	l->queue.qlen--;
	if (!l->queue.head) {
		l->queue.tail = NULL;
		q->backlogged &= ~l->bit;
	}
	skb_mark_not_on_list(skb);
	l->backlog -= len;
	l->packets++;
	l->bytes += len;
	qstats_backlog_sub(sch, len);
	qdisc_qlen_dec(sch);
	qdisc_bstats_update(sch, skb);
	return skb;
}

/*
 * Some level is held. While the watchdog has not fired, those that were held
 * when it was armed are held still: no need to read the clock for them.
 */
static struct sk_buff *qjump_dequeue_held(struct Qdisc *sch, u64 now)
{
	struct qjump_sched *q = qdisc_priv(sch);
	u64 wake = U64_MAX, armed = U64_MAX;
	unsigned long ready = q->backlogged;

	if (q->asleep) {
		smp_mb();	/* a watchdog that found us scheduled already has fired before */
		if (hrtimer_is_queued(&q->watchdog.timer)) {
			armed = ktime_to_ns(hrtimer_get_softexpires(&q->watchdog.timer));
			ready &= ~q->asleep;
		} else {
			q->asleep = 0;
		}
	}
	while (ready) {
		struct qjump_level *l = &q->level[__fls(ready)];
		u64 until;

		if (!(q->metered & l->bit))
			return qjump_take(sch, l);
		now = now ?: ktime_get_ns();
		until = qjump_admit(q, l, now);
		if (!until)
			return qjump_take(sch, l);
		wake = min(wake, until);
		ready &= ~l->bit;
	}
	qdisc_qstats_overlimit(sch);
	q->asleep = q->backlogged;
	if (wake < armed)
		qdisc_watchdog_schedule_ns(&q->watchdog, wake);
	return NULL;
}

static noinline struct sk_buff *qjump_dequeue_metered(struct Qdisc *sch, struct qjump_level *l)
{
	u64 now = ktime_get_ns();

	if (likely(!qjump_admit(qdisc_priv(sch), l, now)))
		return qjump_take(sch, l);
	return qjump_dequeue_held(sch, now);
}

static struct sk_buff *qjump_dequeue(struct Qdisc *sch)
{
	struct qjump_sched *q = qdisc_priv(sch);
	struct qjump_level *l;

	if (!q->backlogged)
		return NULL;
	if (unlikely(q->asleep))
		return qjump_dequeue_held(sch, 0);
	l = &q->level[__fls(q->backlogged)];
	if (q->metered & l->bit)
		return qjump_dequeue_metered(sch, l);
	return qjump_take(sch, l);
}

/* All but epoch and budgets. Mode 2015 has other ones, and allows only those. */
static void qjump_params_defaults(struct qjump_params *p, u32 mode)
{
	bool old = mode == TC_QJUMP_2015;
	int i;

	p->mode = mode;
	p->epochs = old ? TC_QJUMP_FIRST_PACKET : TC_QJUMP_ROLLING;
	p->base = 0;
	p->slack = 0;
	p->overhead = 0;
	p->mpu = 0;
	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		p->limit[i] = 0;
		p->packets[i] = old ? U32_MAX : QJUMP_PACKETS;
		p->priomap[i] = i;
	}
	memset(p->priomap + TC_QJUMP_LEVELS, old ? TC_QJUMP_LEVELS - 1 : 0,
	       sizeof(p->priomap) - TC_QJUMP_LEVELS);
}

static int qjump_params_check_2015(const struct qjump_params *p, const struct qjump_attrs *at,
				   struct netlink_ext_ack *extack)
{
	struct qjump_params only;
	int i;

	qjump_params_defaults(&only, TC_QJUMP_2015);
	if (p->epochs != only.epochs)
		return refuse_at(extack, at->tb[TCA_QJUMP_EPOCHS],
				 "Epochs in mode 2015 are first-packet");
	if (memcmp(p->priomap, only.priomap, sizeof(only.priomap)))
		return refuse_at(extack, at->tb[TCA_QJUMP_PRIOMAP],
				 "The priority map of mode 2015 is 0 1 2 3 4 5 6 7, then 7");
	if (p->overhead)
		return refuse_at(extack, at->tb[TCA_QJUMP_OVERHEAD], "Mode 2015 knows no overhead");
	if (p->mpu)
		return refuse_at(extack, at->tb[TCA_QJUMP_MPU], "Mode 2015 knows no mpu");
	for (i = 0; i < TC_QJUMP_LEVELS; i++)
		if (p->limit[i] || p->packets[i] != only.packets[i])
			return refuse_at(extack, at->level[i],
					 "Mode 2015 has no limit on what waits");
	return 0;
}

/* -EINVAL and the reason, or 0. */
static int qjump_params_check(const struct qjump_params *p, const struct qjump_attrs *at,
			      struct netlink_ext_ack *extack)
{
	bool limited = p->mode == TC_QJUMP_2015;
	int i;

	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		if (p->limit[i] && p->limit[i] < TC_QJUMP_MIN_FRAME)
			return refuse_at(extack, at->level[i],
					 "No frame fits in a limit below 64 bytes");
		if (!p->budget[i])
			continue;
		limited = true;
		if (p->budget[i] < max_t(u32, TC_QJUMP_MIN_FRAME, p->mpu))
			return refuse_at(extack, at->level[i] ?: at->tb[TCA_QJUMP_MPU],
					 "No frame fits in a budget below 64 bytes or below the mpu");
	}
	if (limited && !p->epoch)
		return refuse(extack, "A level with a budget needs an epoch");
	if (p->base && p->epochs != TC_QJUMP_ALIGNED)
		return refuse_at(extack, at->tb[TCA_QJUMP_BASE],
				 "Only aligned epochs have a base time");
	if (p->slack && (p->epochs != TC_QJUMP_ROLLING || p->mode == TC_QJUMP_2015))
		return refuse_at(extack, at->tb[TCA_QJUMP_SLACK],
				 "Only rolling epochs have a slack");
	for (i = 0; i < TC_QJUMP_PRIOS; i++)
		if (p->priomap[i] >= TC_QJUMP_LEVELS)
			return refuse_at(extack, at->tb[TCA_QJUMP_PRIOMAP],
					 "The priority map may only name levels 0 to 7");
	return p->mode == TC_QJUMP_2015 ? qjump_params_check_2015(p, at, extack) : 0;
}

/* A small budget is no mistake where a level carries small packets only. */
static void qjump_params_warn(const struct Qdisc *sch, const struct qjump_params *p,
			      struct netlink_ext_ack *extack)
{
	u32 frame = psched_mtu(qdisc_dev(sch)) + p->overhead;
	int i;

	for (i = 0; i < TC_QJUMP_LEVELS; i++)
		if (p->budget[i] && p->budget[i] < frame)
			NL_SET_ERR_MSG_MOD(extack,
					   "A budget is below the device's largest frame: such frames are dropped as oversize");
}

/*
 * The limit in force, bytes: a few budgets; where there is none, the queue
 * length of the device. In mode 2015 a level without a budget takes nothing.
 */
static u32 qjump_limit(const struct Qdisc *sch, const struct qjump_params *p, int i)
{
	const struct net_device *dev = qdisc_dev(sch);
	u64 bytes = p->budget[i] ? 4ULL * p->budget[i] :
				   (u64)dev->tx_queue_len * psched_mtu(dev);

	if (p->mode == TC_QJUMP_2015)
		return p->budget[i] ? QJUMP_UNBOUNDED : 0;
	return p->limit[i] ?: clamp_t(u64, bytes, QJUMP_MIN_LIMIT, S32_MAX);
}

static struct epoch_rule qjump_rule(const struct qjump_params *p)
{
	u64 length = p->epoch + p->slack;

	return (struct epoch_rule) {
		.length = length,
		.quantum = div_u64(length, EPOCH_QUANTA) + 1,
		.base = p->base,
		.kind = p->epochs,
	};
}

/* What mode 2015 means without an epoch: the module's parameters. */
static int qjump_params_published(struct qjump_params *p, struct netlink_ext_ack *extack)
{
	int x;

	p->epoch = (u64)timeq * NSEC_PER_USEC;
	if (p->epoch < qjump_epoch_range.min || p->epoch > qjump_epoch_range.max)
		return refuse(extack,
			      "The module parameter timeq must lie between 1 us and 1 hour");
	for (x = 0; x < TC_QJUMP_LEVELS; x++) {
		u64 budget = (u64)prate[x] * bytesq;

		if (budget > U32_MAX)
			return refuse(extack,
				      "A module parameter pXrate times bytesq exceeds 32 bits");
		p->budget[TC_QJUMP_LEVELS - 1 - x] = budget;
	}
	return 0;
}

/* The policies say "integer out of range"; say of what, and which it is. */
static int qjump_out_of_range(int err, struct netlink_ext_ack *extack)
{
	const struct nla_policy *policy = extack ? extack->policy : NULL;

	if (err != -ERANGE)	/* a wrong length or type: the kernel says that well */
		return err;
	if (policy == &qjump_policy[TCA_QJUMP_EPOCH])
		NL_SET_ERR_MSG_MOD(extack, "The epoch must lie between 1 us and 1 hour");
	else if (policy == &qjump_policy[TCA_QJUMP_BASE])
		NL_SET_ERR_MSG_MOD(extack, "The base time must not exceed 2^63 - 1 ns");
	else if (policy == &qjump_policy[TCA_QJUMP_SLACK])
		NL_SET_ERR_MSG_MOD(extack, "The slack must not exceed 1 hour");
	else if (policy == &qjump_policy[TCA_QJUMP_MODE])
		NL_SET_ERR_MSG_MOD(extack, "The mode must be delay, drop or 2015");
	else if (policy == &qjump_policy[TCA_QJUMP_EPOCHS])
		NL_SET_ERR_MSG_MOD(extack, "Epochs must be rolling, first-packet or aligned");
	else if (policy == &qjump_policy[TCA_QJUMP_PRIOMAP])
		NL_SET_ERR_MSG_MOD(extack, "The priority map must have 16 entries");
	else if (policy == &qjump_policy[TCA_QJUMP_OVERHEAD] ||
		 policy == &qjump_policy[TCA_QJUMP_MPU])
		NL_SET_ERR_MSG_MOD(extack, "Overhead and mpu must not exceed 2048 bytes");
	else if (policy == &qjump_level_policy[TCA_QJUMP_LEVEL_INDEX])
		NL_SET_ERR_MSG_MOD(extack, "Levels are 0 to 7");
	else if (policy == &qjump_level_policy[TCA_QJUMP_LEVEL_PACKETS])
		NL_SET_ERR_MSG_MOD(extack, "The limit must be 1 to 2^31 - 1 packets");
	else if (policy == &qjump_level_policy[TCA_QJUMP_LEVEL_LIMIT])
		NL_SET_ERR_MSG_MOD(extack, "The limit must not exceed 2^31 - 1 bytes");
	return err;
}

static int qjump_level_parse(struct qjump_params *p, struct qjump_attrs *at,
			     const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_QJUMP_LEVEL_MAX + 1];
	int err = nla_parse_nested(tb, TCA_QJUMP_LEVEL_MAX, attr, qjump_level_policy, extack);
	u32 i;

	if (err)
		return qjump_out_of_range(err, extack);
	if (!tb[TCA_QJUMP_LEVEL_INDEX])
		return refuse_at(extack, attr, "A level needs its index");
	i = nla_get_u32(tb[TCA_QJUMP_LEVEL_INDEX]);
	if (at->level[i])
		return refuse_at(extack, attr, "A level is named twice");
	at->level[i] = attr;
	if (tb[TCA_QJUMP_LEVEL_BUDGET]) {
		p->budget[i] = nla_get_u32(tb[TCA_QJUMP_LEVEL_BUDGET]);
		/* "level 3 unlimited" would silence the level. */
		if (!p->budget[i] && p->mode == TC_QJUMP_2015 && !at->tb[TCA_QJUMP_MODE])
			return refuse_at(extack, tb[TCA_QJUMP_LEVEL_BUDGET],
					 "In mode 2015 a budget of 0 lets nothing pass: name the mode beside it");
	}
	if (tb[TCA_QJUMP_LEVEL_LIMIT])
		p->limit[i] = nla_get_u32(tb[TCA_QJUMP_LEVEL_LIMIT]);
	if (tb[TCA_QJUMP_LEVEL_PACKETS])
		p->packets[i] = nla_get_u32(tb[TCA_QJUMP_LEVEL_PACKETS]);
	return 0;
}

static int qjump_params_parse(struct qjump_params *p, const struct nlattr *opt,
			      struct netlink_ext_ack *extack)
{
	struct qjump_attrs at = {};
	const struct nlattr *attr;
	u32 mode = p->mode;
	int rem, err;

	err = nla_parse_nested(at.tb, TCA_QJUMP_MAX, opt, qjump_policy, extack);
	if (err)
		return qjump_out_of_range(err, extack);
	if (at.tb[TCA_QJUMP_MODE])
		mode = nla_get_u32(at.tb[TCA_QJUMP_MODE]);
	if (mode != p->mode && (mode == TC_QJUMP_2015 || p->mode == TC_QJUMP_2015))
		qjump_params_defaults(p, mode);
	p->mode = mode;
	if (at.tb[TCA_QJUMP_EPOCH])
		p->epoch = nla_get_u64(at.tb[TCA_QJUMP_EPOCH]);
	if (at.tb[TCA_QJUMP_EPOCHS]) {
		p->epochs = nla_get_u32(at.tb[TCA_QJUMP_EPOCHS]);
		if (p->epochs != TC_QJUMP_ALIGNED)
			p->base = 0;
		if (p->epochs != TC_QJUMP_ROLLING)
			p->slack = 0;
	}
	if (at.tb[TCA_QJUMP_SLACK])
		p->slack = nla_get_u64(at.tb[TCA_QJUMP_SLACK]);
	if (at.tb[TCA_QJUMP_BASE])
		p->base = nla_get_u64(at.tb[TCA_QJUMP_BASE]);
	if (at.tb[TCA_QJUMP_PRIOMAP])
		memcpy(p->priomap, nla_data(at.tb[TCA_QJUMP_PRIOMAP]), TC_QJUMP_PRIOS);
	if (at.tb[TCA_QJUMP_OVERHEAD])
		p->overhead = nla_get_u32(at.tb[TCA_QJUMP_OVERHEAD]);
	if (at.tb[TCA_QJUMP_MPU])
		p->mpu = nla_get_u32(at.tb[TCA_QJUMP_MPU]);
	nla_for_each_nested(attr, opt, rem) {
		if (nla_type(attr) != TCA_QJUMP_LEVEL)
			continue;
		err = qjump_level_parse(p, &at, attr, extack);
		if (err)
			return err;
	}
	if (p->mode == TC_QJUMP_2015 && !p->epoch && !at.tb[TCA_QJUMP_LEVEL]) {
		err = qjump_params_published(p, extack);
		if (err)
			return err;
	}
	return qjump_params_check(p, &at, extack);
}

static int qjump_level_dump(const struct qjump_params *p, u32 i, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_QJUMP_LEVEL);

	if (!nest || nla_put_u32(skb, TCA_QJUMP_LEVEL_INDEX, i) ||
	    nla_put_u32(skb, TCA_QJUMP_LEVEL_BUDGET, READ_ONCE(p->budget[i])))
		return -EMSGSIZE;
	if (READ_ONCE(p->mode) != TC_QJUMP_2015 &&
	    (nla_put_u32(skb, TCA_QJUMP_LEVEL_LIMIT, READ_ONCE(p->limit[i])) ||
	     nla_put_u32(skb, TCA_QJUMP_LEVEL_PACKETS, READ_ONCE(p->packets[i]))))
		return -EMSGSIZE;
	return nla_nest_end(skb, nest);
}

static int qjump_params_dump(const struct qjump_params *p, struct sk_buff *skb)
{
	u64 epoch = READ_ONCE(p->epoch), slack = READ_ONCE(p->slack);
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);
	u8 priomap[TC_QJUMP_PRIOS];
	int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < TC_QJUMP_PRIOS; i++)
		priomap[i] = READ_ONCE(p->priomap[i]);
	if (epoch && nla_put_u64_64bit(skb, TCA_QJUMP_EPOCH, epoch, TCA_QJUMP_PAD))
		return -EMSGSIZE;
	if (slack && nla_put_u64_64bit(skb, TCA_QJUMP_SLACK, slack, TCA_QJUMP_PAD))
		return -EMSGSIZE;
	if (nla_put_u64_64bit(skb, TCA_QJUMP_BASE, READ_ONCE(p->base), TCA_QJUMP_PAD) ||
	    nla_put_u32(skb, TCA_QJUMP_MODE, READ_ONCE(p->mode)) ||
	    nla_put_u32(skb, TCA_QJUMP_EPOCHS, READ_ONCE(p->epochs)) ||
	    nla_put(skb, TCA_QJUMP_PRIOMAP, TC_QJUMP_PRIOS, priomap) ||
	    nla_put_u32(skb, TCA_QJUMP_OVERHEAD, READ_ONCE(p->overhead)) ||
	    nla_put_u32(skb, TCA_QJUMP_MPU, READ_ONCE(p->mpu)))
		return -EMSGSIZE;
	for (i = 0; i < TC_QJUMP_LEVELS; i++)
		if (qjump_level_dump(p, i, skb) < 0)
			return -EMSGSIZE;
	return nla_nest_end(skb, nest);
}

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
	qstats_backlog_sub(sch, backlog);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen - all.qlen);
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

/* For dumps, which may read them without our lock. */
static void qjump_params_store(struct qjump_params *to, const struct qjump_params *from)
{
	int i;

	WRITE_ONCE(to->epoch, from->epoch);
	WRITE_ONCE(to->base, from->base);
	WRITE_ONCE(to->slack, from->slack);
	WRITE_ONCE(to->mode, from->mode);
	WRITE_ONCE(to->epochs, from->epochs);
	WRITE_ONCE(to->overhead, from->overhead);
	WRITE_ONCE(to->mpu, from->mpu);
	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		WRITE_ONCE(to->budget[i], from->budget[i]);
		WRITE_ONCE(to->limit[i], from->limit[i]);
		WRITE_ONCE(to->packets[i], from->packets[i]);
	}
	for (i = 0; i <= TC_QJUMP_PRIOS; i++)
		WRITE_ONCE(to->priomap[i], from->priomap[i]);
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
	qjump_params_store(&q->params, p);
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
	if (n || bytes)
		qdisc_tree_reduce_backlog(sch, n, bytes);
	if (sch->q.qlen)	/* what was held may be free now */
		qdisc_watchdog_schedule_ns(&q->watchdog, ktime_get_ns());
	sch_tree_unlock(sch);
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
