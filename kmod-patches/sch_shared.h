/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for more than one of the qdiscs that the kernel does not provide. They are in
 * a header because each module must load without the others.
 */
#ifndef QJUMP_SCH_SHARED_H
#define QJUMP_SCH_SHARED_H

#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/string.h>
#include "compat.h"

/* Return -EINVAL, with a message for user space. */
#define refuse(extack, msg) ({ NL_SET_ERR_MSG_MOD(extack, msg); -EINVAL; })

/* Likewise, pointing at the offending attribute unless it is NULL. */
#define refuse_at(extack, attr, msg) \
	({ NL_SET_ERR_MSG_ATTR(extack, attr, KBUILD_MODNAME ": " msg); -EINVAL; })

/*
 * Return true if sch is below, at any depth, a qdisc with a child per transmit queue
 * (mq, mqprio, taprio, multiq): it would only see the packets of one queue. A parent
 * with major number 0 is the mq that the kernel attaches by default. taprio and multiq
 * have no flag to identify them, so compare their names.
 */
static inline bool qdisc_under_mq(const struct Qdisc *sch)
{
	const struct Qdisc *root = rtnl_dereference(qdisc_dev(sch)->qdisc), *above;
	u32 parent = sch->parent;
	int bucket;

	while (parent != TC_H_ROOT) {
		if (!TC_H_MAJ(parent) || (root->flags & TCQ_F_MQROOT) ||
		    !strcmp(root->ops->id, "taprio") || !strcmp(root->ops->id, "multiq"))
			return true;
		u32 major = TC_H_MAJ(parent);

		parent = TC_H_ROOT;
		hash_for_each(qdisc_dev(sch)->qdisc_hash, bucket, above, hash)
			if (above->handle == major) {
				if (!strcmp(above->ops->id, "multiq"))
					return true;
				parent = above->parent;
			}
	}
	return false;
}

/*
 * Like tbf_segment(): pass each segment to enqueue(), and correct the counts of our
 * parents, which saw one packet. Consumes the packet, even if no segment was queued
 * (NET_XMIT_DROP); returns -EINVAL, and leaves the packet, if it cannot be split.
 */
static inline int split_gso(struct sk_buff *skb, struct Qdisc *sch,
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
