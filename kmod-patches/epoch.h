/* SPDX-License-Identifier: GPL-2.0 */
/*
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
 */
#ifndef QJUMP_EPOCH_H
#define QJUMP_EPOCH_H

#include <linux/math64.h>
#include <linux/types.h>
#include "pkt_sched_qjump.h"

#define EPOCH_QUANTA	60
#define EPOCH_SLOTS	64	/* power of two, >= EPOCH_QUANTA + 2 */

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

static inline struct epoch_slot *epoch_slot(struct epoch_account *a, u32 i)
{
	return &a->slot[i % EPOCH_SLOTS];
}

static inline void epoch_reset(struct epoch_account *a)
{
	a->used = 0;
	a->end = 0;
	a->oldest = 0;
	a->next = 0;
}

static inline void epoch_forget_oldest(struct epoch_account *a)
{
	a->used -= epoch_slot(a, a->oldest)->bytes;
	a->oldest++;
}

/* First k with base + k T > now, as a time. */
static inline u64 epoch_next_edge(const struct epoch_rule *r, u64 now)
{
	u64 edge;

	if (now >= r->base)
		return r->base + (div64_u64(now - r->base, r->length) + 1) * r->length;
	edge = r->base - div64_u64(r->base - now, r->length) * r->length;
	return edge > now ? edge : edge + r->length;
}

/*
 * Another rule from now on. What has left in the epoch or the window that now
 * is in stays charged, and no sooner forgotten than by either rule: nobody has
 * a fresh budget for a change.
 */
static inline void epoch_change(const struct epoch_rule *from, const struct epoch_rule *to,
				struct epoch_account *a, u64 now)
{
	bool was_rolling = from->kind == TC_QJUMP_ROLLING;

	if (was_rolling && to->kind == TC_QJUMP_ROLLING) {
		a->end = min(a->end, now + to->quantum);
		return;
	}
	if (was_rolling) {
		while (a->oldest != a->next &&
		       epoch_slot(a, a->oldest)->last + from->length <= now)
			epoch_forget_oldest(a);
	} else if (now >= a->end) {
		a->used = 0;
	}
	a->oldest = 0;
	a->next = 0;
	if (to->kind == TC_QJUMP_ROLLING) {
		a->newest = epoch_slot(a, a->next++);
		*a->newest = (struct epoch_slot) { .last = now, .bytes = a->used };
		a->end = now + to->quantum;
	} else {
		a->end = to->kind == TC_QJUMP_ALIGNED ? epoch_next_edge(to, now) :
							now + to->length;
	}
}

/* Aligned, first-packet: a new epoch. Not inline, to keep registers free. */
static noinline void epoch_begin(const struct epoch_rule *r, struct epoch_account *a, u64 now)
{
	a->used = 0;
	a->end = r->kind == TC_QJUMP_ALIGNED ? epoch_next_edge(r, now) : now + r->length;
}

/* Rolling: forget slots until cost bytes fit; 0, or the time at which they will. */
static noinline u64 epoch_window(const struct epoch_rule *r, struct epoch_account *a,
				 u32 budget, u32 cost, u64 now)
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
static inline void epoch_stamp(const struct epoch_rule *r, struct epoch_account *a,
			       u32 cost, u64 now)
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
static __always_inline u64 epoch_take(const struct epoch_rule *r, struct epoch_account *a,
				      u32 budget, u32 cost, u64 now)
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

#endif
