/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QJump by departure times: what the command line asks for, what the BPF program keeps, and how that is loaded.
 */
#ifndef QJUMP_EDT_H
#define QJUMP_EDT_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

#define LEVELS 8
#define PRIORITIES 16
#define QUANTA 60
#define SLOTS 64 /* a power of two, >= QUANTA + 2 */
#define MOST_WAITING 100000
#define LARGEST (256 - 20) /* instructions; the program has half as many */

struct slot {
	uint64_t last; /* ns: when its newest packet departs */
	uint64_t bytes;
};

/* Of one level: the rule, the account, counters, and the times of the packets that came last. */
struct level {
	uint64_t budget; /* bytes in any window, 0: unlimited */
	uint64_t window, quantum; /* ns */
	uint64_t limit; /* packets whose time has not come */
	uint64_t overhead, mpu; /* bytes */
	uint64_t last; /* ns: the time given last; a level is not reordered */
	uint64_t end; /* ns: nobody joins the newest slot from then on */
	uint64_t used; /* bytes in slots */
	uint64_t oldest, next; /* slots, free-running */
	uint64_t packets, bytes, throttled;
	uint64_t drops, oversize; /* where `limit` wait, and what costs more than the budget */
	struct slot slot[SLOTS];
	uint64_t time[]; /* of packet n at n modulo the ring's length */
};

/* The only value of the only map; the program finds itself by it when it is asked what it does. */
struct state {
	uint32_t lock; /* bpf_spin_lock: a device's egress holds none */
	uint8_t priomap[PRIORITIES + 4]; /* skb->priority -> level; after 15: all above */
	uint64_t epoch, slack; /* ns */
	uint8_t levels[]; /* LEVELS times struct level with its ring */
};

/* How long the rings are makes a state as large as it is. */
struct layout {
	uint32_t ring; /* packets, a power of two */
	uint32_t stride, size; /* bytes: of a level, of the state */
};

struct layout layout_for(uint64_t limit);
struct level *level_in(struct state *state, const struct layout *layout, unsigned int number);

/* --- the program (program.c) --- */

/* Instructions for the map of that layout; how many. */
size_t assemble(struct bpf_insn *to, int map, const struct layout *layout);

/* --- the kernel (kernel.c); what it refuses ends the program with a sentence --- */

void attach(const char *device, struct state *state, const struct layout *layout);
void detach(const char *device);
/* The state of the device's program, and its layout. */
struct state *read_back(const char *device, struct layout *layout);

#endif
