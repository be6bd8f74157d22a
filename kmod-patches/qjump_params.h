/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parameters of a qjump qdisc: defaults, netlink attributes, what is
 * refused and why, and what they say of a packet (level and cost). They are parsed into a copy, which replaces the old ones
 * only when all of it has been found valid.
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

#define QJUMP_MIN_EPOCH		NSEC_PER_USEC
#define QJUMP_MAX_EPOCH		(3600ULL * NSEC_PER_SEC)
#define QJUMP_MAX_OVERHEAD	2048		/* bytes */
#define QJUMP_MIN_LIMIT		(64 * 1024)	/* bytes; default limit of a level */
#define QJUMP_SPLIT		16		/* GSO: largest part of a budget, inverse */
#define QJUMP_PACKETS		1000		/* default limit of a level */

static unsigned int timeq = 100;	/* us */
static unsigned int bytesq = 128;	/* bytes */
static unsigned int prate[TC_QJUMP_LEVELS] = { 1, 5, 10, 100, 1000, 0, 0, 10000 };
module_param(timeq, uint, 0644);
MODULE_PARM_DESC(timeq, "epoch in us, for a bare tc qdisc add");
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

static const struct nla_policy qjump_policy[TCA_QJUMP_MAX + 1] = {
	[TCA_QJUMP_EPOCH]	= { .type = NLA_U64 },
	[TCA_QJUMP_BASE]	= { .type = NLA_U64 },
	[TCA_QJUMP_MODE]	= { .type = NLA_U32 },
	[TCA_QJUMP_EPOCHS]	= { .type = NLA_U32 },
	[TCA_QJUMP_BUDGETS]	= NLA_POLICY_EXACT_LEN(TC_QJUMP_LEVELS * sizeof(u32)),
	[TCA_QJUMP_CHOSEN]	= { .type = NLA_U32 },
	[TCA_QJUMP_LIMIT]	= { .type = NLA_U32 },
	[TCA_QJUMP_PACKETS]	= { .type = NLA_U32 },
	[TCA_QJUMP_PRIOMAP]	= NLA_POLICY_EXACT_LEN(TC_QJUMP_PRIOS),
	[TCA_QJUMP_OVERHEAD]	= { .type = NLA_U32 },
	[TCA_QJUMP_MPU]		= { .type = NLA_U32 },
};

/* What user space sets; validated as a whole before it is used. */
struct qjump_params {
	u64	epoch;				/* ns */
	u64	base;				/* ns, CLOCK_MONOTONIC */
	u32	mode;				/* enum tc_qjump_mode */
	u32	epochs;				/* enum tc_qjump_epochs */
	u32	budget[TC_QJUMP_LEVELS];	/* bytes per epoch, 0 = unlimited */
	u32	limit;				/* bytes per level, 0 = automatic */
	u32	packets;			/* packets per level */
	u32	overhead;			/* bytes per packet */
	u32	mpu;				/* bytes */
	u8	priomap[TC_QJUMP_PRIOS];	/* skb->priority -> level */
};

static inline u32 qjump_classify(const struct qjump_params *p, const struct sk_buff *skb)
{
	return skb->priority < TC_QJUMP_PRIOS ? p->priomap[skb->priority] : 0;
}

static inline u32 qjump_cost(const struct qjump_params *p, const struct sk_buff *skb)
{
	u32 segments = skb_is_gso(skb) ? max_t(u32, skb_shinfo(skb)->gso_segs, 1) : 1;

	return max(qdisc_pkt_len(skb) + p->overhead * segments, p->mpu);
}

/* -EINVAL and the reason, or 0. */
static inline int qjump_params_check(const struct qjump_params *p,
				     struct netlink_ext_ack *extack)
{
	bool limited = false;
	int i;

	for (i = 0; i < TC_QJUMP_LEVELS; i++) {
		if (!p->budget[i])
			continue;
		limited = true;
		if (p->budget[i] < max_t(u32, TC_QJUMP_MIN_FRAME, p->mpu))
			return refuse(extack, "No frame fits in a budget below 64 bytes or below the mpu");
	}
	if (limited && !p->epoch)
		return refuse(extack, "A level with a budget needs an epoch");
	if (p->epoch && (p->epoch < QJUMP_MIN_EPOCH || p->epoch > QJUMP_MAX_EPOCH))
		return refuse(extack, "The epoch must lie between 1 us and 1 hour");
	if (p->mode >= __TC_QJUMP_MODE_MAX)
		return refuse(extack, "The mode must be delay or drop");
	if (p->epochs >= __TC_QJUMP_EPOCHS_MAX)
		return refuse(extack, "Epochs must be rolling, first-packet or aligned");
	if (p->base && p->epochs != TC_QJUMP_ALIGNED)
		return refuse(extack, "Only aligned epochs have a base time");
	if (p->base > S64_MAX)
		return refuse(extack, "The base time must not exceed 2^63 - 1 ns");
	for (i = 0; i < TC_QJUMP_PRIOS; i++)
		if (p->priomap[i] >= TC_QJUMP_LEVELS)
			return refuse(extack, "The priority map may only name levels 0 to 7");
	if (p->overhead > QJUMP_MAX_OVERHEAD || p->mpu > QJUMP_MAX_OVERHEAD)
		return refuse(extack, "Overhead and mpu must not exceed 2048 bytes");
	if (p->limit && p->limit < TC_QJUMP_MIN_FRAME)
		return refuse(extack, "No frame fits in a limit below 64 bytes");
	if (!p->packets)
		return refuse(extack, "The limit must be at least one packet");
	return 0;
}

