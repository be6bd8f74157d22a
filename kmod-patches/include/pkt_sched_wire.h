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

#define TC_WIRE_XSTATS_VERSION	3

struct tc_wire_level_xstats {
	__u64	packets;	/* put on the wire */
	__u64	bytes;		/* on the wire, with preamble, tag, FCS and gap */
	__u64	drops;		/* at the limit */
	__u32	qlen;		/* frames waiting */
	__u32	backlog;	/* bytes of frames (with tag and FCS) waiting */
	__u32	max_backlog;	/* high-water mark of backlog */
	__u32	pad;
	__u64	max_wait;	/* ns from arrival to start, of frames that waited in this queue */
	__u64	max_late;	/* ns by which timers handed a frame over too late */
};

struct tc_wire_pause_xstats {
	__u64	sent;		/* pauses, not resumes */
	__u64	received;
	__u64	paused;		/* ns that the wire was held, up to now */
	__u64	ingress;	/* bytes of frames that came in here and wait in wires */
	__u64	max_ingress;	/* high-water mark of ingress */
	__u32	on;		/* 1: sends pauses */
	__u32	pad;
};

struct tc_wire_xstats {
	__u32	version;	/* TC_WIRE_XSTATS_VERSION */
	__u32	levels;		/* TC_WIRE_LEVELS */
	struct tc_wire_level_xstats level[TC_WIRE_LEVELS];
	struct tc_wire_pause_xstats pause;
};

#endif
