/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parameters of a qjump qdisc: defaults, netlink attributes, what is
 * refused and why, and what they say of a packet (level and cost). They are
 * parsed into a copy, which replaces the old ones only when all of it has been
 * found valid.
 *
 * Mode 2015 has the rules of the module that its authors published
 * (camsas/qjump-tc, sch_qjump.c at commit bb164fc, 2015; the forks czlee/qjump-tc,
 * which reads the kernel's clock instead of the TSC, and Vincinator/qjump-tc, for
 * Linux 5.9, have the same):
 *
 * - Each level has an epoch and an account of its own. The first epoch starts
 *   when the qdisc is made. A packet that arrives when now >= end starts the next
 *   one: end = now + T, and the whole budget is there again (nothing is carried
 *   over). A packet that is dropped starts one too. So two budgets may leave
 *   back to back: one just before an end, one from it on.
 * - A packet is charged its length when it is enqueued, and dropped if that is
 *   more than what is left. A GSO packet is charged whole. What is dearer than
 *   the budget is never sent, and with a budget of 0 nothing is; "unlimited"
 *   does not exist.
 * - Nothing limits what waits: a parent that holds packets back for k epochs
 *   holds k budgets, and may let them go in one epoch.
 * - Priorities above the top level belong to it. There are min(8, transmit
 *   queues) levels, here always 8.
 * - "autoclass", off by default, tries a refused packet again at the lower levels
 *   (3 is followed by 0) and writes what it found into the socket. Not here:
 *   skb->priority, which it wrote too, queue_mapping and sockets are left alone.
 * - p5rate and p6rate could not be set: the budgets of priorities 2 and 1 were 0.
 */
#ifndef QJUMP_PARAMS_H
#define QJUMP_PARAMS_H

#include <linux/moduleparam.h>
#include <linux/skbuff.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include "compat.h"
#include "epoch.h"
#include "pkt_sched_qjump.h"

#define QJUMP_MAX_OVERHEAD	2048		/* bytes */
#define QJUMP_MIN_LIMIT		(64 * 1024)	/* bytes; default limit of a level */
#define QJUMP_SPLIT		16		/* GSO: largest part of a budget, inverse */
#define QJUMP_PACKETS		1000		/* default limit of a level */
#define QJUMP_UNBOUNDED		S32_MAX		/* bytes; backlogs are u32 */

static unsigned int timeq = 100;	/* us */
static unsigned int bytesq = 128;	/* bytes */
static unsigned int prate[TC_QJUMP_LEVELS] = { 1, 5, 10, 100, 1000, 0, 0, 10000 };
module_param(timeq, uint, 0644);
MODULE_PARM_DESC(timeq, "epoch in us, for a mode 2015 without one");
module_param(bytesq, uint, 0644);
MODULE_PARM_DESC(bytesq, "bytes that a rate of 1 stands for");
module_param_named(p0rate, prate[0], uint, 0644);
MODULE_PARM_DESC(p0rate, "budget of priority 7 in units of bytesq, 0 = unlimited; pXrate is for priority 7 - X");
module_param_named(p1rate, prate[1], uint, 0644);
module_param_named(p2rate, prate[2], uint, 0644);
module_param_named(p3rate, prate[3], uint, 0644);
module_param_named(p4rate, prate[4], uint, 0644);
module_param_named(p5rate, prate[5], uint, 0644);
module_param_named(p6rate, prate[6], uint, 0644);
module_param_named(p7rate, prate[7], uint, 0644);

static struct netlink_range_validation qjump_epoch_range = {
	.min = NSEC_PER_USEC,
	.max = 3600ULL * NSEC_PER_SEC,
};

static struct netlink_range_validation qjump_base_range = {
	.max = S64_MAX,
};

static struct netlink_range_validation qjump_slack_range = {
	.max = 3600ULL * NSEC_PER_SEC,
};

/* Backlogs are u32, and a packet is added to them before they are compared. */
static struct netlink_range_validation qjump_limit_range = {
	.max = QJUMP_UNBOUNDED,
};

static struct netlink_range_validation qjump_packets_range = {
	.min = 1,
	.max = QJUMP_UNBOUNDED,
};

static const struct nla_policy qjump_level_policy[TCA_QJUMP_LEVEL_MAX + 1] = {
	[TCA_QJUMP_LEVEL_INDEX]		= NLA_POLICY_MAX(NLA_U32, TC_QJUMP_LEVELS - 1),
	[TCA_QJUMP_LEVEL_BUDGET]	= { .type = NLA_U32 },
	[TCA_QJUMP_LEVEL_LIMIT]		= NLA_POLICY_FULL_RANGE(NLA_U32, &qjump_limit_range),
	[TCA_QJUMP_LEVEL_PACKETS]	= NLA_POLICY_FULL_RANGE(NLA_U32, &qjump_packets_range),
};

