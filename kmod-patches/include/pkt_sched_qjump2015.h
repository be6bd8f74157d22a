/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Netlink interface of the qjump2015 qdisc. Levels are numbered by 802.1Q priority:
 * 7 is the most urgent.
 */
#ifndef PKT_SCHED_QJUMP2015_H
#define PKT_SCHED_QJUMP2015_H

#include <linux/types.h>

#define TC_QJUMP2015_LEVELS	8
#define TC_QJUMP2015_UNLIMITED	0xffffffff

enum {
	TCA_QJUMP2015_UNSPEC,
	TCA_QJUMP2015_PAD,
	TCA_QJUMP2015_EPOCH,	/* u64, ns */
	TCA_QJUMP2015_BUDGETS,	/* u32[8], bytes per epoch; 0: every packet is dropped */
	__TCA_QJUMP2015_MAX
};

#define TCA_QJUMP2015_MAX (__TCA_QJUMP2015_MAX - 1)

struct tc_qjump2015_level {
	__u64	packets;	/* sent */
	__u64	bytes;		/* sent */
	__u64	drops;
	__u64	oversize;	/* of these, larger than a whole budget */
	__u32	qlen;
	__u32	backlog;
};

struct tc_qjump2015_xstats {
	struct tc_qjump2015_level level[TC_QJUMP2015_LEVELS];
};

#endif
