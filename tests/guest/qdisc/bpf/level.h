/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rolling epochs in BPF, by the rule of kmod-patches/sch_qjump.c: bytes sent are
 * recorded in slots a sixtieth of an epoch wide, and a slot expires an epoch after
 * its newest packet. The loader, checks/bpf.py, fills in the constants.
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
	__u64 rate;		/* bit/s that the qdisc limits itself to; 0: unlimited */
	__u32 overhead;		/* bytes per packet in addition, for rate */
	__u32 budget[LEVELS];	/* bytes per epoch, 0: unlimited */
} rule = {};

/* Return the budget of level p; the modulo is for the verifier. */
static __always_inline __u32 budget(__u32 p)
{
	return rule.budget[p % LEVELS];
}

struct slot {
	__u64 last;		/* ns: departure of its newest packet */
	__u32 bytes;
};

struct account {
	__u64 end;		/* ns: the newest slot takes packets until then */
	__u32 used;		/* bytes in all slots */
	__u32 oldest, next;	/* free-running indices */
	struct slot slot[SLOTS];
};

/*
 * Return the first time, no earlier than `at`, at which `bytes` <= most fit. This
 * forgets slots that expire by then, so nothing may be charged before that time.
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

/* Times never decrease, so if all slots are in use, the oldest has expired. */
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