static const struct nla_policy qjump_policy[TCA_QJUMP_MAX + 1] = {
	[TCA_QJUMP_EPOCH]	= NLA_POLICY_FULL_RANGE(NLA_U64, &qjump_epoch_range),
	[TCA_QJUMP_BASE]	= NLA_POLICY_FULL_RANGE(NLA_U64, &qjump_base_range),
	[TCA_QJUMP_MODE]	= NLA_POLICY_MAX(NLA_U32, __TC_QJUMP_MODE_MAX - 1),
	[TCA_QJUMP_EPOCHS]	= NLA_POLICY_MAX(NLA_U32, __TC_QJUMP_EPOCHS_MAX - 1),
	[TCA_QJUMP_LEVEL]	= NLA_POLICY_NESTED(qjump_level_policy),
	[TCA_QJUMP_PRIOMAP]	= NLA_POLICY_EXACT_LEN(TC_QJUMP_PRIOS),
	[TCA_QJUMP_OVERHEAD]	= NLA_POLICY_MAX(NLA_U32, QJUMP_MAX_OVERHEAD),
	[TCA_QJUMP_MPU]		= NLA_POLICY_MAX(NLA_U32, QJUMP_MAX_OVERHEAD),
	[TCA_QJUMP_SLACK]	= NLA_POLICY_FULL_RANGE(NLA_U64, &qjump_slack_range),
};

/* What user space sets; validated as a whole before it is used. */
struct qjump_params {
	u64	epoch;				/* ns, 0 = none given */
	u64	base;				/* ns, CLOCK_MONOTONIC */
	u64	slack;				/* ns */
	u32	mode;				/* enum tc_qjump_mode */
	u32	epochs;				/* enum tc_qjump_epochs */
	u32	budget[TC_QJUMP_LEVELS];	/* bytes per epoch, 0 = unlimited (2015: none) */
	u32	limit[TC_QJUMP_LEVELS];		/* bytes waiting, 0 = automatic */
	u32	packets[TC_QJUMP_LEVELS];	/* packets waiting */
	u32	overhead;			/* bytes per packet */
	u32	mpu;				/* bytes */
	u8	priomap[TC_QJUMP_PRIOS + 1];	/* skb->priority -> level; last: all above */
};

/* Where in a message each parameter came from, for the answer. */
struct qjump_attrs {
	struct nlattr *tb[TCA_QJUMP_MAX + 1];
	const struct nlattr *level[TC_QJUMP_LEVELS];
};

static inline u32 qjump_classify(const struct qjump_params *p, const struct sk_buff *skb)
{
	return p->priomap[min_t(u32, skb->priority, TC_QJUMP_PRIOS)];
}

static inline u32 qjump_cost(const struct qjump_params *p, const struct sk_buff *skb)
{
	u32 segments = skb_is_gso(skb) ? max_t(u32, skb_shinfo(skb)->gso_segs, 1) : 1;

	return max(qdisc_pkt_len(skb) + p->overhead * segments, p->mpu);
}

/* All but epoch and budgets. Mode 2015 has other ones, and allows only those. */
static inline void qjump_params_defaults(struct qjump_params *p, u32 mode)
{
	bool old = mode == TC_QJUMP_2015;
	int i;

	p->mode = mode;
	p->epochs = old ? TC_QJUMP_FIRST_PACKET : TC_QJUMP_ROLLING;
	p->base = 0;
	p->slack = 0;
	p->overhead = 0;
	p->mpu = 0;
	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		p->limit[i] = 0;
		p->packets[i] = old ? U32_MAX : QJUMP_PACKETS;
		p->priomap[i] = i;
	}
	memset(p->priomap + TC_QJUMP_LEVELS, old ? TC_QJUMP_LEVELS - 1 : 0,
	       sizeof(p->priomap) - TC_QJUMP_LEVELS);
}

static inline int qjump_params_check_2015(const struct qjump_params *p,
					  const struct qjump_attrs *at,
					  struct netlink_ext_ack *extack)
{
	struct qjump_params only;
	int i;

