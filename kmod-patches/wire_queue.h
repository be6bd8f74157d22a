/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The eight queues of a wire, with a byte limit each.
 */
#ifndef WIRE_QUEUE_H
#define WIRE_QUEUE_H

#include <linux/bitops.h>
#include <linux/ktime.h>
#include "compat.h"
#include "wire_frame.h"
#include "wire_params.h"
#include "wire_pause.h"

struct wire_level {
	struct qdisc_skb_head queue;
	u32	backlog;	/* bytes (L) waiting */
	u32	max_backlog;	/* bytes */
	u64	packets;	/* put on the wire */
	u64	bytes;		/* put on the wire, preamble and gap included */
	u64	drops;		/* packets */
	u64	max_wait;	/* ns from arrival to start */
	u64	max_late;	/* ns from when a frame was due to its handing over */
};

struct wire_queues {
	unsigned long	backlogged;	/* bit p: level p has frames */
	struct wire_level level[TC_WIRE_LEVELS];
};

/* False: the level is full. */
static inline bool wire_queues_add(struct wire_queues *w, const struct wire_params *params,
				   struct Qdisc *sch, struct sk_buff *skb)
{
	u32 p = wire_classify(params, skb), len = wire_frame_len(skb);
	struct wire_level *l = &w->level[p];

	if (unlikely(len > params->limit || l->backlog > params->limit - len)) {
		l->drops++;
		return false;
	}
	*wire_cb(skb) = (struct wire_cb) {
		.time = ktime_get_ns(),
		.level = p,
		.len = len,
	};
	__qdisc_enqueue_tail(skb, &l->queue);
	__set_bit(p, &w->backlogged);
	l->backlog += len;
	l->max_backlog = max(l->max_backlog, l->backlog);
	if (static_branch_unlikely(&wire_pauses))
		wire_pause_charge(sch, skb);
	return true;
}

/*
 * The highest level with a frame by the time the wire is free; if none, the
 * first to come. There is one; start: when it would start.
 */
static inline unsigned long wire_queues_first(const struct wire_queues *w, struct wire_time free,
					      struct wire_time *start)
{
	u64 by = wire_ceil(free), first = U64_MAX;
	unsigned long ready = w->backlogged, best = 0;

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

static inline struct sk_buff *wire_queues_take(struct wire_queues *w, unsigned long p,
					       struct Qdisc *sch, u64 time)
{
	struct wire_level *l = &w->level[p];
	struct sk_buff *skb = __qdisc_dequeue_head(&l->queue);

	if (!l->queue.head)
		__clear_bit(p, &w->backlogged);
	l->backlog -= wire_cb(skb)->len;
	if (static_branch_unlikely(&wire_pauses))
		wire_pause_release(sch, skb, time);
	return skb;
}

static inline void wire_queues_purge(struct wire_queues *w, struct Qdisc *sch, u64 now)
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

static inline int wire_level_dump(const struct wire_level *l, u32 p, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_WIRE_STATS_LEVEL);

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
	return nla_nest_end(skb, nest);
}

static inline int wire_queues_dump(const struct wire_queues *w, struct sk_buff *skb)
{
	int p, err = 0;

	for (p = 0; p < TC_WIRE_LEVELS && err >= 0; p++)
		err = wire_level_dump(&w->level[p], p, skb);
	return err;
}

#endif
