// SPDX-License-Identifier: GPL-2.0
/*
 * Jitter of wires
 *
 * Jitter is added to the delay of each frame, drawn from quantiles. It models the
 * time that a host takes to receive a frame, which differs from frame to frame.
 * Frames of one flow stay in order; frames of different flows may overtake each
 * other. Flows are told apart as network cards do by default to choose a receive
 * queue: by addresses, and for TCP by ports.
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

/* Draw a jitter in ns, interpolating linearly between two quantiles. */
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

/* Delay the handover of a frame by jitter, and until that of the last frame of its flow. */
void wire_jitter_add(struct wire_jitter *j, const struct wire_params *p, struct sk_buff *skb)
{
	u64 *last = &j->last[wire_jitter_flow(skb) % WIRE_FLOWS];

	*last = max(*last, wire_cb(skb)->time + wire_jitter_draw(j, p));
	wire_cb(skb)->time = *last;
}

/* Insert a frame that has started, after jitter was added: it may overtake others. */
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

void wire_flight_remove(struct wire_flight *f, struct sk_buff *skb)
{
	rb_erase(&skb->rbnode, &f->ahead);
	/* rbnode shares a union with these */
	skb->next = NULL;
	skb->prev = NULL;
}

void wire_flight_purge(struct wire_flight *f)
{
	struct rb_node *node;

	__qdisc_reset_queue(&f->line);
	while ((node = rb_first(&f->ahead))) {
		struct sk_buff *skb = rb_to_skb(node);

		wire_flight_remove(f, skb);
		rtnl_kfree_skbs(skb, skb);
	}
}
