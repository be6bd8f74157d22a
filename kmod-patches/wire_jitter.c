// SPDX-License-Identifier: GPL-2.0
/*
 * Jitter of wires
 *
 * What a frame takes beyond the wire's delay, drawn from quantiles, stands for
 * the time that a host takes for what comes in, which is not the same for any
 * two frames. Frames of one flow stay in order; a frame may overtake those of
 * others. A flow is what network cards choose a receive queue by, unless told
 * otherwise: addresses, and ports if it is TCP.
 */

#include <linux/in.h>
#include <linux/jhash.h>
#include <linux/math64.h>
#include <linux/prandom.h>
#include <linux/rbtree.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <net/flow_dissector.h>
#include <net/sch_generic.h>

#include "wire.h"

/* ns: between two quantiles as many as the share lies between theirs */
static u32 wire_jitter_draw(struct wire_jitter *j, const struct wire_params *p)
{
	u32 share = prandom_u32_state(&j->rnd);
	const struct tc_wire_quantile *q = p->jitter;

	while (share > q[1].share)
		q++;
	return q[0].ns + div_u64((u64)(share - q[0].share) * (q[1].ns - q[0].ns),
				 q[1].share - q[0].share);
}

static u32 wire_jitter_flow(const struct sk_buff *skb)
{
	struct flow_keys keys;
	u32 ports = 0;

	skb_flow_dissect_flow_keys(skb, &keys, 0);
	if (keys.basic.ip_proto == IPPROTO_TCP)
		ports = (__force u32)keys.ports.ports;
	return jhash_3words((__force u32)flow_get_u32_src(&keys),
			    (__force u32)flow_get_u32_dst(&keys), ports, 0);
}

/* Postpone the handing over of a frame, but not to before the last of its flow. */
void wire_jitter_add(struct wire_jitter *j, const struct wire_params *p, struct sk_buff *skb)
{
	u64 *last = &j->last[wire_jitter_flow(skb) % WIRE_FLOWS];

	*last = max(*last, wire_cb(skb)->time + wire_jitter_draw(j, p));
	wire_cb(skb)->time = *last;
}

/* A frame has started that may overtake others: jitter was added to its time. */
void wire_flight_insert(struct wire_flight *f, struct sk_buff *skb)
{
	struct rb_node **at = &f->ahead.rb_node, *parent = NULL;
	u64 time = wire_cb(skb)->time;

	if (!f->line.tail || wire_cb(f->line.tail)->time <= time) {
		__qdisc_enqueue_tail(skb, &f->line);
		return;
	}
	while (*at) {
		parent = *at;
		at = time < wire_cb(rb_to_skb(parent))->time ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&skb->rbnode, parent, at);
	rb_insert_color(&skb->rbnode, &f->ahead);
}

void wire_flight_cut(struct wire_flight *f, struct sk_buff *skb)
{
	rb_erase(&skb->rbnode, &f->ahead);
	/* the node lay over these */
	skb->next = NULL;
	skb->prev = NULL;
}

void wire_flight_purge(struct wire_flight *f)
{
	struct rb_node *node;

	__qdisc_reset_queue(&f->line);
	while ((node = rb_first(&f->ahead))) {
		struct sk_buff *skb = rb_to_skb(node);

		wire_flight_cut(f, skb);
		rtnl_kfree_skbs(skb, skb);
	}
}
