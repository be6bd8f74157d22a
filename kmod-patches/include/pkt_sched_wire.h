/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Netlink interface of the wire qdisc, shared by the module and user space.
 * User space must set NLA_F_NESTED on TCA_OPTIONS.
 */
#ifndef PKT_SCHED_WIRE_H
#define PKT_SCHED_WIRE_H

#include <linux/types.h>

#define TC_WIRE_LEVELS		8

enum {
	TCA_WIRE_UNSPEC,
	TCA_WIRE_PAD,
	TCA_WIRE_RATE,		/* u64, bit/s */
	TCA_WIRE_LIMIT,		/* u32, bytes of frames that may wait per level */
	TCA_WIRE_CLASSIFY,	/* u32, enum tc_wire_classify */
	TCA_WIRE_OVERHEAD,	/* u32, bytes sent with each frame in addition to Ethernet's */
	TCA_WIRE_DELAY,		/* u64, ns: propagation delay */
	TCA_WIRE_ORPHAN,	/* u32, 1: release the sender's socket once the frame has left */
	TCA_WIRE_XOFF,		/* u32, bytes received here that still wait: pause; 0: never */
	TCA_WIRE_XON,		/* u32, bytes, less than XOFF: resume */
	TCA_WIRE_JITTER,	/* struct tc_wire_quantile[], 0 to 100 %; empty: no jitter */
	TCA_WIRE_SEED,		/* u64, seed of the jitter's random numbers */
	TCA_WIRE_PFC,		/* u32, bit p: pause level p alone; 0: pause the link */
	__TCA_WIRE_MAX
};

#define TCA_WIRE_MAX (__TCA_WIRE_MAX - 1)

enum tc_wire_classify {
	TC_WIRE_PCP,		/* priority code point of the outer VLAN tag; untagged: 0 */
	TC_WIRE_PRIORITY,	/* skb->priority; above 7: level 0 */
	TC_WIRE_FIFO,		/* a single queue, level 0 */
	__TC_WIRE_CLASSIFY_MAX
};

#define TC_WIRE_QUANTILES	32	/* maximum */

struct tc_wire_quantile {
	__u32	share;		/* fraction of 2^32 - 1, ascending */
	__u32	ns;		/* jitter that this share of frames does not exceed */
};

/* TCA_STATS_APP contains these. */
enum {
	TCA_WIRE_STATS_UNSPEC,
	TCA_WIRE_STATS_PAD,
	TCA_WIRE_STATS_LEVEL,		/* nest of TCA_WIRE_LEVEL_STATS_*, one for each level */
	TCA_WIRE_STATS_PAUSE_ON,	/* u32, 1: has thresholds, so sends pauses */
	TCA_WIRE_STATS_PAUSE_SENT,	/* u64: pauses, without resumes */
	TCA_WIRE_STATS_PAUSE_RECEIVED,	/* u64 */
	TCA_WIRE_STATS_PAUSED,		/* u64, ns that any level was paused, up to now */
	TCA_WIRE_STATS_INGRESS,		/* u64: bytes received here that wait in wires */
	TCA_WIRE_STATS_MAX_INGRESS,	/* u64: high-water mark of any one account */
	__TCA_WIRE_STATS_MAX
};

#define TCA_WIRE_STATS_MAX (__TCA_WIRE_STATS_MAX - 1)

enum {
	TCA_WIRE_LEVEL_STATS_UNSPEC,
	TCA_WIRE_LEVEL_STATS_PAD,
	TCA_WIRE_LEVEL_STATS_INDEX,		/* u32, 0 to 7 */
	TCA_WIRE_LEVEL_STATS_PACKETS,		/* u64: sent */
	TCA_WIRE_LEVEL_STATS_BYTES,		/* u64: sent, including preamble and gap */
	TCA_WIRE_LEVEL_STATS_DROPS,		/* u64: dropped at the limit */
	TCA_WIRE_LEVEL_STATS_QLEN,		/* u32: frames waiting */
	TCA_WIRE_LEVEL_STATS_BACKLOG,		/* u32: bytes waiting, including tag and FCS */
	TCA_WIRE_LEVEL_STATS_MAX_BACKLOG,	/* u32: high-water mark of the backlog */
	TCA_WIRE_LEVEL_STATS_MAX_WAIT,		/* u64, ns from arrival to start */
	TCA_WIRE_LEVEL_STATS_MAX_LATE,		/* u64, ns that a handover was late */
	/* present with pfc, or once the level has been paused */
	TCA_WIRE_LEVEL_STATS_PAUSED,		/* u64, ns that the level was paused, up to now */
	TCA_WIRE_LEVEL_STATS_INGRESS,		/* u64: on its account; without pfc, on level 0's */
	TCA_WIRE_LEVEL_STATS_MAX_INGRESS,	/* u64: high-water mark of its account */
	__TCA_WIRE_LEVEL_STATS_MAX
};

#define TCA_WIRE_LEVEL_STATS_MAX (__TCA_WIRE_LEVEL_STATS_MAX - 1)

#endif
