/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parameters of a wire: netlink attributes, what is refused and why. They
 * are parsed into a copy, which replaces the old ones only when it is valid.
 */
#ifndef WIRE_PARAMS_H
#define WIRE_PARAMS_H

#include <linux/if_ether.h>
#include <net/netlink.h>
#include "compat.h"
#include "pkt_sched_wire.h"

#define WIRE_LIMIT	152200	/* bytes; 100 frames of 1522 */
#define WIRE_MIN_RATE	1000ULL			/* bit/s */
#define WIRE_MAX_RATE	1000000000000ULL	/* bit/s */
#define WIRE_MAX_DELAY	(10ULL * NSEC_PER_SEC)
#define WIRE_MAX_JITTER	(4ULL * NSEC_PER_SEC)
#define WIRE_MAX_OVERHEAD 2048	/* bytes */

static const struct nla_policy wire_policy[TCA_WIRE_MAX + 1] = {
	[TCA_WIRE_RATE]		= { .type = NLA_U64 },
	[TCA_WIRE_LIMIT]	= { .type = NLA_U32 },
	[TCA_WIRE_CLASSIFY]	= { .type = NLA_U32 },
	[TCA_WIRE_OVERHEAD]	= { .type = NLA_U32 },
	[TCA_WIRE_DELAY]	= { .type = NLA_U64 },
	[TCA_WIRE_ORPHAN]	= { .type = NLA_U32 },
	[TCA_WIRE_XOFF]		= { .type = NLA_U32 },
	[TCA_WIRE_XON]		= { .type = NLA_U32 },
	[TCA_WIRE_JITTER]	= {
		.type = NLA_BINARY,
		.len = TC_WIRE_QUANTILES * sizeof(struct tc_wire_quantile),
	},
	[TCA_WIRE_SEED]		= { .type = NLA_U64 },
};

struct wire_params {
	u64	rate;		/* bit/s */
	u64	delay;		/* ns */
	u32	limit;		/* bytes per level */
	u32	classify;	/* enum tc_wire_classify */
	u32	overhead;	/* bytes per frame */
	u32	orphan;		/* 0 or 1 */
	u32	xoff;		/* bytes; 0: no pauses */
	u32	xon;		/* bytes */
	u32	quantiles;	/* of jitter; 0: none */
	struct tc_wire_quantile jitter[TC_WIRE_QUANTILES];
	u64	seed;		/* of jitter */
};

static inline int wire_params_check_jitter(const struct wire_params *p,
					   struct netlink_ext_ack *extack)
{
	u32 i, last = p->quantiles - 1;

	if (!p->quantiles)
		return 0;
	if (!last || p->jitter[0].share || p->jitter[last].share != U32_MAX)
		return refuse(extack, "The quantiles of the jitter must go from 0 to 100 %");
	for (i = 1; i <= last; i++)
		if (p->jitter[i].share <= p->jitter[i - 1].share ||
		    p->jitter[i].ns < p->jitter[i - 1].ns)
			return refuse(extack, "The quantiles of the jitter must ascend");
	if (p->jitter[last].ns > WIRE_MAX_JITTER)
		return refuse(extack, "The jitter must not exceed 4 s");
	return 0;
}

/* -EINVAL and the reason, or 0. */
static inline int wire_params_check(const struct wire_params *p, struct netlink_ext_ack *extack)
{
	if (!p->rate)
		return refuse(extack, "A wire needs a rate");
	if (p->rate < WIRE_MIN_RATE || p->rate > WIRE_MAX_RATE)
		return refuse(extack, "The rate must lie between 1 kbit/s and 1 Tbit/s");
	if (p->limit < ETH_ZLEN + ETH_FCS_LEN)
		return refuse(extack, "No frame fits in a limit below 64 bytes");
	if (p->classify >= __TC_WIRE_CLASSIFY_MAX)
		return refuse(extack,
			      "Frames are classified by pcp, by priority or not at all (fifo)");
	if (p->overhead > WIRE_MAX_OVERHEAD)
		return refuse(extack, "The overhead must not exceed 2048 bytes");
	if (p->delay > WIRE_MAX_DELAY)
		return refuse(extack, "The delay must not exceed 10 s");
	if (p->orphan > 1)
		return refuse(extack, "Orphan must be 0 or 1");
	if (p->xon >= max(p->xoff, 1U))
		return refuse(extack, "The threshold of resumes must be below that of pauses");
	return wire_params_check_jitter(p, extack);
}

static inline int wire_params_parse(struct wire_params *p, struct nlattr *opt,
				    struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_WIRE_MAX + 1];
	int err;

	err = nla_parse_nested(tb, TCA_WIRE_MAX, opt, wire_policy, extack);
	if (err)
		return err;
	if (tb[TCA_WIRE_RATE])
		p->rate = nla_get_u64(tb[TCA_WIRE_RATE]);
	if (tb[TCA_WIRE_LIMIT])
		p->limit = nla_get_u32(tb[TCA_WIRE_LIMIT]);
	if (tb[TCA_WIRE_CLASSIFY])
		p->classify = nla_get_u32(tb[TCA_WIRE_CLASSIFY]);
	if (tb[TCA_WIRE_OVERHEAD])
		p->overhead = nla_get_u32(tb[TCA_WIRE_OVERHEAD]);
	if (tb[TCA_WIRE_DELAY])
		p->delay = nla_get_u64(tb[TCA_WIRE_DELAY]);
	if (tb[TCA_WIRE_ORPHAN])
		p->orphan = nla_get_u32(tb[TCA_WIRE_ORPHAN]);
	if (tb[TCA_WIRE_XOFF])
		p->xoff = nla_get_u32(tb[TCA_WIRE_XOFF]);
	if (tb[TCA_WIRE_XON])
		p->xon = nla_get_u32(tb[TCA_WIRE_XON]);
	if (tb[TCA_WIRE_JITTER]) {
		if (nla_len(tb[TCA_WIRE_JITTER]) % sizeof(p->jitter[0]))
			return refuse_at(extack, tb[TCA_WIRE_JITTER],
					 "A quantile of the jitter has 8 bytes");
		p->quantiles = nla_len(tb[TCA_WIRE_JITTER]) / sizeof(p->jitter[0]);
		nla_memcpy(p->jitter, tb[TCA_WIRE_JITTER], sizeof(p->jitter));
	}
	if (tb[TCA_WIRE_SEED])
		p->seed = nla_get_u64(tb[TCA_WIRE_SEED]);
	return wire_params_check(p, extack);
}

static inline int wire_params_dump(const struct wire_params *p, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);

	if (!nest ||
	    nla_put_u64_64bit(skb, TCA_WIRE_RATE, p->rate, TCA_WIRE_PAD) ||
	    nla_put_u32(skb, TCA_WIRE_LIMIT, p->limit) ||
	    nla_put_u32(skb, TCA_WIRE_CLASSIFY, p->classify) ||
	    nla_put_u32(skb, TCA_WIRE_OVERHEAD, p->overhead) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_DELAY, p->delay, TCA_WIRE_PAD) ||
	    nla_put_u32(skb, TCA_WIRE_ORPHAN, p->orphan) ||
	    nla_put_u32(skb, TCA_WIRE_XOFF, p->xoff) ||
	    nla_put_u32(skb, TCA_WIRE_XON, p->xon) ||
	    nla_put(skb, TCA_WIRE_JITTER, p->quantiles * sizeof(p->jitter[0]), p->jitter) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_SEED, p->seed, TCA_WIRE_PAD))
		return -EMSGSIZE;
	return nla_nest_end(skb, nest);
}

#endif