	qjump_params_defaults(&only, TC_QJUMP_2015);
	if (p->epochs != only.epochs)
		return refuse_at(extack, at->tb[TCA_QJUMP_EPOCHS],
				 "Epochs in mode 2015 are first-packet");
	if (memcmp(p->priomap, only.priomap, sizeof(only.priomap)))
		return refuse_at(extack, at->tb[TCA_QJUMP_PRIOMAP],
				 "The priority map of mode 2015 is 0 1 2 3 4 5 6 7, then 7");
	if (p->overhead)
		return refuse_at(extack, at->tb[TCA_QJUMP_OVERHEAD], "Mode 2015 knows no overhead");
	if (p->mpu)
		return refuse_at(extack, at->tb[TCA_QJUMP_MPU], "Mode 2015 knows no mpu");
	for (i = 0; i < TC_QJUMP_LEVELS; i++)
		if (p->limit[i] || p->packets[i] != only.packets[i])
			return refuse_at(extack, at->level[i],
					 "Mode 2015 has no limit on what waits");
	return 0;
}

/* -EINVAL and the reason, or 0. */
static inline int qjump_params_check(const struct qjump_params *p, const struct qjump_attrs *at,
				     struct netlink_ext_ack *extack)
{
	bool limited = p->mode == TC_QJUMP_2015;
	int i;

	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		if (p->limit[i] && p->limit[i] < TC_QJUMP_MIN_FRAME)
			return refuse_at(extack, at->level[i],
					 "No frame fits in a limit below 64 bytes");
		if (!p->budget[i])
			continue;
		limited = true;
		if (p->budget[i] < max_t(u32, TC_QJUMP_MIN_FRAME, p->mpu))
			return refuse_at(extack, at->level[i] ?: at->tb[TCA_QJUMP_MPU],
					 "No frame fits in a budget below 64 bytes or below the mpu");
	}
	if (limited && !p->epoch)
		return refuse(extack, "A level with a budget needs an epoch");
	if (p->base && p->epochs != TC_QJUMP_ALIGNED)
		return refuse_at(extack, at->tb[TCA_QJUMP_BASE],
				 "Only aligned epochs have a base time");
	if (p->slack && (p->epochs != TC_QJUMP_ROLLING || p->mode == TC_QJUMP_2015))
		return refuse_at(extack, at->tb[TCA_QJUMP_SLACK],
				 "Only rolling epochs have a slack");
	for (i = 0; i < TC_QJUMP_PRIOS; i++)
		if (p->priomap[i] >= TC_QJUMP_LEVELS)
			return refuse_at(extack, at->tb[TCA_QJUMP_PRIOMAP],
					 "The priority map may only name levels 0 to 7");
	return p->mode == TC_QJUMP_2015 ? qjump_params_check_2015(p, at, extack) : 0;
}

/* A small budget is no mistake where a level carries small packets only. */
static inline void qjump_params_warn(const struct Qdisc *sch, const struct qjump_params *p,
				     struct netlink_ext_ack *extack)
{
	u32 frame = psched_mtu(qdisc_dev(sch)) + p->overhead;
	int i;

	for (i = 0; i < TC_QJUMP_LEVELS; i++)
		if (p->budget[i] && p->budget[i] < frame)
			NL_SET_ERR_MSG(extack,
				       "A budget is below the device's largest frame: such frames are dropped as oversize");
}

/*
 * The limit in force, bytes: a few budgets; where there is none, the queue
 * length of the device. In mode 2015 a level without a budget takes nothing.
 */
static inline u32 qjump_limit(const struct Qdisc *sch, const struct qjump_params *p, int i)
{
	const struct net_device *dev = qdisc_dev(sch);
	u64 bytes = p->budget[i] ? 4ULL * p->budget[i] :
				   (u64)dev->tx_queue_len * psched_mtu(dev);

	if (p->mode == TC_QJUMP_2015)
		return p->budget[i] ? QJUMP_UNBOUNDED : 0;
	return p->limit[i] ?: clamp_t(u64, bytes, QJUMP_MIN_LIMIT, S32_MAX);
}

static inline struct epoch_rule qjump_rule(const struct qjump_params *p)
{
	u64 length = p->epoch + p->slack;

	return (struct epoch_rule) {
		.length = length,
		.quantum = div_u64(length, EPOCH_QUANTA) + 1,
		.base = p->base,
		.kind = p->epochs,
	};
}

