/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the kernels the two modules build for, and the
 * helpers they share. Kbuild probes by header, or by the text of one; never by
 * version number.
 */
#ifndef QJUMP_COMPAT_H
#define QJUMP_COMPAT_H

#include <linux/module.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#ifdef HAVE_NET_GSO_H
#include <net/gso.h>
#endif

#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id)	MODULE_ALIAS("net-sch-" id)
#endif

/* After splitting: length and segment count that bstats and parents read. */
static inline void compat_set_pkt_len(struct sk_buff *skb, unsigned int len)
{
	qdisc_skb_cb(skb)->pkt_len = len;
#ifdef HAVE_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
}

/* Refuse with a sentence for user space. */
#define refuse(extack, msg) ({ NL_SET_ERR_MSG(extack, msg); -EINVAL; })

/* The same, and the attribute at fault, if there is one. */
#define refuse_at(extack, attr, msg) ({ NL_SET_ERR_MSG_ATTR(extack, attr, msg); -EINVAL; })

/*
 * True when sch is to stand below a multi-queue root (mq, mqprio, taprio), at
 * whatever depth: it would then see one transmit queue's packets only. A parent
 * with major number 0 is the mq that the kernel attaches by default.
 */
static inline bool qdisc_under_mq(const struct Qdisc *sch)
{
	const struct Qdisc *root = rtnl_dereference(qdisc_dev(sch)->qdisc);

	if (sch->parent == TC_H_ROOT)
		return false;
	return !TC_H_MAJ(sch->parent) || (root->flags & TCQ_F_MQROOT);
}

#endif
