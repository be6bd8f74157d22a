/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a frame takes beyond the wire's delay, drawn from quantiles
 *
 * It stands for the time that a host takes for what comes in, which is not the
 * same for any two frames. Frames of one flow stay in order; a frame may
 * overtake those of others. A flow is what network cards choose a receive queue
 * by, unless told otherwise: addresses, and ports if it is TCP.
 */
#ifndef WIRE_JITTER_H
#define WIRE_JITTER_H

#include <linux/in.h>
#include <linux/jhash.h>
#include <linux/prandom.h>
#include <linux/skbuff.h>
#include <net/flow_dissector.h>
#include "wire_params.h"

#define WIRE_FLOWS	256	/* flows of one hash keep their order among each other */

struct wire_jitter {
	struct rnd_state rnd;
	u64	last[WIRE_FLOWS];	/* ns: when the last frame is handed over */
};

/* ns: between two quantiles as many as the share lies between theirs */
static inline u32 wire_jitter_draw(struct wire_jitter *j, const struct wire_params *p)
{
	u32 share = prandom_u32_state(&j->rnd);
	const struct tc_wire_quantile *q = p->jitter;

	while (share > q[1].share)
		q++;
	return q[0].ns + div_u64((u64)(share - q[0].share) * (q[1].ns - q[0].ns),
				 q[1].share - q[0].share);
}

static inline u32 wire_jitter_flow(const struct sk_buff *skb)
{
	struct flow_keys keys;
	u32 ports = 0;

	skb_flow_dissect_flow_keys(skb, &keys, 0);
	if (keys.basic.ip_proto == IPPROTO_TCP)
		ports = (__force u32)keys.ports.ports;
	return jhash_3words((__force u32)flow_get_u32_src(&keys),
			    (__force u32)flow_get_u32_dst(&keys), ports, 0);
}

/* When a frame is handed over whose last bit and the delay have passed at that time. */
static inline u64 wire_jitter_add(struct wire_jitter *j, const struct wire_params *p,
				  struct sk_buff *skb, u64 time)
{
	u64 *last = &j->last[wire_jitter_flow(skb) % WIRE_FLOWS];

	*last = max(*last, time + wire_jitter_draw(j, p));
	return *last;
}

#endif
