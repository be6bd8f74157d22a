/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The path of a packet: into its level, charged, and out by priority.
 *
 * Counted in instructions a packet above noqueue, Linux 6.12, gcc 14:
 * - what only some packets need is in functions that are not inline, so that
 *   the others save no registers for it: an unlimited level 447 -> 378;
 * - functions take a level by its address, which the compiler otherwise works
 *   out from the index up to six times, and call one another last; a packet's
 *   cost is kept in its control block: a limited level 552 -> 478.
 * docs/qdisc-cost.md has the figures of today.
 */
#ifndef QJUMP_PACKET_H
#define QJUMP_PACKET_H

#include <linux/bitops.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/skbuff.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "epoch.h"
#include "qjump_params.h"
#include "split.h"

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

static struct qjump_cb *qjump_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct qjump_cb));
	return (struct qjump_cb *)qdisc_skb_cb(skb)->data;
}

static noinline int qjump_drop(struct sk_buff *skb, struct Qdisc *sch, struct qjump_level *l,
			       struct sk_buff **to_free)
{
	l->drops++;
	return qdisc_drop(skb, sch, to_free);
}

static bool qjump_full(const struct qjump_level *l, const struct sk_buff *skb)
{
	return l->queue.qlen >= l->packets_limit || l->backlog + qdisc_pkt_len(skb) > l->limit;
}

static inline int qjump_append(struct sk_buff *skb, struct Qdisc *sch, struct qjump_level *l)
{
	struct qjump_sched *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb);

	__qdisc_enqueue_tail(skb, &l->queue);
	q->backlogged |= l->bit;
	l->backlog += len;
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

/* Mode drop. */
static noinline int qjump_enqueue_charged(struct sk_buff *skb, struct Qdisc *sch,
					  struct qjump_level *l, struct sk_buff **to_free)
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

static noinline int qjump_drop_oversize(struct sk_buff *skb, struct Qdisc *sch,
					struct qjump_level *l, struct sk_buff **to_free)
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
		return qjump_drop(skb, sch, l, to_free);
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

static noinline int qjump_enqueue_gso(struct sk_buff *skb, struct Qdisc *sch,
				      struct qjump_level *l, struct sk_buff **to_free)
{
	struct qjump_sched *q = qdisc_priv(sch);
	u32 cost = qjump_cost(&q->params, skb);
	int ret;

	if (!qjump_splits(q, l, skb, cost))
		return qjump_enqueue_cost(skb, sch, l, cost, to_free);
	ret = split_gso(skb, sch, qjump_enqueue_segment, to_free);
	return ret < 0 ? qjump_drop(skb, sch, l, to_free) : ret;
}

static noinline int qjump_enqueue_limited(struct sk_buff *skb, struct Qdisc *sch,
					  struct qjump_level *l, struct sk_buff **to_free)
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
		return qjump_drop(skb, sch, l, to_free);
	return qjump_append(skb, sch, l);
}

/* 0, and the head of the level is charged; or the time until which it is held. */
static inline u64 qjump_admit(struct qjump_sched *q, struct qjump_level *l, u64 now)
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

static inline struct sk_buff *qjump_take(struct Qdisc *sch, struct qjump_level *l)
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
	sch->qstats.backlog -= len;
	sch->q.qlen--;
	qdisc_bstats_update(sch, skb);
	return skb;
}

/*
 * Some level is held. While the watchdog has not fired, those that were held
 * when it was armed are held still: no need to read the clock for them.
 */
static noinline struct sk_buff *qjump_dequeue_held(struct Qdisc *sch, u64 now)
{
	struct qjump_sched *q = qdisc_priv(sch);
	u64 wake = U64_MAX, armed = U64_MAX;
	unsigned long ready = q->backlogged;

	if (q->asleep) {
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

#endif
