/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The frames that have started and are not yet handed over, by the time at
 * which they are. A constant delay keeps them in the order of their starts: a
 * line. With jitter some overtake the last of the line: those are in a tree.
 */
#ifndef WIRE_FLIGHT_H
#define WIRE_FLIGHT_H

#include <linux/rbtree.h>
#include <linux/skbuff.h>
#include <linux/rtnetlink.h>
#include <net/sch_generic.h>
#include "wire_frame.h"

struct wire_flight {
	struct qdisc_skb_head line;
	struct rb_root	ahead;	/* of the last of the line */
};

static inline void wire_flight_add(struct wire_flight *f, struct sk_buff *skb)
{
	struct rb_node **at = &f->ahead.rb_node, *parent = NULL;
	u64 time = wire_cb(skb)->time;

	if (likely(!f->line.tail || wire_cb(f->line.tail)->time <= time)) {
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

/*
 * The next to be handed over, or NULL. Of two at one time that in the line has
 * started first: the other came when the line went further than that.
 */
static inline struct sk_buff *wire_flight_next(const struct wire_flight *f)
{
	struct sk_buff *skb = f->line.head;
	struct rb_node *node;

	if (likely(RB_EMPTY_ROOT(&f->ahead)))
		return skb;
	node = rb_first(&f->ahead);
	return wire_cb(rb_to_skb(node))->time < wire_cb(skb)->time ? rb_to_skb(node) : skb;
}

static inline void wire_flight_cut(struct wire_flight *f, struct sk_buff *skb)
{
	rb_erase(&skb->rbnode, &f->ahead);
	/* the node lay over these */
	skb->next = NULL;
	skb->prev = NULL;
}

/* Take out skb, which is that of wire_flight_next(). */
static inline void wire_flight_take(struct wire_flight *f, struct sk_buff *skb,
				    struct net_device *dev)
{
	if (likely(skb == f->line.head)) {
		__qdisc_dequeue_head(&f->line);
		return;
	}
	wire_flight_cut(f, skb);
	skb->dev = dev;		/* the node lay over this too */
}

static inline void wire_flight_purge(struct wire_flight *f)
{
	struct rb_node *node;

	__qdisc_reset_queue(&f->line);
	while ((node = rb_first(&f->ahead))) {
		struct sk_buff *skb = rb_to_skb(node);

		wire_flight_cut(f, skb);
		rtnl_kfree_skbs(skb, skb);
	}
}

#endif
