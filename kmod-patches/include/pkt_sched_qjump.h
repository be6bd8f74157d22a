/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Netlink interface of the qjump qdisc, shared by the module and user space.
 * Levels are named by 802.1Q priority: 7 is the most urgent. Only what a message
 * holds is set; an added qdisc has the defaults for the rest. User space must set
 * NLA_F_NESTED on TCA_OPTIONS and on TCA_QJUMP_LEVEL.
 */
#ifndef PKT_SCHED_QJUMP_H
#define PKT_SCHED_QJUMP_H

#include <linux/types.h>

#define TC_QJUMP_LEVELS		8
#define TC_QJUMP_PRIOS		16
#define TC_QJUMP_MIN_FRAME	64	/* bytes; smallest budget that is accepted */

enum {
	TCA_QJUMP_UNSPEC,
	TCA_QJUMP_PAD,
	TCA_QJUMP_EPOCH,	/* u64, ns: length of an epoch */
	TCA_QJUMP_BASE,		/* u64, ns, CLOCK_MONOTONIC: aligned epochs start at base + kT */
	TCA_QJUMP_MODE,		/* u32, enum tc_qjump_mode */
	TCA_QJUMP_EPOCHS,	/* u32, enum tc_qjump_epochs */
	TCA_QJUMP_LEVEL,	/* nest of TCA_QJUMP_LEVEL_*, one for each level that is meant */
	TCA_QJUMP_PRIOMAP,	/* u8[16], skb->priority -> level; above 15: 0 (mode 2015: 7) */
	TCA_QJUMP_OVERHEAD,	/* u32, bytes added to the cost of every packet */
	TCA_QJUMP_MPU,		/* u32, bytes; smallest cost of a packet */
	TCA_QJUMP_SLACK,	/* u64, ns: rolling: frames leave so much later at most */
	__TCA_QJUMP_MAX
};

#define TCA_QJUMP_MAX (__TCA_QJUMP_MAX - 1)

enum {
	TCA_QJUMP_LEVEL_UNSPEC,
	TCA_QJUMP_LEVEL_INDEX,		/* u32, 0 to 7; compulsory */
	TCA_QJUMP_LEVEL_BUDGET,		/* u32, bytes per epoch; 0 = unlimited (2015: nothing) */
	TCA_QJUMP_LEVEL_LIMIT,		/* u32, bytes waiting; 0 = chosen by the module */
	TCA_QJUMP_LEVEL_PACKETS,	/* u32, packets waiting */
	__TCA_QJUMP_LEVEL_MAX
};

#define TCA_QJUMP_LEVEL_MAX (__TCA_QJUMP_LEVEL_MAX - 1)

enum tc_qjump_mode {
	TC_QJUMP_DELAY,		/* hold what exceeds the budget; charged at dequeue */
	TC_QJUMP_DROP,		/* drop what exceeds the budget; charged at enqueue */
	TC_QJUMP_2015,		/* the rules of the module published in 2015 */
	__TC_QJUMP_MODE_MAX
};

enum tc_qjump_epochs {
	TC_QJUMP_ROLLING,	/* at most one budget in any window of one epoch */
	TC_QJUMP_FIRST_PACKET,	/* an epoch starts with the first packet after the last one */
	TC_QJUMP_ALIGNED,	/* epochs start at base + k * epoch */
	__TC_QJUMP_EPOCHS_MAX
};

/* TCA_STATS_APP holds a nest of these for each level. */
enum {
	TCA_QJUMP_STATS_UNSPEC,
	TCA_QJUMP_STATS_LEVEL,
	__TCA_QJUMP_STATS_MAX
};

#define TCA_QJUMP_STATS_MAX (__TCA_QJUMP_STATS_MAX - 1)

enum {
	TCA_QJUMP_LEVEL_STATS_UNSPEC,
	TCA_QJUMP_LEVEL_STATS_PAD,
	TCA_QJUMP_LEVEL_STATS_INDEX,		/* u32, 0 to 7 */
	TCA_QJUMP_LEVEL_STATS_PACKETS,		/* u64: sent */
	TCA_QJUMP_LEVEL_STATS_BYTES,		/* u64: sent, without overhead */
	TCA_QJUMP_LEVEL_STATS_DROPS,		/* u64: dropped, oversize ones too */
	TCA_QJUMP_LEVEL_STATS_OVERSIZE,		/* u64: dropped: dearer than a whole budget */
	TCA_QJUMP_LEVEL_STATS_THROTTLED,	/* u64: had to wait for an epoch */
	TCA_QJUMP_LEVEL_STATS_QLEN,		/* u32: packets waiting */
	TCA_QJUMP_LEVEL_STATS_BACKLOG,		/* u32: bytes waiting */
	TCA_QJUMP_LEVEL_STATS_LIMIT,		/* u32: bytes; the limit in force */
	__TCA_QJUMP_LEVEL_STATS_MAX
};

#define TCA_QJUMP_LEVEL_STATS_MAX (__TCA_QJUMP_LEVEL_STATS_MAX - 1)

#endif
