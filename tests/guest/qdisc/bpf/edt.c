// SPDX-License-Identifier: GPL-2.0-only
/*
 * Earliest departure times: at clsact's egress, each packet of a limited level gets
 * the first time at which it fits the level's budget. An fq further down holds it
 * until then. Packets are charged on arrival, for the time given.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include "level.h"

#define HORIZON	2000000000ull	/* ns: drop packets that would wait longer */

struct level {
	struct bpf_spin_lock lock;	/* clsact runs without a lock */
	__u64 last;			/* ns: latest time given; a level stays in order */
	struct account account;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LEVELS);
	__type(key, __u32);
	__type(value, struct level);
} levels SEC(".maps");

SEC("tc")
int edt(struct __sk_buff *skb)
{
	__u32 p = skb->priority, bytes = skb->wire_len;
	__u64 now, at;
	struct level *l;

	if (p >= LEVELS || !budget(p))
		return TC_ACT_OK;
	l = bpf_map_lookup_elem(&levels, &p);
	if (!l || bytes > budget(p))
		return TC_ACT_SHOT;
	now = bpf_ktime_get_ns();
	at = skb->tstamp > now ? skb->tstamp : now;	/* TCP's own pacing */

	bpf_spin_lock(&l->lock);
	if (at < l->last)
		at = l->last;
	at = fits(&l->account, budget(p), bytes, at);
	l->last = at;
	if (at <= now + HORIZON)
		charge(&l->account, bytes, at);
	bpf_spin_unlock(&l->lock);

	if (at > now + HORIZON)
		return TC_ACT_SHOT;
	/* fq of 7.x logs times of unspecified clock; only IP packets can specify it. */
	if (bpf_skb_set_tstamp(skb, at, BPF_SKB_TSTAMP_DELIVERY_MONO))
		skb->tstamp = at;
	return TC_ACT_OK;
}

char terms[] SEC("license") = "GPL";
