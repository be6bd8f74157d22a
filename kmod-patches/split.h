/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A GSO packet, as the packets that it stands for
 */
#ifndef QJUMP_SPLIT_H
#define QJUMP_SPLIT_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include "compat.h"

/*
 * As tbf_segment(): give each segment to enqueue(), and tell our parents, who
 * counted one packet, of the others. The packet is gone then, also when none
 * was queued (NET_XMIT_DROP). -EINVAL: it can't be split, and is still there.
 */
static __always_inline int split_gso(struct sk_buff *skb, struct Qdisc *sch,
				     int (*enqueue)(struct sk_buff *skb, struct Qdisc *sch,
						    struct sk_buff **to_free),
				     struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb) & ~NETIF_F_GSO_MASK;
	unsigned int whole = qdisc_pkt_len(skb), len = 0, seg_len;
	struct sk_buff *segs, *next;
	int n = 0;

	segs = skb_gso_segment(skb, features);
	if (IS_ERR_OR_NULL(segs))
		return -EINVAL;
	skb_list_walk_safe(segs, segs, next) {
		skb_mark_not_on_list(segs);
		seg_len = segs->len;
		compat_set_pkt_len(segs, seg_len);
		if (enqueue(segs, sch, to_free) == NET_XMIT_SUCCESS) {
			n++;
			len += seg_len;
		}
	}
	if (!n) {
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}
	qdisc_tree_reduce_backlog(sch, 1 - n, whole - len);
	consume_skb(skb);
	return NET_XMIT_SUCCESS;
}

#endif
