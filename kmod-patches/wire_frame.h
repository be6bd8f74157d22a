/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A frame of the wire: its length, its level, how long it takes, exactly, and
 * the time stamp of its start.
 */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <linux/if_vlan.h>
#include <linux/math64.h>
#include <linux/skbuff.h>
#include <net/sch_generic.h>
#include "wire_params.h"

#define WIRE_PREAMBLE	8	/* bytes, with the start-of-frame delimiter */
#define WIRE_GAP	12	/* bytes */

struct wire_time {
	u64	ns;
	u64	rest;		/* 1/rate ns, below rate */
};

struct wire_cb {
	u64	time;		/* ns; waiting: arrival, in flight: handing over */
	u32	level : 3;
	u32	len : 29;	/* bytes, L of sch_wire.c */
	u32	charged;	/* number of the wire on whose account it is; 0: none */
};

static inline struct wire_cb *wire_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct wire_cb));
	return (struct wire_cb *)qdisc_skb_cb(skb)->data;
}

/* Bytes from the first of the frame to the last of its FCS. */
static inline u32 wire_frame_len(const struct sk_buff *skb)
{
	u32 trailer = ETH_FCS_LEN + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0);

	return max_t(u32, skb->len + trailer, ETH_ZLEN + ETH_FCS_LEN);
}

static inline u32 wire_classify(const struct wire_params *p, const struct sk_buff *skb)
{
	struct vlan_hdr tag;
	const struct vlan_hdr *vh;

	switch (p->classify) {
	case TC_WIRE_FIFO:
		return 0;
	case TC_WIRE_PRIORITY:
		return skb->priority < TC_WIRE_LEVELS ? skb->priority : 0;
	}
	if (skb_vlan_tag_present(skb))
		return skb_vlan_tag_get_prio(skb);
	if (!eth_type_vlan(skb->protocol))
		return 0;
	vh = skb_header_pointer(skb, ETH_HLEN, sizeof(tag), &tag);
	return vh ? ntohs(vh->h_vlan_TCI) >> VLAN_PRIO_SHIFT : 0;
}

/* t + bytes * 8 / rate, exactly */
static inline struct wire_time wire_after(struct wire_time t, u32 bytes, u64 rate)
{
	u64 rest;

	t.ns += div64_u64_rem((u64)bytes * 8 * NSEC_PER_SEC + t.rest, rate, &rest);
	t.rest = rest;
	return t;
}

static inline u64 wire_ceil(struct wire_time t)
{
	return t.ns + !!t.rest;
}

/* t, but not before ns */
static inline struct wire_time wire_not_before(struct wire_time t, u64 ns)
{
	return ns <= wire_ceil(t) ? t : (struct wire_time) { .ns = ns };
}

/*
 * The transmit time stamp, as a NIC takes it: when the frame starts. A veth
 * stamps when it is handed the frame, which here is one serialisation and D
 * later. It finds no socket to tell, unless frames stay on its account.
 */
static inline void wire_stamp(const struct wire_params *p, struct sk_buff *skb)
{
	if (likely(!skb_shinfo(skb)->tx_flags))
		return;
	skb_tx_timestamp(skb);
	if (!p->orphan)
		skb_shinfo(skb)->tx_flags &= ~SKBTX_SW_TSTAMP;
}

#endif
