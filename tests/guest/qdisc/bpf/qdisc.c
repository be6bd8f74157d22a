// SPDX-License-Identifier: GPL-2.0-only
/*
 * A queueing discipline with eight strict priority levels, each with a budget in
 * rolling epochs that is charged when a packet leaves. A BPF qdisc can only be the
 * root, and a veth never pushes back, so it can also limit its own rate.
 */
#include <linux/bpf.h>
#include <bpf/bpf_tracing.h>
#include "kernel.h"
#include "level.h"

#define NET_XMIT_SUCCESS	0
#define NET_XMIT_DROP		1
#define LIMIT			4000	/* packets */
#define LEAST_ON_WIRE		84	/* bytes of the shortest frame, with preamble and gap */
#define NEVER			(~0ull)

struct packet {
	struct bpf_list_node node;
	struct sk_buff __kptr *skb;
	__u32 bytes;
};

struct level {
	struct bpf_spin_lock lock;	/* for the verifier; the qdisc lock is held anyway */
	struct bpf_list_head queue __attribute__((btf_decl_tag("contains:packet:node")));
	__u64 held_until;		/* ns: the first packet may not leave before */
	struct account account;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LEVELS);
	__type(key, __u32);
	__type(value, struct level);
} levels SEC(".maps");

static __u32 backlogged;	/* bit p: level p has packets */
static __u64 busy_until;	/* ns, by rule.rate */

static __always_inline __u32 length(const struct sk_buff *skb)
{
	return ((struct qdisc_skb_cb *)skb->cb)->pkt_len;
}

/* Remove and return the first packet of a level. */
static __always_inline struct sk_buff *take(struct level *l, __u32 p)
{
	struct bpf_list_node *node;
	struct packet *packet;
	struct sk_buff *skb;
	bool last;

	bpf_spin_lock(&l->lock);
	node = bpf_list_pop_front(&l->queue);
	last = !bpf_list_front(&l->queue);
	bpf_spin_unlock(&l->lock);
	if (last)
		backlogged &= ~(1u << p);
	if (!node)
		return NULL;
	packet = container_of(node, struct packet, node);
	skb = bpf_kptr_xchg(&packet->skb, NULL);
	bpf_obj_drop_impl(packet, NULL);
	return skb;
}

/* Charge the first packet and return 0, or return the time until which it is held. */
static __always_inline __u64 admit(struct level *l, __u32 most, __u64 now)
{
	struct bpf_list_node *node;
	__u32 bytes = 0;

	if (now < l->held_until)
		return l->held_until;
	bpf_spin_lock(&l->lock);
	node = bpf_list_front(&l->queue);
	if (node)
		bytes = container_of(node, struct packet, node)->bytes;
	bpf_spin_unlock(&l->lock);
	l->held_until = fits(&l->account, most, bytes, now);
	if (l->held_until > now)
		return l->held_until;
	charge(&l->account, bytes, now);
	return 0;
}

SEC("struct_ops")
int BPF_PROG(enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	__u32 p = skb->priority < LEVELS ? skb->priority : 0, bytes = length(skb);
	struct level *l = bpf_map_lookup_elem(&levels, &p);
	struct packet *packet;

	if (!l || sch->q.qlen >= sch->limit || (budget(p) && bytes > budget(p)))
		goto drop;
	packet = bpf_obj_new_impl(bpf_core_type_id_local(struct packet), NULL);
	if (!packet)
		goto drop;
	packet->bytes = bytes;
	skb = bpf_kptr_xchg(&packet->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
	bpf_spin_lock(&l->lock);
	bpf_list_push_back_impl(&l->queue, &packet->node, NULL, 0);
	bpf_spin_unlock(&l->lock);
	backlogged |= 1u << p;
	sch->q.qlen++;
	sch->qstats.backlog += bytes;
	return NET_XMIT_SUCCESS;
drop:
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

SEC("struct_ops")
struct sk_buff *BPF_PROG(dequeue, struct Qdisc *sch)
{
	__u64 now = 0, wake = NEVER, until;
	struct sk_buff *skb;
	struct level *l;
	__u32 on_wire;

	if (!backlogged)
		return NULL;
	if (rule.rate) {
		now = bpf_ktime_get_ns();
		if (now < busy_until) {
			bpf_qdisc_watchdog_schedule(sch, busy_until, 0);
			return NULL;
		}
	}
	for (int i = LEVELS - 1; i >= 0; i--) {
		__u32 p = i;

		if (!(backlogged & 1u << p))
			continue;
		l = bpf_map_lookup_elem(&levels, &p);
		if (!l)
			continue;
		if (budget(p)) {
			if (!now)
				now = bpf_ktime_get_ns();
			until = admit(l, budget(p), now);
			if (until) {
				if (until < wake)
					wake = until;
				continue;
			}
		}
		skb = take(l, p);
		if (!skb)
			return NULL;
		if (rule.rate) {
			on_wire = length(skb) + rule.overhead;
			if (rule.overhead && on_wire < LEAST_ON_WIRE)
				on_wire = LEAST_ON_WIRE;
			busy_until = now + on_wire * 8000000000ull / rule.rate;
		}
		sch->q.qlen--;
		sch->qstats.backlog -= length(skb);
		bpf_qdisc_bstats_update(sch, skb);
		return skb;
	}
	if (wake != NEVER)
		bpf_qdisc_watchdog_schedule(sch, wake, 0);
	return NULL;
}

SEC("struct_ops")
int BPF_PROG(init, struct Qdisc *sch, struct nlattr *arg, struct netlink_ext_ack *extack)
{
	sch->limit = LIMIT;
	return 0;
}

SEC("struct_ops")
void BPF_PROG(reset, struct Qdisc *sch)
{
	int i, n;

	bpf_for(i, 0, LEVELS) {
		__u32 p = i;
		struct level *l = bpf_map_lookup_elem(&levels, &p);

		if (!l)
			continue;
		bpf_for(n, 0, LIMIT) {
			struct sk_buff *skb = take(l, p);

			if (!skb)
				break;
			bpf_kfree_skb(skb);
		}
		l->held_until = 0;
		l->account.end = 0;
		l->account.used = 0;
		l->account.oldest = 0;
		l->account.next = 0;
	}
	busy_until = 0;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

/* Nothing to do, but the kernel requires this operation. */
SEC("struct_ops")
void BPF_PROG(destroy, struct Qdisc *sch)
{
}

SEC(".struct_ops.link")
struct Qdisc_ops bpf_qjump = {
	.id = "bpf_qjump",
	.enqueue = (void *)enqueue,
	.dequeue = (void *)dequeue,
	.init = (void *)init,
	.reset = (void *)reset,
	.destroy = (void *)destroy,
};

char terms[] SEC("license") = "GPL";
