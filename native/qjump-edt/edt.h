/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QJump by departure times: the state of the BPF program, shared by its assembler, its loader and
 * the command line.
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
#define MAX_WAITING 100000
#define MAX_INSNS (256 - 20) /* maximum instructions; the program has about half as many */

struct slot {
	uint64_t last; /* ns: departure of its newest packet */
	uint64_t bytes;
};

/* One level: its rule, its account, counters, and the departure times of the latest packets. */
struct level {
	uint64_t budget; /* bytes in any window; 0: unlimited */
	uint64_t window, quantum; /* ns */
	uint64_t limit; /* packets that may wait for their departure time */
	uint64_t overhead, mpu; /* bytes */
	uint64_t last; /* ns: the latest time assigned; packets of a level stay in order */
	uint64_t end; /* ns: the newest slot takes packets until then */
	uint64_t used; /* bytes in all slots */
	uint64_t oldest, next; /* free-running slot indices */
	uint64_t packets, bytes, throttled;
	uint64_t drops, oversize; /* drops at the limit, and for costing more than the budget */
	struct slot slot[SLOTS];
	uint64_t time[]; /* ring: packet n is at n modulo its length */
};

/* The only value of the only map; `show` reads it back. */
struct state {
	uint32_t lock; /* bpf_spin_lock: programs at egress run without a lock */
	uint8_t priomap[PRIORITIES + 4]; /* skb->priority -> level; [16]: above 15 */
	uint64_t epoch, slack; /* ns */
	uint8_t levels[]; /* LEVELS times struct level, including the ring */
};

/* Sizes that depend on the length of the rings. */
struct layout {
	uint32_t ring; /* packets, a power of two */
	uint32_t stride, size; /* bytes per level, and of the whole state */
};

struct layout layout_for(uint64_t limit);
struct level *level_in(struct state *state, const struct layout *layout, unsigned int number);

/* --- the program (program.c) --- */

/* Assemble the program for a map with this layout; return the number of instructions. */
size_t assemble(struct bpf_insn *to, int map, const struct layout *layout);

/* --- the kernel (kernel.c); any refusal exits with a message --- */

void attach(const char *device, struct state *state, const struct layout *layout);
void detach(const char *device);
/* Read the state of the device's program, and set its layout. */
struct state *read_back(const char *device, struct layout *layout);

#endif
