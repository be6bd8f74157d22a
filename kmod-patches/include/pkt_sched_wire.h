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
	TCA_WIRE_LIMIT,		/* u32, bytes of frames waiting per level */
	TCA_WIRE_CLASSIFY,	/* u32, enum tc_wire_classify */
	TCA_WIRE_OVERHEAD,	/* u32, bytes sent with every frame beyond those of Ethernet */
	TCA_WIRE_DELAY,		/* u64, ns: propagation */
	TCA_WIRE_ORPHAN,	/* u32, 1: release the sender's socket when the frame has left */
	TCA_WIRE_XOFF,		/* u32, bytes that came in here and wait: pause; 0: never */
	TCA_WIRE_XON,		/* u32, bytes, below XOFF: resume */
	TCA_WIRE_JITTER,	/* struct tc_wire_quantile[], from 0 to 100 %; empty: none */
	TCA_WIRE_SEED,		/* u64, of the jitter's random numbers */
	TCA_WIRE_PFC,		/* u32, bit p: level p is paused alone; 0: the link is paused */
	__TCA_WIRE_MAX
};

#define TCA_WIRE_MAX (__TCA_WIRE_MAX - 1)

enum tc_wire_classify {
	TC_WIRE_PCP,		/* by the priority code point of the outer VLAN tag; untagged: 0 */
	TC_WIRE_PRIORITY,	/* by skb->priority; above 7: level 0 */
	TC_WIRE_FIFO,		/* one queue, level 0 */
	__TC_WIRE_CLASSIFY_MAX
};

#define TC_WIRE_QUANTILES	32	/* at most */

struct tc_wire_quantile {
	__u32	share;		/* of 2^32 - 1, ascending */
	__u32	ns;		/* so large a share of frames takes no longer than this */
};

/* TCA_STATS_APP holds these. */
enum {
	TCA_WIRE_STATS_UNSPEC,
	TCA_WIRE_STATS_PAD,
	TCA_WIRE_STATS_LEVEL,		/* nest of TCA_WIRE_LEVEL_STATS_*, one for each level */
	TCA_WIRE_STATS_PAUSE_ON,	/* u32, 1: sends pauses */
	TCA_WIRE_STATS_PAUSE_SENT,	/* u64: pauses, not resumes */
	TCA_WIRE_STATS_PAUSE_RECEIVED,	/* u64 */
	TCA_WIRE_STATS_PAUSED,		/* u64, ns that it was, or a level, up to now */
	TCA_WIRE_STATS_INGRESS,		/* u64: bytes that came in here and wait in wires */
	TCA_WIRE_STATS_MAX_INGRESS,	/* u64: high-water mark of one account */
	__TCA_WIRE_STATS_MAX
};

#define TCA_WIRE_STATS_MAX (__TCA_WIRE_STATS_MAX - 1)

enum {
	TCA_WIRE_LEVEL_STATS_UNSPEC,
	TCA_WIRE_LEVEL_STATS_PAD,
	TCA_WIRE_LEVEL_STATS_INDEX,		/* u32, 0 to 7 */
	TCA_WIRE_LEVEL_STATS_PACKETS,		/* u64: put on the wire */
	TCA_WIRE_LEVEL_STATS_BYTES,		/* u64: on the wire, preamble and gap too */
	TCA_WIRE_LEVEL_STATS_DROPS,		/* u64: at the limit */
	TCA_WIRE_LEVEL_STATS_QLEN,		/* u32: frames waiting */
	TCA_WIRE_LEVEL_STATS_BACKLOG,		/* u32: bytes waiting, tag and FCS too */
	TCA_WIRE_LEVEL_STATS_MAX_BACKLOG,	/* u32: high-water mark of the same */
	TCA_WIRE_LEVEL_STATS_MAX_WAIT,		/* u64, ns from arrival to start */
	TCA_WIRE_LEVEL_STATS_MAX_LATE,		/* u64, ns: timers were late by */
	/* with pfc, and where the level has been held */
	TCA_WIRE_LEVEL_STATS_PAUSED,		/* u64, ns that the level was held, up to now */
	TCA_WIRE_LEVEL_STATS_INGRESS,		/* u64: on its account; without pfc all on 0 */
	TCA_WIRE_LEVEL_STATS_MAX_INGRESS,	/* u64: pfc: high-water mark of the same */
	__TCA_WIRE_LEVEL_STATS_MAX
};

#define TCA_WIRE_LEVEL_STATS_MAX (__TCA_WIRE_LEVEL_STATS_MAX - 1)

#endif
