/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the kernels that the modules build for. Kbuild probes for headers, or for
 * names in them, never for version numbers: distributions backport.
 */
#ifndef QJUMP_COMPAT_H
#define QJUMP_COMPAT_H

#include <linux/module.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#ifdef HAVE_NET_GSO_H
#include <net/gso.h>
#endif

#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id)	MODULE_ALIAS("net-sch-" id)
#endif

/* NLA_UINT, a number of 32 or 64 bits, came with 6.7; before, send 64 bits */
#ifndef HAVE_NLA_UINT
#define NLA_UINT NLA_U64

static inline u64 nla_get_uint(const struct nlattr *attr)
{
	return nla_get_u64(attr);
}

static inline int nla_put_uint(struct sk_buff *skb, int type, u64 value)
{
	return nla_put(skb, type, sizeof(value), &value);
}
#endif

#ifndef HAVE_NLA_UINT_DEFAULT
static inline u64 nla_get_uint_default(const struct nlattr *attr, u64 otherwise)
{
	return attr ? nla_get_uint(attr) : otherwise;
}
#endif

/* Dumps read qlen and backlog without the lock */
#ifndef HAVE_QDISC_QLEN_INC
static inline void qdisc_qlen_inc(struct Qdisc *sch)
{
	WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
}

static inline void qdisc_qlen_dec(struct Qdisc *sch)
{
	WRITE_ONCE(sch->q.qlen, sch->q.qlen - 1);
}
#endif

#ifndef HAVE_QSTATS_BACKLOG_ADD
static inline void qstats_backlog_add(struct Qdisc *sch, u32 bytes)
{
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog + bytes);
}

static inline void qstats_backlog_sub(struct Qdisc *sch, u32 bytes)
{
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog - bytes);
}
#endif

/* Set what bstats and parents read of a segment: its length, and that it is one packet. */
static inline void compat_set_pkt_len(struct sk_buff *skb, unsigned int len)
{
	qdisc_skb_cb(skb)->pkt_len = len;
#ifdef HAVE_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
}

/* A level is full. Before 7.0, qdiscs cannot give a reason for a drop. */
static inline int compat_drop_at_limit(struct sk_buff *skb, struct Qdisc *sch,
				       struct sk_buff **to_free)
{
#ifdef HAVE_QDISC_DROP_REASON
	return qdisc_drop_reason(skb, sch, to_free, QDISC_DROP_BAND_LIMIT);
#else
	return qdisc_drop(skb, sch, to_free);
#endif
}

#endif