/* A small budget is no mistake where a level carries small packets only. */
static inline void qjump_params_warn(const struct Qdisc *sch, const struct qjump_params *p,
				     struct netlink_ext_ack *extack)
{
	u32 frame = psched_mtu(qdisc_dev(sch)) + p->overhead;
	int i;

	for (i = 0; i < TC_QJUMP_LEVELS; i++)
		if (p->budget[i] && p->budget[i] < frame)
			NL_SET_ERR_MSG(extack, "A budget is below the device's largest frame: such frames are dropped as oversize");
}

/* A few budgets; where there is none, the queue length of the device. */
static inline u32 qjump_limit(const struct Qdisc *sch, const struct qjump_params *p, int i)
{
	const struct net_device *dev = qdisc_dev(sch);
	u64 bytes = p->budget[i] ? 4ULL * p->budget[i] :
				   (u64)dev->tx_queue_len * psched_mtu(dev);

	return p->limit ?: clamp_t(u64, bytes, QJUMP_MIN_LIMIT, S32_MAX);
}

static inline struct epoch_rule qjump_rule(const struct qjump_params *p)
{
	return (struct epoch_rule) {
		.length = p->epoch,
		.quantum = div_u64(p->epoch, EPOCH_QUANTA) + 1,
		.base = p->base,
		.kind = p->epochs,
	};
}

/* What a bare "tc qdisc add ... qjump" means: the module's parameters. */
static inline int qjump_params_bare(struct qjump_params *p, struct netlink_ext_ack *extack)
{
	int x;

	p->epoch = (u64)timeq * NSEC_PER_USEC;
	for (x = 0; x < TC_QJUMP_LEVELS; x++) {
		u64 budget = (u64)prate[x] * bytesq;

		if (budget > U32_MAX)
			return refuse(extack, "A module parameter pXrate times bytesq exceeds 32 bits");
		p->budget[TC_QJUMP_LEVELS - 1 - x] = budget;
	}
	return 0;
}

static inline void qjump_params_init(struct qjump_params *p)
{
	int i;

	memset(p, 0, sizeof(*p));
	p->packets = QJUMP_PACKETS;
	for (i = 0; i < TC_QJUMP_LEVELS; i++)
		p->priomap[i] = i;
}

static inline int qjump_params_parse(struct qjump_params *p, struct nlattr *opt,
				     struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_QJUMP_MAX + 1];
	u32 chosen;
	int i, err;

	err = nla_parse_nested(tb, TCA_QJUMP_MAX, opt, qjump_policy, extack);
	if (err)
		return err;
	if (tb[TCA_QJUMP_EPOCH])
		p->epoch = nla_get_u64(tb[TCA_QJUMP_EPOCH]);
	if (tb[TCA_QJUMP_MODE])
		p->mode = nla_get_u32(tb[TCA_QJUMP_MODE]);
	if (tb[TCA_QJUMP_EPOCHS]) {
		p->epochs = nla_get_u32(tb[TCA_QJUMP_EPOCHS]);
		if (p->epochs != TC_QJUMP_ALIGNED)
			p->base = 0;
	}
	if (tb[TCA_QJUMP_BASE])
		p->base = nla_get_u64(tb[TCA_QJUMP_BASE]);
	chosen = tb[TCA_QJUMP_CHOSEN] ? nla_get_u32(tb[TCA_QJUMP_CHOSEN]) : U32_MAX;
	for (i = 0; i < TC_QJUMP_LEVELS && tb[TCA_QJUMP_BUDGETS]; i++)
		if (chosen & BIT(i))
			p->budget[i] = ((const u32 *)nla_data(tb[TCA_QJUMP_BUDGETS]))[i];
	if (tb[TCA_QJUMP_LIMIT])
		p->limit = nla_get_u32(tb[TCA_QJUMP_LIMIT]);
	if (tb[TCA_QJUMP_PACKETS])
		p->packets = nla_get_u32(tb[TCA_QJUMP_PACKETS]);
	if (tb[TCA_QJUMP_PRIOMAP])
		memcpy(p->priomap, nla_data(tb[TCA_QJUMP_PRIOMAP]), TC_QJUMP_PRIOS);
	if (tb[TCA_QJUMP_OVERHEAD])
		p->overhead = nla_get_u32(tb[TCA_QJUMP_OVERHEAD]);
	if (tb[TCA_QJUMP_MPU])
		p->mpu = nla_get_u32(tb[TCA_QJUMP_MPU]);
	return 0;
}

static inline int qjump_params_dump(const struct qjump_params *p, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);

	if (!nest ||
	    nla_put_u64_64bit(skb, TCA_QJUMP_EPOCH, p->epoch, TCA_QJUMP_PAD) ||
	    nla_put_u64_64bit(skb, TCA_QJUMP_BASE, p->base, TCA_QJUMP_PAD) ||
	    nla_put_u32(skb, TCA_QJUMP_MODE, p->mode) ||
	    nla_put_u32(skb, TCA_QJUMP_EPOCHS, p->epochs) ||
	    nla_put(skb, TCA_QJUMP_BUDGETS, sizeof(p->budget), p->budget) ||
	    nla_put_u32(skb, TCA_QJUMP_LIMIT, p->limit) ||
	    nla_put_u32(skb, TCA_QJUMP_PACKETS, p->packets) ||
	    nla_put(skb, TCA_QJUMP_PRIOMAP, sizeof(p->priomap), p->priomap) ||
	    nla_put_u32(skb, TCA_QJUMP_OVERHEAD, p->overhead) ||
	    nla_put_u32(skb, TCA_QJUMP_MPU, p->mpu))
		return -EMSGSIZE;
	return nla_nest_end(skb, nest);
}

#endif