/* What mode 2015 means without an epoch: the module's parameters. */
static inline int qjump_params_published(struct qjump_params *p, struct netlink_ext_ack *extack)
{
	int x;

	p->epoch = (u64)timeq * NSEC_PER_USEC;
	if (p->epoch < qjump_epoch_range.min || p->epoch > qjump_epoch_range.max)
		return refuse(extack,
			      "The module parameter timeq must lie between 1 us and 1 hour");
	for (x = 0; x < TC_QJUMP_LEVELS; x++) {
		u64 budget = (u64)prate[x] * bytesq;

		if (budget > U32_MAX)
			return refuse(extack,
				      "A module parameter pXrate times bytesq exceeds 32 bits");
		p->budget[TC_QJUMP_LEVELS - 1 - x] = budget;
	}
	return 0;
}

/* The policies say "integer out of range"; say of what, and which it is. */
static inline int qjump_out_of_range(int err, struct netlink_ext_ack *extack)
{
	const struct nla_policy *policy = extack ? extack->policy : NULL;

	if (err != -ERANGE)	/* a wrong length or type: the kernel says that well */
		return err;
	if (policy == &qjump_policy[TCA_QJUMP_EPOCH])
		NL_SET_ERR_MSG(extack, "The epoch must lie between 1 us and 1 hour");
	else if (policy == &qjump_policy[TCA_QJUMP_BASE])
		NL_SET_ERR_MSG(extack, "The base time must not exceed 2^63 - 1 ns");
	else if (policy == &qjump_policy[TCA_QJUMP_SLACK])
		NL_SET_ERR_MSG(extack, "The slack must not exceed 1 hour");
	else if (policy == &qjump_policy[TCA_QJUMP_MODE])
		NL_SET_ERR_MSG(extack, "The mode must be delay, drop or 2015");
	else if (policy == &qjump_policy[TCA_QJUMP_EPOCHS])
		NL_SET_ERR_MSG(extack, "Epochs must be rolling, first-packet or aligned");
	else if (policy == &qjump_policy[TCA_QJUMP_PRIOMAP])
		NL_SET_ERR_MSG(extack, "The priority map must have 16 entries");
	else if (policy == &qjump_policy[TCA_QJUMP_OVERHEAD] ||
		 policy == &qjump_policy[TCA_QJUMP_MPU])
		NL_SET_ERR_MSG(extack, "Overhead and mpu must not exceed 2048 bytes");
	else if (policy == &qjump_level_policy[TCA_QJUMP_LEVEL_INDEX])
		NL_SET_ERR_MSG(extack, "Levels are 0 to 7");
	else if (policy == &qjump_level_policy[TCA_QJUMP_LEVEL_PACKETS])
		NL_SET_ERR_MSG(extack, "The limit must be 1 to 2^31 - 1 packets");
	else if (policy == &qjump_level_policy[TCA_QJUMP_LEVEL_LIMIT])
		NL_SET_ERR_MSG(extack, "The limit must not exceed 2^31 - 1 bytes");
	return err;
}

static inline int qjump_level_parse(struct qjump_params *p, struct qjump_attrs *at,
				    const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_QJUMP_LEVEL_MAX + 1];
	int err = nla_parse_nested(tb, TCA_QJUMP_LEVEL_MAX, attr, qjump_level_policy, extack);
	u32 i;

	if (err)
		return qjump_out_of_range(err, extack);
	if (!tb[TCA_QJUMP_LEVEL_INDEX])
		return refuse_at(extack, attr, "A level needs its index");
	i = nla_get_u32(tb[TCA_QJUMP_LEVEL_INDEX]);
	if (at->level[i])
		return refuse_at(extack, attr, "A level is named twice");
	at->level[i] = attr;
	if (tb[TCA_QJUMP_LEVEL_BUDGET]) {
		p->budget[i] = nla_get_u32(tb[TCA_QJUMP_LEVEL_BUDGET]);
		/* "level 3 unlimited" would silence the level. */
		if (!p->budget[i] && p->mode == TC_QJUMP_2015 && !at->tb[TCA_QJUMP_MODE])
			return refuse_at(extack, tb[TCA_QJUMP_LEVEL_BUDGET],
					 "In mode 2015 a budget of 0 lets nothing pass: name the mode beside it");
	}
	if (tb[TCA_QJUMP_LEVEL_LIMIT])
		p->limit[i] = nla_get_u32(tb[TCA_QJUMP_LEVEL_LIMIT]);
	if (tb[TCA_QJUMP_LEVEL_PACKETS])
		p->packets[i] = nla_get_u32(tb[TCA_QJUMP_LEVEL_PACKETS]);
	return 0;
}

static inline int qjump_params_parse(struct qjump_params *p, const struct nlattr *opt,
				     struct netlink_ext_ack *extack)
{
	struct qjump_attrs at = {};
	const struct nlattr *attr;
	u32 mode = p->mode;
	int rem, err;

