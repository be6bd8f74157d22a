// SPDX-License-Identifier: GPL-2.0
/*
 * The parameters of a wire: parsing, validation and dumping of netlink attributes.
 * They are parsed into a copy, which replaces the old parameters only if it is valid.
 */

#include <linux/if_ether.h>
#include <linux/time64.h>
#include <net/netlink.h>

#include "sch_shared.h"
#include "wire.h"

#define WIRE_MIN_RATE	1000ULL			/* bit/s */
#define WIRE_MAX_RATE	1000000000000ULL	/* bit/s */
#define WIRE_MAX_DELAY	(10ULL * NSEC_PER_SEC)
#define WIRE_MAX_JITTER	(4ULL * NSEC_PER_SEC)
#define WIRE_MAX_OVERHEAD 2048	/* bytes */

static struct netlink_range_validation wire_rate_range = {
	.min = WIRE_MIN_RATE,
	.max = WIRE_MAX_RATE,
};

static struct netlink_range_validation wire_delay_range = {
	.max = WIRE_MAX_DELAY,
};

/* At most S32_MAX: backlog plus a frame must not overflow u32 when compared with it. */
static struct netlink_range_validation wire_limit_range = {
	.min = ETH_ZLEN + ETH_FCS_LEN,
	.max = S32_MAX,
};

static const struct nla_policy wire_policy[TCA_WIRE_MAX + 1] = {
	[TCA_WIRE_RATE]		= NLA_POLICY_FULL_RANGE(NLA_U64, &wire_rate_range),
	[TCA_WIRE_LIMIT]	= NLA_POLICY_FULL_RANGE(NLA_U32, &wire_limit_range),
	[TCA_WIRE_CLASSIFY]	= NLA_POLICY_MAX(NLA_U32, __TC_WIRE_CLASSIFY_MAX - 1),
	[TCA_WIRE_OVERHEAD]	= NLA_POLICY_MAX(NLA_U32, WIRE_MAX_OVERHEAD),
	[TCA_WIRE_DELAY]	= NLA_POLICY_FULL_RANGE(NLA_U64, &wire_delay_range),
	[TCA_WIRE_ORPHAN]	= NLA_POLICY_MAX(NLA_U32, 1),
	[TCA_WIRE_XOFF]		= { .type = NLA_U32 },
	[TCA_WIRE_XON]		= { .type = NLA_U32 },
	[TCA_WIRE_JITTER]	= {
		.type = NLA_BINARY,
		.len = TC_WIRE_QUANTILES * sizeof(struct tc_wire_quantile),
	},
	[TCA_WIRE_SEED]		= { .type = NLA_U64 },
	[TCA_WIRE_PFC]		= NLA_POLICY_MAX(NLA_U32, WIRE_ALL_LEVELS),
};

static int wire_params_check_jitter(const struct wire_params *p, struct netlink_ext_ack *extack)
{
	u32 i, last = p->quantiles - 1;

	if (!p->quantiles)
		return 0;
	if (!last || p->jitter[0].share || p->jitter[last].share != U32_MAX)
		return refuse(extack, "Jitter quantiles must start at 0 % and end at 100 %");
	for (i = 1; i <= last; i++)
		if (p->jitter[i].share <= p->jitter[i - 1].share ||
		    p->jitter[i].ns < p->jitter[i - 1].ns)
			return refuse(extack, "Jitter quantiles must be in ascending order");
	if (p->jitter[last].ns > WIRE_MAX_JITTER)
		return refuse(extack, "The jitter must not exceed 4 s");
	return 0;
}

/* Return 0, or -EINVAL with a message. */
static int wire_params_check(const struct wire_params *p, struct netlink_ext_ack *extack)
{
	if (!p->rate)
		return refuse(extack, "A wire needs a rate");
	if (p->xon >= max(p->xoff, 1U))
		return refuse(extack, "XON must be less than XOFF");
	if (p->pfc && !p->xoff)
		return refuse(extack, "PFC needs the thresholds of pause: give XOFF and XON");
	return wire_params_check_jitter(p, extack);
}

/* Replace the policies' "integer out of range" by the parameter and its range. */
static int wire_out_of_range(int err, struct netlink_ext_ack *extack)
{
	const struct nla_policy *policy = extack ? extack->policy : NULL;

	if (err != -ERANGE)	/* the kernel's message is specific enough */
		return err;
	if (policy == &wire_policy[TCA_WIRE_RATE])
		NL_SET_ERR_MSG_MOD(extack, "The rate must lie between 1 kbit/s and 1 Tbit/s");
	else if (policy == &wire_policy[TCA_WIRE_LIMIT])
		NL_SET_ERR_MSG_MOD(extack, "The limit must lie between 64 and 2^31 - 1 bytes");
	else if (policy == &wire_policy[TCA_WIRE_CLASSIFY])
		NL_SET_ERR_MSG_MOD(extack, "Classify must be pcp, priority or fifo");
	else if (policy == &wire_policy[TCA_WIRE_OVERHEAD])
		NL_SET_ERR_MSG_MOD(extack, "The overhead must not exceed 2048 bytes");
	else if (policy == &wire_policy[TCA_WIRE_DELAY])
		NL_SET_ERR_MSG_MOD(extack, "The delay must not exceed 10 s");
	else if (policy == &wire_policy[TCA_WIRE_ORPHAN])
		NL_SET_ERR_MSG_MOD(extack, "Orphan must be 0 or 1");
	else if (policy == &wire_policy[TCA_WIRE_PFC])
		NL_SET_ERR_MSG_MOD(extack, "Only levels 0 to 7 can be paused");
	return err;
}

