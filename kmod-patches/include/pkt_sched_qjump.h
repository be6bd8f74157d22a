/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Netlink interface of the qjump qdisc, shared by the module and user space.
 * Levels are numbered by 802.1Q priority: 7 is the most urgent. A message changes
 * only the attributes that it contains; a new qdisc takes defaults for the rest.
 * User space must set NLA_F_NESTED on TCA_OPTIONS and on TCA_QJUMP_LEVEL.
 */
#ifndef PKT_SCHED_QJUMP_H
#define PKT_SCHED_QJUMP_H

#include <linux/types.h>

#define TC_QJUMP_LEVELS		8
#define TC_QJUMP_PRIOS		16
#define TC_QJUMP_MIN_FRAME	64	/* bytes in the smallest frame */

enum {
	TCA_QJUMP_UNSPEC,
	TCA_QJUMP_EPOCH,	/* uint, ns: length of an epoch */
	TCA_QJUMP_LEVEL,	/* nest of TCA_QJUMP_LEVEL_*, one for each level to set */
	TCA_QJUMP_PRIOMAP,	/* u8[16], level of skb->priority 0 to 15; above: 0 */
	TCA_QJUMP_OVERHEAD,	/* uint, bytes added to the cost of each packet */
	TCA_QJUMP_MPU,		/* uint, bytes: minimum cost of a packet */
	TCA_QJUMP_SLACK,	/* uint, ns: most by which frames leave late */
	__TCA_QJUMP_MAX
};

#define TCA_QJUMP_MAX (__TCA_QJUMP_MAX - 1)

enum {
	TCA_QJUMP_LEVEL_UNSPEC,
	TCA_QJUMP_LEVEL_INDEX,		/* uint, 0 to 7; required */
	TCA_QJUMP_LEVEL_BUDGET,		/* uint, bytes per epoch; 0 = unlimited */
	TCA_QJUMP_LEVEL_LIMIT,		/* uint, packets (GSO: segments) that may wait */
	__TCA_QJUMP_LEVEL_MAX
};

#define TCA_QJUMP_LEVEL_MAX (__TCA_QJUMP_LEVEL_MAX - 1)

/* TCA_STATS_APP contains one nest of these for each level. */
enum {
	TCA_QJUMP_STATS_UNSPEC,
	TCA_QJUMP_STATS_LEVEL,
	__TCA_QJUMP_STATS_MAX
};

#define TCA_QJUMP_STATS_MAX (__TCA_QJUMP_STATS_MAX - 1)

enum {
	TCA_QJUMP_LEVEL_STATS_UNSPEC,
	TCA_QJUMP_LEVEL_STATS_INDEX,		/* uint, 0 to 7 */
	TCA_QJUMP_LEVEL_STATS_PACKETS,		/* uint: sent */
	TCA_QJUMP_LEVEL_STATS_BYTES,		/* uint: sent, without overhead */
	TCA_QJUMP_LEVEL_STATS_DROPS,		/* uint: dropped, including oversize */
	TCA_QJUMP_LEVEL_STATS_OVERSIZE,		/* uint: dropped, exceeds budget or limit alone */
	TCA_QJUMP_LEVEL_STATS_THROTTLED,	/* uint: had to wait for budget */
	TCA_QJUMP_LEVEL_STATS_QLEN,		/* uint: packets waiting */
	TCA_QJUMP_LEVEL_STATS_BACKLOG,		/* uint: bytes waiting */
	__TCA_QJUMP_LEVEL_STATS_MAX
};

#define TCA_QJUMP_LEVEL_STATS_MAX (__TCA_QJUMP_LEVEL_STATS_MAX - 1)

#endif
