/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rolling epochs in BPF, by the rule of kmod-patches/sch_qjump.c: bytes sent are
 * kept in slots a sixtieth of an epoch wide, and a slot is forgotten an epoch
 * after its newest packet. Constants are written by the loader, checks/bpf.py.
 */
#ifndef LEVEL_H
#define LEVEL_H

#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#define LEVELS	8
#define QUANTA	60
#define SLOTS	64	/* a power of two, >= QUANTA + 2 */

const volatile struct {
	__u64 epoch;		/* ns */
	__u64 rate;		/* bit/s that the qdisc keeps to itself, 0: none */
	__u32 overhead;		/* bytes that a packet takes there besides its own */
	__u32 budget[LEVELS];	/* bytes per epoch, 0: unlimited */
} rule = {};

/* Of level p; the remainder is what the verifier asks for. */
static __always_inline __u32 budget(__u32 p)
{
	return rule.budget[p % LEVELS];
}

struct slot {
	__u64 last;		/* ns: when its newest packet leaves */
	__u32 bytes;
};

struct account {
	__u64 end;		/* ns: the newest slot takes packets until then */
	__u32 used;		/* bytes in all slots */
	__u32 oldest, next;	/* free-running indices */
	struct slot slot[SLOTS];
};

/*
 * The first time from `at` on when `bytes` <= most fit. Slots
 * are forgotten that are old then: nothing may be charged before that time.
 */
static __always_inline __u64 fits(struct account *a, __u32 most, __u32 bytes, __u64 at)
{
	for (int i = 0; i < SLOTS && a->used + bytes > most; i++) {
		struct slot *s = &a->slot[a->oldest++ % SLOTS];

		a->used -= s->bytes;
		if (at < s->last + rule.epoch)
			at = s->last + rule.epoch;
	}
	return at;
}

/* Times never decrease, so that when all slots are taken the oldest is old. */
static __always_inline void charge(struct account *a, __u32 bytes, __u64 at)
{
	struct slot *s = &a->slot[(a->next - 1) % SLOTS];

	if (at >= a->end || a->next == a->oldest) {
		if (a->next - a->oldest == SLOTS)
			a->used -= a->slot[a->oldest++ % SLOTS].bytes;
		s = &a->slot[a->next++ % SLOTS];
		s->bytes = 0;
		a->end = at + rule.epoch / QUANTA;
	}
	s->last = at;
	s->bytes += bytes;
	a->used += bytes;
}

#endif