int wire_params_parse(struct wire_params *p, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_WIRE_MAX + 1];
	int err;

	err = nla_parse_nested(tb, TCA_WIRE_MAX, opt, wire_policy, extack);
	if (err)
		return wire_out_of_range(err, extack);
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
	if (tb[TCA_WIRE_PFC])
		p->pfc = nla_get_u32(tb[TCA_WIRE_PFC]);
	else if (!p->xoff)	/* pauses are switched off */
		p->pfc = 0;
	if (tb[TCA_WIRE_JITTER]) {
		if (nla_len(tb[TCA_WIRE_JITTER]) % sizeof(p->jitter[0]))
			return refuse_at(extack, tb[TCA_WIRE_JITTER],
					 "Each jitter quantile must have 8 bytes");
		p->quantiles = nla_len(tb[TCA_WIRE_JITTER]) / sizeof(p->jitter[0]);
		nla_memcpy(p->jitter, tb[TCA_WIRE_JITTER], sizeof(p->jitter));
	}
	if (tb[TCA_WIRE_SEED])
		p->seed = nla_get_u64(tb[TCA_WIRE_SEED]);
	return wire_params_check(p, extack);
}

static int wire_jitter_dump(const struct wire_params *p, struct sk_buff *skb)
{
	u32 i, quantiles = READ_ONCE(p->quantiles);
	struct tc_wire_quantile *quantile;
	struct nlattr *attr = nla_reserve(skb, TCA_WIRE_JITTER, quantiles * sizeof(*quantile));

	if (!attr)
		return -EMSGSIZE;
	quantile = nla_data(attr);
	for (i = 0; i < quantiles; i++) {
		quantile[i].share = READ_ONCE(p->jitter[i].share);
		quantile[i].ns = READ_ONCE(p->jitter[i].ns);
	}
	return 0;
}

int wire_params_dump(const struct wire_params *p, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);

	if (!nest ||
	    nla_put_u64_64bit(skb, TCA_WIRE_RATE, READ_ONCE(p->rate), TCA_WIRE_PAD) ||
	    nla_put_u32(skb, TCA_WIRE_LIMIT, READ_ONCE(p->limit)) ||
	    nla_put_u32(skb, TCA_WIRE_CLASSIFY, READ_ONCE(p->classify)) ||
	    nla_put_u32(skb, TCA_WIRE_OVERHEAD, READ_ONCE(p->overhead)) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_DELAY, READ_ONCE(p->delay), TCA_WIRE_PAD) ||
	    nla_put_u32(skb, TCA_WIRE_ORPHAN, READ_ONCE(p->orphan)) ||
	    nla_put_u32(skb, TCA_WIRE_XOFF, READ_ONCE(p->xoff)) ||
	    nla_put_u32(skb, TCA_WIRE_XON, READ_ONCE(p->xon)) ||
	    nla_put_u32(skb, TCA_WIRE_PFC, READ_ONCE(p->pfc)) ||
	    wire_jitter_dump(p, skb) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_SEED, READ_ONCE(p->seed), TCA_WIRE_PAD))
		return -EMSGSIZE;
	return nla_nest_end(skb, nest);
}

/* WRITE_ONCE(): dumps may read without our lock. */
void wire_params_store(struct wire_params *to, const struct wire_params *from)
{
	u32 i;

	WRITE_ONCE(to->rate, from->rate);
	WRITE_ONCE(to->delay, from->delay);
	WRITE_ONCE(to->limit, from->limit);
	WRITE_ONCE(to->classify, from->classify);
	WRITE_ONCE(to->overhead, from->overhead);
	WRITE_ONCE(to->orphan, from->orphan);
	WRITE_ONCE(to->xoff, from->xoff);
	WRITE_ONCE(to->xon, from->xon);
	WRITE_ONCE(to->pfc, from->pfc);
	for (i = 0; i < from->quantiles; i++) {
		WRITE_ONCE(to->jitter[i].share, from->jitter[i].share);
		WRITE_ONCE(to->jitter[i].ns, from->jitter[i].ns);
	}
	WRITE_ONCE(to->quantiles, from->quantiles);
	WRITE_ONCE(to->seed, from->seed);
}