	err = nla_parse_nested(at.tb, TCA_QJUMP_MAX, opt, qjump_policy, extack);
	if (err)
		return qjump_out_of_range(err, extack);
	if (at.tb[TCA_QJUMP_MODE])
		mode = nla_get_u32(at.tb[TCA_QJUMP_MODE]);
	if (mode != p->mode && (mode == TC_QJUMP_2015 || p->mode == TC_QJUMP_2015))
		qjump_params_defaults(p, mode);
	p->mode = mode;
	if (at.tb[TCA_QJUMP_EPOCH])
		p->epoch = nla_get_u64(at.tb[TCA_QJUMP_EPOCH]);
	if (at.tb[TCA_QJUMP_EPOCHS]) {
		p->epochs = nla_get_u32(at.tb[TCA_QJUMP_EPOCHS]);
		if (p->epochs != TC_QJUMP_ALIGNED)
			p->base = 0;
		if (p->epochs != TC_QJUMP_ROLLING)
			p->slack = 0;
	}
	if (at.tb[TCA_QJUMP_SLACK])
		p->slack = nla_get_u64(at.tb[TCA_QJUMP_SLACK]);
	if (at.tb[TCA_QJUMP_BASE])
		p->base = nla_get_u64(at.tb[TCA_QJUMP_BASE]);
	if (at.tb[TCA_QJUMP_PRIOMAP])
		memcpy(p->priomap, nla_data(at.tb[TCA_QJUMP_PRIOMAP]), TC_QJUMP_PRIOS);
	if (at.tb[TCA_QJUMP_OVERHEAD])
		p->overhead = nla_get_u32(at.tb[TCA_QJUMP_OVERHEAD]);
	if (at.tb[TCA_QJUMP_MPU])
		p->mpu = nla_get_u32(at.tb[TCA_QJUMP_MPU]);
	nla_for_each_nested(attr, opt, rem) {
		if (nla_type(attr) != TCA_QJUMP_LEVEL)
			continue;
		err = qjump_level_parse(p, &at, attr, extack);
		if (err)
			return err;
	}
	if (p->mode == TC_QJUMP_2015 && !p->epoch && !at.tb[TCA_QJUMP_LEVEL]) {
		err = qjump_params_published(p, extack);
		if (err)
			return err;
	}
	return qjump_params_check(p, &at, extack);
}

static inline int qjump_level_dump(const struct qjump_params *p, u32 i, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_QJUMP_LEVEL);

	if (!nest || nla_put_u32(skb, TCA_QJUMP_LEVEL_INDEX, i) ||
	    nla_put_u32(skb, TCA_QJUMP_LEVEL_BUDGET, p->budget[i]))
		return -EMSGSIZE;
	if (p->mode != TC_QJUMP_2015 &&
	    (nla_put_u32(skb, TCA_QJUMP_LEVEL_LIMIT, p->limit[i]) ||
	     nla_put_u32(skb, TCA_QJUMP_LEVEL_PACKETS, p->packets[i])))
		return -EMSGSIZE;
	return nla_nest_end(skb, nest);
}

static inline int qjump_params_dump(const struct qjump_params *p, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);
	int i;

	if (!nest)
		return -EMSGSIZE;
	if (p->epoch && nla_put_u64_64bit(skb, TCA_QJUMP_EPOCH, p->epoch, TCA_QJUMP_PAD))
		return -EMSGSIZE;
	if (p->slack && nla_put_u64_64bit(skb, TCA_QJUMP_SLACK, p->slack, TCA_QJUMP_PAD))
		return -EMSGSIZE;
	if (nla_put_u64_64bit(skb, TCA_QJUMP_BASE, p->base, TCA_QJUMP_PAD) ||
	    nla_put_u32(skb, TCA_QJUMP_MODE, p->mode) ||
	    nla_put_u32(skb, TCA_QJUMP_EPOCHS, p->epochs) ||
	    nla_put(skb, TCA_QJUMP_PRIOMAP, TC_QJUMP_PRIOS, p->priomap) ||
	    nla_put_u32(skb, TCA_QJUMP_OVERHEAD, p->overhead) ||
	    nla_put_u32(skb, TCA_QJUMP_MPU, p->mpu))
		return -EMSGSIZE;
	for (i = 0; i < TC_QJUMP_LEVELS; i++)
		if (qjump_level_dump(p, i, skb) < 0)
			return -EMSGSIZE;
	return nla_nest_end(skb, nest);
}

#endif
