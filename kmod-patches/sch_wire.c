// SPDX-License-Identifier: GPL-2.0
/*
 * One direction of a full-duplex Ethernet link
 *
 * Root of a port. Frames wait in eight queues with a byte limit each (tail
 * drop), by the tag's PCP, by skb->priority, or in one queue. One frame at a
 * time is on the wire, which is strict priority without preemption, and store
 * and forward: a frame is handed to the device when its last bit has arrived.
 * For a frame of L = max(64, length + 4 (tag, if accelerated) + 4 (FCS)) bytes
 * whose start is s, with R bit/s, X bytes of overhead (default 0) and a
 * propagation delay of D ns (IEEE 802.3: preamble 8, interframe gap 12 bytes):
 *
 *	s       = max(the wire is free, the frame's arrival)
 *	arrives = s + (8 + L + X)      * 8 / R + D
 *	free    = s + (8 + L + X + 12) * 8 / R
 *
 * When the wire becomes free the highest level that has a frame by then is
 * chosen. s is computed from arrivals, not from the time at which a timer
 * fired, so timer latency never accumulates nor changes the order; it only
 * delays handing over. Times are ns plus a rest in units of 1/R ns (64-bit
 * division with remainder), so there is no rounding error however long the
 * wire is busy; a frame is handed over at its time rounded up to a whole ns.
 *
 * For the same reason a start needs no timer. One fires when the last bit of a
 * frame has left, and what has started by any time is found out before anybody
 * looks at the queues or changes the parameters. A start has a timer of its own
 * where somebody else is told of it: with flow control, if the frame is to be
 * stamped, and if a child is to choose it.
 *
 * A qdisc grafted on class :1 takes the place of the queues and picks the next
 * frame. It does not tell when a frame it held became free to go: after it
 * had nothing to give, the next frame starts when it is taken. Frames on the
 * wire are part of this qdisc's backlog, not of a level's.
 *
 * A GSO packet is split when it comes: frames of a higher level pass between
 * those that it stands for, as with a network card that has a queue for each.
 *
 * With orphan (default) a frame that has left is taken off its socket's
 * account, as a NIC's completion does. Without, the sender of a packet that is
 * queued anywhere in an emulated network is held back by its own socket.
 *
 * Jitter
 * ------
 * What a frame takes beyond the wire's delay, drawn from quantiles, stands for
 * the time that a host takes for what comes in, which is not the same for any
 * two frames. Frames of one flow stay in order; a frame may overtake those of
 * others. A flow is what network cards choose a receive queue by, unless told
 * otherwise: addresses, and ports if it is TCP.
 *
 * Flow control
 * ------------
 * IEEE 802.3, annex 31B, between the wires of a link. Every wire obeys pauses.
 * A port with thresholds counts the bytes of frames that came in through it and
 * still wait in a wire of the same switch: they are charged to the wire at the
 * root of skb->skb_iif, the device that received them, when they are queued, and
 * released when they start to leave. When its account reaches XOFF the port
 * sends a pause to its link partner, and when it falls to XON a resume. Control
 * frames have 64 bytes, go before all queues and are held back by no pause. A
 * pause stands until it is resumed, as if it was refreshed in time; there are
 * no quanta.
 *
 * With pfc (IEEE 802.1Qbb) each of the levels that it names has an account of
 * its own, with the same thresholds, and is paused alone: a control frame, of
 * the same size, says which of them are to pause now. A pause of the link is
 * one of all levels, by one account. A child does not tell of which level its
 * next frame is, and is held as soon as any level is.
 *
 * No skb travels: a control frame that starts is put into the mailbox of the
 * wire at the other end with the time at which its last bit arrives. So a wire
 * knows by then, and starts no frame from that very time on, however late its
 * timer is.
 *
 * Nothing here takes the lock of another wire, for two root locks must never
 * nest. An account is one atomic word. A mailbox has one writer, the partner
 * under its own lock, and one reader, its owner under its own. A wire that is
 * reached through its device, under RCU, may be reset at any time: it then
 * takes a new number, by which frames know whether they are still on its
 * account and partners whom they have paused.
 */

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/in.h>
#include <linux/jhash.h>
#include <linux/jump_label.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/netdevice.h>
#include <linux/prandom.h>
#include <linux/rbtree.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <net/flow_dissector.h>
#include <net/netlink.h>
#include <net/sch_generic.h>

#include "compat.h"
#include "pkt_sched_wire.h"
#include "sch_shared.h"

#define CREATE_TRACE_POINTS
#include "wire_trace.h"

#define WIRE_LIMIT	152200	/* bytes; 100 frames of 1522 */
#define WIRE_MIN_RATE	1000ULL			/* bit/s */
#define WIRE_MAX_RATE	1000000000000ULL	/* bit/s */
#define WIRE_MAX_DELAY	(10ULL * NSEC_PER_SEC)
#define WIRE_MAX_JITTER	(4ULL * NSEC_PER_SEC)
#define WIRE_MAX_OVERHEAD 2048	/* bytes */

#define WIRE_PREAMBLE	8	/* bytes, with the start-of-frame delimiter */
#define WIRE_GAP	12	/* bytes */

#define WIRE_ALL_LEVELS	(BIT(TC_WIRE_LEVELS) - 1)

#define WIRE_FLOWS	256	/* flows of one hash keep their order among each other */

#define WIRE_PAUSE_BYTES	64	/* of a MAC control frame */
#define WIRE_MAILS		16	/* control frames under way at most; a power of two */
#define WIRE_NUMBER_SHIFT	40
#define WIRE_ACCOUNT_BYTES	(BIT_ULL(WIRE_NUMBER_SHIFT) - 1)

#define WIRE_CLASS	1	/* minor number of the only class */

static struct netlink_range_validation wire_rate_range = {
	.min = WIRE_MIN_RATE,
	.max = WIRE_MAX_RATE,
};

static struct netlink_range_validation wire_delay_range = {
	.max = WIRE_MAX_DELAY,
};

/* A frame is added to what waits before that is compared. */
static struct netlink_range_validation wire_limit_range = {
	.min = ETH_ZLEN + ETH_FCS_LEN,
	.max = S32_MAX,
};

static const struct nla_policy wire_policy[TCA_WIRE_MAX + 1] = {
	[TCA_WIRE_RATE]		= NLA_POLICY_FULL_RANGE(NLA_U64, &wire_rate_range),
	[TCA_WIRE_LIMIT]	= NLA_POLICY_FULL_RANGE(NLA_U32, &wire_limit_range),
	[TCA_WIRE_CLASSIFY]	= NLA_POLICY_MAX(NLA_U32, __TC_WIRE_CLASSIFY_MAX - 1),
	[TCA_WIRE_OVERHEAD]	= NLA_POLICY_MAX(NLA_U32, WIRE_MAX_OVERHEAD),
	[TCA_WIRE_DELAY]	= NLA_POLICY_FULL_RANGE(NLA_U64, &wire_delay_range),
	[TCA_WIRE_ORPHAN]	= NLA_POLICY_MAX(NLA_U32, 1),
	[TCA_WIRE_XOFF]		= { .type = NLA_U32 },
	[TCA_WIRE_XON]		= { .type = NLA_U32 },
	[TCA_WIRE_JITTER]	= {
		.type = NLA_BINARY,
		.len = TC_WIRE_QUANTILES * sizeof(struct tc_wire_quantile),
	},
	[TCA_WIRE_SEED]		= { .type = NLA_U64 },
	[TCA_WIRE_PFC]		= NLA_POLICY_MAX(NLA_U32, WIRE_ALL_LEVELS),
};

struct wire_params {
	u64	rate;		/* bit/s */
	u64	delay;		/* ns */
	u32	limit;		/* bytes per level */
	u32	classify;	/* enum tc_wire_classify */
	u32	overhead;	/* bytes per frame */
	u32	orphan;		/* 0 or 1 */
	u32	xoff;		/* bytes; 0: no pauses */
	u32	xon;		/* bytes */
	u32	pfc;		/* bit p: level p is paused alone; 0: the link is */
	u32	quantiles;	/* of jitter; 0: none */
	struct tc_wire_quantile jitter[TC_WIRE_QUANTILES];
	u64	seed;		/* of jitter */
};

struct wire_time {
	u64	ns;
	u64	rest;		/* 1/rate ns, below rate */
};

struct wire_cb {
	u64	time;		/* ns; waiting: arrival, in flight: handing over */
	u32	level : 8;
	u32	len : 24;	/* bytes, L of above */
	u32	charged : 24;	/* number of the wire on whose account it is; 0: none */
	u32	account : 8;	/* which of its accounts that is */
};

/*
 * The frames that have started and are not yet handed over, by the time at
 * which they are. A constant delay keeps them in the order of their starts: a
 * line. With jitter some overtake the last of the line: those are in a tree.
 */
struct wire_flight {
	struct qdisc_skb_head line;
	struct rb_root	ahead;	/* of the last of the line */
};

struct wire_jitter {
	struct rnd_state rnd;
	u64	last[WIRE_FLOWS];	/* ns: when the last frame is handed over */
};

struct wire_account {
	atomic64_t	bytes;	/* that came in here and wait, and the number of the wire */
	atomic64_t	since;	/* ns: it crossed a threshold */
	u64		max;	/* bytes */
};

struct wire_mail {
	u64	time;		/* ns: when the control frame arrives */
	u32	paused;		/* bit p: level p is to pause */
};

struct wire_held {
	u64		since;	/* ns: that a pause stands */
	u64		ns;	/* by those before */
};

struct wire_pause {
	/* sending; the first three are copies of the parameters, for those without our lock */
	u32		xoff;		/* bytes; 0: sends no pauses */
	u32		xon;		/* bytes, below xoff */
	u32		pfc;		/* bit p: level p has an account; 0: one for the link */
	struct wire_account account[TC_WIRE_LEVELS];
	u32		want;		/* bit p: the partner is to pause level p */
	u32		told;		/* what the last control frame said of that */
	u32		partner;	/* the number of the wire that it said it to; 0: none */
	u64		sent;		/* pauses */
	/* the mailbox; the partner writes the first three */
	struct wire_mail mail[WIRE_MAILS];
	u32		head;		/* mails written */
	u32		void_until;	/* mails before this one are void: their sender is gone */
	u32		tail;		/* mails taken */
	u32		voided;		/* void_until, when it was last seen */
	/* obeying */
	bool		again;		/* no frame was started, but another may be */
	u64		received;	/* pauses */
	struct wire_held held;		/* while some level was */
	struct wire_held held_level[TC_WIRE_LEVELS];
};

struct wire_level {
	struct qdisc_skb_head queue;
	u32	backlog;	/* bytes (L) waiting */
	u32	max_backlog;	/* bytes */
	u64	packets;	/* put on the wire */
	u64	bytes;		/* put on the wire, preamble and gap included */
	u64	drops;		/* packets */
	u64	max_wait;	/* ns from arrival to start */
	u64	max_late;	/* ns from when a frame was due to its handing over */
};

struct wire_queues {
	unsigned long	backlogged;	/* bit p: level p has frames */
	unsigned long	paused;		/* bit p: level p may start none */
	struct wire_level level[TC_WIRE_LEVELS];
};

struct wire_sched {
	struct wire_queues queues;
	struct wire_params params;
	struct wire_time free;		/* the next frame may start */
	struct wire_flight flight;
	struct Qdisc	*child;		/* noop_qdisc: none */
	u64		child_since;	/* ns: child became non-empty */
	bool		child_held;	/* child had nothing to give */
	struct qdisc_watchdog watchdog;
	struct wire_pause pause;
	struct wire_jitter jitter;
};

static DEFINE_STATIC_KEY_FALSE(wire_pauses);	/* there has been a wire with thresholds */
static atomic_t wire_numbers;

static struct Qdisc_ops wire_ops;

static struct wire_cb *wire_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct wire_cb));
	return (struct wire_cb *)qdisc_skb_cb(skb)->data;
}

/* Bytes from the first of the frame to the last of its FCS. */
static u32 wire_frame_len(const struct sk_buff *skb)
{
	u32 trailer = ETH_FCS_LEN + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0);

	return max_t(u32, skb->len + trailer, ETH_ZLEN + ETH_FCS_LEN);
}

/* The level of a frame whose tag stands in it. */
static u32 wire_classify_tag(const struct sk_buff *skb)
{
	struct vlan_hdr tag;
	const struct vlan_hdr *vh = skb_header_pointer(skb, ETH_HLEN, sizeof(tag), &tag);

	return vh ? ntohs(vh->h_vlan_TCI) >> VLAN_PRIO_SHIFT : 0;
}

/*
 * Here and below noinline and __always_inline stand only where the frames that
 * wait for nothing save instructions by them: a sixth of what this qdisc costs
 * them, by all seven (Linux 6.12, gcc 14).
 */
static __always_inline u32 wire_classify(const struct wire_params *p, const struct sk_buff *skb)
{
	if (unlikely(p->classify != TC_WIRE_PCP))
		return p->classify == TC_WIRE_PRIORITY && skb->priority < TC_WIRE_LEVELS ?
		       skb->priority : 0;
	if (skb_vlan_tag_present(skb))
		return skb_vlan_tag_get_prio(skb);
	return eth_type_vlan(skb->protocol) ? wire_classify_tag(skb) : 0;
}

/* t + bytes * 8 / rate, exactly */
static struct wire_time wire_after(struct wire_time t, u32 bytes, u64 rate)
{
	u64 rest;

	t.ns += div64_u64_rem((u64)bytes * 8 * NSEC_PER_SEC + t.rest, rate, &rest);
	t.rest = rest;
	return t;
}

static u64 wire_ceil(struct wire_time t)
{
	return t.ns + !!t.rest;
}

/* t, but not before ns */
static struct wire_time wire_not_before(struct wire_time t, u64 ns)
{
	return ns <= wire_ceil(t) ? t : (struct wire_time) { .ns = ns };
}

static bool wire_to_be_stamped(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->tx_flags;
}

/*
 * The transmit time stamp, as a NIC takes it: when the frame starts. A veth
 * stamps when it is handed the frame, which here is one serialisation and D
 * later. It finds no socket to tell, unless frames stay on its account.
 */
static void wire_stamp(const struct wire_params *p, struct sk_buff *skb)
{
	skb_tx_timestamp(skb);
	if (!p->orphan)
		skb_shinfo(skb)->tx_flags &= ~SKBTX_ANY_SW_TSTAMP;
}

/* A frame has started that may overtake others: jitter was added to its time. */
static void wire_flight_insert(struct wire_flight *f, struct sk_buff *skb)
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

/* No frame, nor a control frame, overtakes another because the delay was shortened. */
static u64 wire_flight_behind(const struct wire_flight *f, u64 time)
{
	return f->line.tail ? max(time, wire_cb(f->line.tail)->time) : time;
}

/* A frame has started that overtakes none. */
static void wire_flight_append(struct wire_flight *f, struct sk_buff *skb)
{
	if (f->line.tail)
		wire_cb(skb)->time = wire_flight_behind(f, wire_cb(skb)->time);
	__qdisc_enqueue_tail(skb, &f->line);
}

/*
 * The next to be handed over, or NULL. Of two at one time that in the line has
 * started first: the other came when the line went further than that.
 */
static struct sk_buff *wire_flight_next(const struct wire_flight *f)
{
	struct sk_buff *skb = f->line.head;
	struct rb_node *node;

	if (likely(RB_EMPTY_ROOT(&f->ahead)))
		return skb;
	node = rb_first(&f->ahead);
	return wire_cb(rb_to_skb(node))->time < wire_cb(skb)->time ? rb_to_skb(node) : skb;
}

static void wire_flight_cut(struct wire_flight *f, struct sk_buff *skb)
{
	rb_erase(&skb->rbnode, &f->ahead);
	/* the node lay over these */
	skb->next = NULL;
	skb->prev = NULL;
}

/* Take out skb, which is that of wire_flight_next(). */
static void wire_flight_take(struct wire_flight *f, struct sk_buff *skb, struct net_device *dev)
{
	if (likely(skb == f->line.head)) {
		__qdisc_dequeue_head(&f->line);
		return;
	}
	wire_flight_cut(f, skb);
	skb->dev = dev;		/* the node lay over this too */
}

static void wire_flight_purge(struct wire_flight *f)
{
	struct rb_node *node;

	__qdisc_reset_queue(&f->line);
	while ((node = rb_first(&f->ahead))) {
		struct sk_buff *skb = rb_to_skb(node);

		wire_flight_cut(f, skb);
		rtnl_kfree_skbs(skb, skb);
	}
}

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
static void wire_jitter_add(struct wire_jitter *j, const struct wire_params *p, struct sk_buff *skb)
{
	u64 *last = &j->last[wire_jitter_flow(skb) % WIRE_FLOWS];

	*last = max(*last, wire_cb(skb)->time + wire_jitter_draw(j, p));
	wire_cb(skb)->time = *last;
}

/* That of the wire at the root of a device that is up, or NULL; dev may be NULL; under RCU. */
static struct wire_pause *wire_pause_of(const struct net_device *dev)
{
	struct Qdisc *root;

	if (!dev)
		return NULL;
	root = rcu_dereference(netdev_get_tx_queue(dev, 0)->qdisc);
	return root->ops == &wire_ops ? &((struct wire_sched *)qdisc_priv(root))->pause : NULL;
}

/* The other end of a veth, or NULL; under RCU. It may be gone the next time. */
static struct net_device *wire_peer(struct net_device *dev)
{
	const struct net_device_ops *ops = dev->netdev_ops;

	return ops->ndo_get_peer_dev ? ops->ndo_get_peer_dev(dev) : NULL;
}

/* Have the root qdisc of a device run soon, without its lock; under RCU. */
static void wire_kick(const struct net_device *dev)
{
	netif_schedule_queue(netdev_get_tx_queue(dev, 0));
}

static u32 wire_pause_number(const struct wire_pause *p)
{
	return (u64)atomic64_read(&p->account[0].bytes) >> WIRE_NUMBER_SHIFT;
}

static u64 wire_account_bytes(const struct wire_account *a)
{
	return atomic64_read(&a->bytes) & WIRE_ACCOUNT_BYTES;
}

/* A new number, never 0, and nothing on the accounts. */
static void wire_pause_renew(struct wire_pause *p)
{
	u32 number;
	int i;

	do {
		number = atomic_inc_return(&wire_numbers) & (BIT(64 - WIRE_NUMBER_SHIFT) - 1);
	} while (!number);
	/* ordered: a partner that sees it writes behind what is not read any more */
	for (i = TC_WIRE_LEVELS - 1; i >= 0; i--)
		atomic64_xchg(&p->account[i].bytes, (u64)number << WIRE_NUMBER_SHIFT);
}

/* The account for frames of a level, or NULL. */
static struct wire_account *wire_pause_account(struct wire_pause *p, u32 level)
{
	u32 pfc = READ_ONCE(p->pfc);

	if (!pfc)
		return &p->account[0];
	return pfc & BIT(level) ? &p->account[level] : NULL;
}

/* A frame has been queued at an egress: put it on the account of its ingress. */
static void wire_pause_charge(struct Qdisc *egress, const struct sk_buff *skb)
{
	struct wire_cb *cb = wire_cb(skb);
	struct wire_account *a;
	struct net_device *dev;
	struct wire_pause *p;

	if (!skb->skb_iif)	/* sent by this host itself */
		return;
	rcu_read_lock();
	dev = dev_get_by_index_rcu(dev_net(qdisc_dev(egress)), skb->skb_iif);
	p = wire_pause_of(dev);
	a = p && READ_ONCE(p->xoff) ? wire_pause_account(p, cb->level) : NULL;
	if (a) {
		u64 account = atomic64_add_return(cb->len, &a->bytes);
		u64 bytes = account & WIRE_ACCOUNT_BYTES;

		cb->charged = account >> WIRE_NUMBER_SHIFT;
		cb->account = a - p->account;
		if (bytes > READ_ONCE(a->max))
			WRITE_ONCE(a->max, bytes);
		if (bytes >= READ_ONCE(p->xoff)) {
			if (bytes - cb->len < READ_ONCE(p->xoff))
				atomic64_set(&a->since, cb->time);
			wire_kick(dev);
		}
	}
	rcu_read_unlock();
}

/* A frame starts to leave, or is purged. */
static void wire_pause_release(struct Qdisc *egress, const struct sk_buff *skb, u64 time)
{
	const struct wire_cb *cb = wire_cb(skb);
	struct wire_account *a;
	struct net_device *dev;
	struct wire_pause *p;
	u64 bytes;
	s64 old;

	if (!cb->charged)
		return;
	rcu_read_lock();
	dev = dev_get_by_index_rcu(dev_net(qdisc_dev(egress)), skb->skb_iif);
	p = wire_pause_of(dev);
	if (!p)
		goto out;
	a = &p->account[cb->account];
	old = atomic64_read(&a->bytes);
	do {
		if ((u64)old >> WIRE_NUMBER_SHIFT != cb->charged)
			goto out;
	} while (!atomic64_try_cmpxchg(&a->bytes, &old, old - cb->len));
	bytes = old & WIRE_ACCOUNT_BYTES;
	if (bytes > READ_ONCE(p->xon) && bytes - cb->len <= READ_ONCE(p->xon)) {
		atomic64_set(&a->since, time);
		wire_kick(dev);
	}
out:
	rcu_read_unlock();
}

/* The levels that an account pauses. */
static u32 wire_account_levels(const struct wire_pause *p, int account)
{
	return p->pfc ? BIT(account) : WIRE_ALL_LEVELS;
}

/*
 * Whether the partner has no room for a mail. Then it has seen that, or will: of
 * head, which we wrote, and tail one side sees what the other has written.
 */
static bool wire_pause_full(const struct wire_pause *partner)
{
	/* pairs with the release of tail: a mail is read before it is written anew */
	if (partner->head - smp_load_acquire(&partner->tail) != WIRE_MAILS)
		return false;
	smp_mb();	/* pairs with that of wire_pause_obey() */
	return partner->head - smp_load_acquire(&partner->tail) == WIRE_MAILS;
}

/*
 * Whether a control frame is to be sent, and since when. A partner that has
 * been replaced does not know of the pauses that stand: it is told again.
 */
static bool wire_pause_due(struct wire_pause *p, struct net_device *dev, u64 now, u64 *since)
{
	const struct wire_pause *partner;
	bool full, replaced;
	int i;

	for (i = 0; i < (p->pfc ? TC_WIRE_LEVELS : 1); i++) {
		u64 bytes = wire_account_bytes(&p->account[i]);

		if (p->xoff && bytes >= p->xoff)
			p->want |= wire_account_levels(p, i);
		else if (bytes <= p->xon)
			p->want &= ~wire_account_levels(p, i);
	}
	if (!p->want && !p->told)
		return false;
	rcu_read_lock();
	partner = wire_pause_of(wire_peer(dev));
	replaced = p->told && partner && wire_pause_number(partner) != p->partner;
	full = partner && wire_pause_full(partner);
	rcu_read_unlock();
	if (replaced)
		p->told = 0;
	*since = U64_MAX;
	for (i = 0; i < TC_WIRE_LEVELS; i++) {
		struct wire_account *a = &p->account[i];

		if (!((p->want ^ p->told) & wire_account_levels(p, i)))
			continue;
		if (replaced)
			atomic64_set(&a->since, now);
		*since = min_t(u64, *since, atomic64_read(&a->since));
		if (!p->pfc)
			break;
	}
	return *since != U64_MAX && !full;	/* full: it will kick us */
}

/* The control frame that was due by then has started, and arrives at that time. */
static void wire_pause_send(struct wire_pause *p, struct net_device *dev, u64 by, u64 time)
{
	u32 before = p->told, levels;
	struct wire_pause *partner;
	struct net_device *peer;
	int i;

	for (i = 0; i < (p->pfc ? TC_WIRE_LEVELS : 1); i++) {
		levels = wire_account_levels(p, i);
		if (atomic64_read(&p->account[i].since) <= by)
			p->told = (p->told & ~levels) | (p->want & levels);
	}
	p->sent += !!(p->told & ~before);
	p->partner = 0;
	rcu_read_lock();
	peer = wire_peer(dev);
	partner = wire_pause_of(peer);
	if (partner) {
		struct wire_mail *mail = &partner->mail[partner->head % WIRE_MAILS];
		struct wire_mail *last = &partner->mail[(partner->head - 1) % WIRE_MAILS];

		p->partner = wire_pause_number(partner);
		/* it does not pass the one before, though the delay was shortened in between */
		if (partner->head != READ_ONCE(partner->void_until))
			time = max(time, last->time);
		WRITE_ONCE(mail->time, time);
		WRITE_ONCE(mail->paused, p->told);
		/* the mail before its number */
		smp_store_release(&partner->head, partner->head + 1);
		wire_kick(peer);
	}
	rcu_read_unlock();
}

/* No pauses any more: whom we have paused goes on at once, and what is on our accounts is not. */
static void wire_pause_stop(struct wire_pause *p, struct net_device *dev)
{
	struct wire_pause *partner;
	struct net_device *peer;

	rcu_read_lock();
	peer = p->partner ? wire_peer(dev) : NULL;
	partner = wire_pause_of(peer);
	if (partner) {
		/* before any mail of a wire that takes our place */
		smp_store_release(&partner->void_until, partner->head);
		wire_kick(peer);
	}
	rcu_read_unlock();
	p->want = 0;
	p->told = 0;
	p->partner = 0;
	wire_pause_renew(p);
}

/* From that time on these levels are paused, and no others. */
static void wire_pause_set(struct wire_sched *q, unsigned long paused, u64 time)
{
	struct wire_pause *p = &q->pause;
	unsigned long before = q->queues.paused, ended = before & ~paused;
	unsigned long begun = paused & ~before;
	int i;

	for_each_set_bit(i, &ended, TC_WIRE_LEVELS)
		p->held_level[i].ns += time - p->held_level[i].since;
	for_each_set_bit(i, &begun, TC_WIRE_LEVELS)
		p->held_level[i].since = time;
	if (!before && paused)
		p->held.since = time;
	if (before && !paused)
		p->held.ns += time - p->held.since;
	p->received += !!begun;
	q->queues.paused = paused;
	if (ended)	/* what could start before has */
		q->free = wire_not_before(q->free, time);
}

/* Obey the control frames that have arrived by that time; false: none has. */
static bool wire_pause_obey(struct wire_sched *q, struct net_device *dev, u64 time, u64 now)
{
	struct wire_pause *p = &q->pause;
	u32 head, gone, before, tail = p->tail;
	struct net_device *peer;
	bool full, obeyed = false;

	/* head first: who sees a mail sees the voids before it */
	head = smp_load_acquire(&p->head);
	gone = READ_ONCE(p->void_until);
	if (unlikely(gone != p->voided)) {
		p->voided = gone;
		tail = gone;
		if ((s32)(gone - head) > 0)
			head = gone;
		wire_pause_set(q, 0, now);
		obeyed = true;
	}
	for (; tail != head; tail++) {
		const struct wire_mail *mail = &p->mail[tail % WIRE_MAILS];

		if (READ_ONCE(mail->time) > time)
			break;
		wire_pause_set(q, READ_ONCE(mail->paused), READ_ONCE(mail->time));
	}
	if (tail == p->tail)
		return obeyed;
	before = p->tail;
	/* its mails have been read */
	smp_store_release(&p->tail, tail);
	smp_mb();	/* pairs with that of wire_pause_full() */
	full = READ_ONCE(p->head) - before == WIRE_MAILS;
	rcu_read_lock();
	peer = full ? wire_peer(dev) : NULL;
	if (peer)
		wire_kick(peer);
	rcu_read_unlock();
	return true;
}

/* As new: the accounts are empty, no frame is held, and no partner because of us. */
static void wire_pause_reset(struct wire_sched *q, struct net_device *dev, u64 now)
{
	/* head first, as in wire_pause_obey() */
	WRITE_ONCE(q->pause.tail, smp_load_acquire(&q->pause.head));
	q->pause.voided = READ_ONCE(q->pause.void_until);
	wire_pause_set(q, 0, now);
	wire_pause_stop(&q->pause, dev);
}

/* Thresholds or levels have changed: look at the accounts, which are not kept without. */
static void wire_pause_change(struct wire_pause *p, struct net_device *dev,
			      const struct wire_params *params)
{
	u64 now = ktime_get_ns();
	int i;

	if (!p->xoff || !params->xoff || p->pfc != params->pfc)
		wire_pause_stop(p, dev);
	WRITE_ONCE(p->xoff, params->xoff);
	WRITE_ONCE(p->xon, params->xon);
	WRITE_ONCE(p->pfc, params->pfc);
	for (i = 0; i < TC_WIRE_LEVELS; i++)
		atomic64_set(&p->account[i].since, now);
	rcu_read_lock();
	wire_kick(dev);
	rcu_read_unlock();
}

static u64 wire_held_ns(const struct wire_held *h, bool held)
{
	return h->ns + (held ? ktime_get_ns() - h->since : 0);
}

static int wire_pause_dump(const struct wire_sched *q, struct sk_buff *skb)
{
	const struct wire_pause *p = &q->pause;
	u64 paused = wire_held_ns(&p->held, q->queues.paused), bytes = 0, most = 0;
	int i;

	for (i = 0; i < TC_WIRE_LEVELS; i++) {
		bytes += wire_account_bytes(&p->account[i]);
		most = max(most, READ_ONCE(p->account[i].max));
	}
	if (nla_put_u32(skb, TCA_WIRE_STATS_PAUSE_ON, !!p->xoff) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_PAUSE_SENT, p->sent, TCA_WIRE_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_PAUSE_RECEIVED, p->received,
			      TCA_WIRE_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_PAUSED, paused, TCA_WIRE_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_INGRESS, bytes, TCA_WIRE_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_MAX_INGRESS, most, TCA_WIRE_STATS_PAD))
		return -EMSGSIZE;
	return 0;
}

/* When the next control frame arrives that is known of; U64_MAX: none is. */
static u64 wire_pause_next(const struct wire_pause *p)
{
	/* the number before the mail */
	if (smp_load_acquire(&p->head) == p->tail)
		return U64_MAX;
	return READ_ONCE(p->mail[p->tail % WIRE_MAILS].time);
}

/* Put a frame that has come behind those of its level. False: that is full. */
static bool wire_queues_add(struct wire_queues *w, const struct wire_params *params,
			    struct Qdisc *sch, struct sk_buff *skb)
{
	const struct wire_cb *cb = wire_cb(skb);
	struct wire_level *l = &w->level[cb->level];

	if (unlikely(l->backlog + cb->len > params->limit)) {
		l->drops++;
		return false;
	}
	__qdisc_enqueue_tail(skb, &l->queue);
	__set_bit(cb->level, &w->backlogged);
	l->backlog += cb->len;
	l->max_backlog = max(l->max_backlog, l->backlog);
	if (static_branch_unlikely(&wire_pauses))
		wire_pause_charge(sch, skb);
	return true;
}

/*
 * The highest level with a frame by the time the wire is free; if none, the
 * first to come. There is one that is not paused; start: when it would start.
 */
static unsigned long wire_queues_first(const struct wire_queues *w, struct wire_time free,
				       struct wire_time *start)
{
	u64 by = wire_ceil(free), first = U64_MAX;
	unsigned long ready = w->backlogged & ~w->paused, best = 0;

	while (ready) {
		unsigned long p = __fls(ready);
		u64 arrival = wire_cb(w->level[p].queue.head)->time;

		if (arrival < first) {
			first = arrival;
			best = p;
			if (arrival <= by)
				break;
		}
		ready &= ~BIT(p);
	}
	*start = wire_not_before(free, first);
	return best;
}

static struct sk_buff *wire_queues_take(struct wire_queues *w, unsigned long p, struct Qdisc *sch,
					u64 time)
{
	struct wire_level *l = &w->level[p];
	struct sk_buff *skb = __qdisc_dequeue_head(&l->queue);

	if (!l->queue.head)
		__clear_bit(p, &w->backlogged);
	l->backlog -= wire_cb(skb)->len;
	l->max_wait = max(l->max_wait, time - wire_cb(skb)->time);
	if (static_branch_unlikely(&wire_pauses))
		wire_pause_release(sch, skb, time);
	return skb;
}

static void wire_queues_purge(struct wire_queues *w, struct Qdisc *sch, u64 now)
{
	const struct sk_buff *skb;
	int p;

	for (p = 0; p < TC_WIRE_LEVELS; p++) {
		for (skb = w->level[p].queue.head; skb; skb = skb->next)
			wire_pause_release(sch, skb, now);
		__qdisc_reset_queue(&w->level[p].queue);
		w->level[p].backlog = 0;
	}
	w->backlogged = 0;
}

static int wire_level_dump(const struct wire_sched *q, u32 p, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_WIRE_STATS_LEVEL);
	const struct wire_level *l = &q->queues.level[p];
	const struct wire_account *a = &q->pause.account[p];
	u64 paused = wire_held_ns(&q->pause.held_level[p], q->queues.paused & BIT(p));

	if (!nest || nla_put_u32(skb, TCA_WIRE_LEVEL_STATS_INDEX, p) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_PACKETS, l->packets,
			      TCA_WIRE_LEVEL_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_BYTES, l->bytes,
			      TCA_WIRE_LEVEL_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_DROPS, l->drops,
			      TCA_WIRE_LEVEL_STATS_PAD) ||
	    nla_put_u32(skb, TCA_WIRE_LEVEL_STATS_QLEN, l->queue.qlen) ||
	    nla_put_u32(skb, TCA_WIRE_LEVEL_STATS_BACKLOG, l->backlog) ||
	    nla_put_u32(skb, TCA_WIRE_LEVEL_STATS_MAX_BACKLOG, l->max_backlog) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_MAX_WAIT, l->max_wait,
			      TCA_WIRE_LEVEL_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_MAX_LATE, l->max_late,
			      TCA_WIRE_LEVEL_STATS_PAD))
		return -EMSGSIZE;
	if ((q->pause.pfc || paused) &&
	    (nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_PAUSED, paused,
			       TCA_WIRE_LEVEL_STATS_PAD) ||
	     nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_INGRESS, wire_account_bytes(a),
			       TCA_WIRE_LEVEL_STATS_PAD) ||
	     nla_put_u64_64bit(skb, TCA_WIRE_LEVEL_STATS_MAX_INGRESS, READ_ONCE(a->max),
			       TCA_WIRE_LEVEL_STATS_PAD)))
		return -EMSGSIZE;
	return nla_nest_end(skb, nest);
}

/* From start on, so many bytes and the gap; when the last of them is at the other end. */
static u64 wire_occupy(struct wire_sched *q, struct wire_time start, u32 bytes)
{
	q->free = wire_after(start, bytes + WIRE_GAP, q->params.rate);
	return wire_ceil(wire_after(start, bytes, q->params.rate)) + q->params.delay;
}

/* Bytes from the preamble to the last of the FCS. */
static u32 wire_sent_len(const struct wire_sched *q, u32 len)
{
	return len + WIRE_PREAMBLE + q->params.overhead;
}

static __always_inline void wire_start(struct Qdisc *sch, struct sk_buff *skb,
				       struct wire_time start)
{
	struct wire_sched *q = qdisc_priv(sch);
	struct wire_cb *cb = wire_cb(skb);
	struct wire_level *l = &q->queues.level[cb->level];
	u32 len = wire_sent_len(q, cb->len);
	u64 arrival = cb->time;

	cb->time = wire_occupy(q, start, len);
	/* Before it is put among those in flight, whose tree lies over skb->dev */
	if (unlikely(wire_to_be_stamped(skb)))
		wire_stamp(&q->params, skb);
	if (q->params.quantiles) {
		wire_jitter_add(&q->jitter, &q->params, skb);
		wire_flight_insert(&q->flight, skb);
	} else {
		wire_flight_append(&q->flight, skb);
	}
	l->packets++;
	l->bytes += len + WIRE_GAP;
	trace_wire_frame(qdisc_dev(sch), cb->level, cb->len, arrival, wire_ceil(start), cb->time);
}

/* Start the control frame that is due, if it was by that time; false: none was. */
static bool wire_start_control(struct Qdisc *sch, u64 by, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 since, time;

	if (!wire_pause_due(&q->pause, qdisc_dev(sch), now, &since) || since > by)
		return false;
	time = wire_occupy(q, wire_not_before(q->free, since),
			   WIRE_PREAMBLE + WIRE_PAUSE_BYTES + q->params.overhead);
	if (!q->params.quantiles)
		time = wire_flight_behind(&q->flight, time);
	wire_pause_send(&q->pause, qdisc_dev(sch), by, time);
	return true;
}

/* Whether all that waits is of levels that are paused. A child may have frames of any. */
static bool wire_is_held(const struct wire_sched *q)
{
	return q->queues.backlogged ? !(q->queues.backlogged & ~q->queues.paused) :
				      q->queues.paused;
}

/* With flow control: whether no frame may start, at least until another control frame arrives. */
static bool wire_holds(struct Qdisc *sch, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 next = wire_pause_next(&q->pause);

	if (!wire_is_held(q))
		return false;
	q->pause.again = next <= now && wire_pause_obey(q, qdisc_dev(sch), next, now);
	return true;
}

/* With flow control: whether another is to be chosen for that time, which is not after now. */
static bool wire_defers(struct Qdisc *sch, u64 time, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);

	q->pause.again = wire_start_control(sch, time, now) ||
			 wire_pause_obey(q, qdisc_dev(sch), time, now);
	return q->pause.again;
}

static struct sk_buff *wire_pick_queued(struct Qdisc *sch, u64 now, struct wire_time *start)
{
	struct wire_sched *q = qdisc_priv(sch);
	unsigned long p;

	if (static_branch_unlikely(&wire_pauses) && wire_holds(sch, now))
		return NULL;
	p = wire_queues_first(&q->queues, q->free, start);
	if (static_branch_unlikely(&wire_pauses) && wire_defers(sch, wire_ceil(*start), now))
		return NULL;
	return wire_queues_take(&q->queues, p, sch, wire_ceil(*start));
}

static struct sk_buff *wire_pick_child(struct Qdisc *sch, u64 now, struct wire_time *start)
{
	struct wire_sched *q = qdisc_priv(sch);
	struct sk_buff *skb;

	if (static_branch_unlikely(&wire_pauses) && wire_holds(sch, now))
		return NULL;
	*start = wire_not_before(q->free, q->child_held ? now : q->child_since);
	if (static_branch_unlikely(&wire_pauses) && wire_defers(sch, wire_ceil(*start), now))
		return NULL;
	skb = q->child->dequeue(q->child);
	q->child_held = !skb;
	if (skb)
		*wire_cb(skb) = (struct wire_cb) {
			.time = wire_ceil(*start),	/* when it came the child does not tell */
			.level = wire_classify(&q->params, skb),
			.len = wire_frame_len(skb),
		};
	return skb;
}

/*
 * noop_qdisc is every device's: grafting one writes its length while another
 * wire has its own lock only.
 */
static bool wire_child_waits(const struct wire_sched *q)
{
	return q->child != &noop_qdisc && q->child->q.qlen;
}

/* Start every frame whose start is not after now. */
static void wire_advance(struct Qdisc *sch, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);

	while (wire_ceil(q->free) <= now) {
		struct wire_time start;
		struct sk_buff *skb;

		if (q->queues.backlogged)
			skb = wire_pick_queued(sch, now, &start);
		else if (wire_child_waits(q))
			skb = wire_pick_child(sch, now, &start);
		else
			return;
		if (skb)
			wire_start(sch, skb, start);
		else if (!q->pause.again)
			return;
	}
}

/*
 * Starts have no timer, unless others are told of them: start what has by now,
 * for whoever is about to look at the queues or to change the parameters.
 */
static void wire_settle(struct Qdisc *sch, u64 now)
{
	const struct wire_sched *q = qdisc_priv(sch);

	if (q->queues.backlogged && !static_branch_unlikely(&wire_pauses))
		wire_advance(sch, now);
}

/* The same for a frame that comes now. True: it starts now, and passes by the queues. */
static __always_inline bool wire_starts_now(struct Qdisc *sch, u64 now)
{
	const struct wire_sched *q = qdisc_priv(sch);

	wire_settle(sch, now);
	return !q->queues.backlogged && wire_ceil(q->free) <= now &&
	       !static_branch_unlikely(&wire_pauses);
}

static int wire_enqueue_child(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct wire_sched *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	bool empty;
	int ret;

	/* what has started before this frame came, though the timer is late */
	if (wire_child_waits(q))
		wire_advance(sch, ktime_get_ns());
	empty = !q->child->q.qlen;
	ret = qdisc_enqueue(skb, q->child, to_free);
	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	if (empty) {
		q->child_since = ktime_get_ns();
		q->child_held = false;
	}
	qstats_backlog_add(sch, len);
	qdisc_qlen_inc(sch);
	return NET_XMIT_SUCCESS;
}

static __always_inline int wire_enqueue_frame(struct sk_buff *skb, struct Qdisc *sch,
					      struct sk_buff **to_free)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 now;

	if (q->child != &noop_qdisc)
		return wire_enqueue_child(skb, sch, to_free);
	now = ktime_get_ns();
	*wire_cb(skb) = (struct wire_cb) {
		.time = now,
		.level = wire_classify(&q->params, skb),
		.len = wire_frame_len(skb),
	};
	if (wire_starts_now(sch, now))
		wire_start(sch, skb, wire_not_before(q->free, now));
	else if (!wire_queues_add(&q->queues, &q->params, sch, skb))
		return compat_drop_at_limit(skb, sch, to_free);
	qdisc_qstats_backlog_inc(sch, skb);
	qdisc_qlen_inc(sch);
	return NET_XMIT_SUCCESS;
}

static noinline int wire_enqueue_gso(struct sk_buff *skb, struct Qdisc *sch,
				     struct sk_buff **to_free)
{
	int ret = split_gso(skb, sch, wire_enqueue_frame, to_free);

	return ret < 0 ? qdisc_drop(skb, sch, to_free) : ret;
}

static int wire_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	if (unlikely(skb_is_gso(skb)))
		return wire_enqueue_gso(skb, sch, to_free);
	return wire_enqueue_frame(skb, sch, to_free);
}

/* Control frames without any other, after wire_advance(); wake: when to look again. */
static u64 wire_advance_control(struct Qdisc *sch, u64 now, u64 wake)
{
	struct wire_sched *q = qdisc_priv(sch);
	struct net_device *dev = qdisc_dev(sch);
	u64 since;

	smp_mb();	/* who kicks us has written before */
	while (wire_ceil(q->free) <= now && wire_start_control(sch, now, now))
		wake = max(wake, wire_ceil(q->free));
	/* a child may have woken us while it was paused, and does not again */
	if (wire_pause_obey(q, dev, now, now))
		wake = min(wake, wire_ceil(q->free));
	if (wire_is_held(q))
		wake = U64_MAX;
	if (wire_pause_due(&q->pause, dev, now, &since))
		wake = min(wake, max(wire_ceil(q->free), since));
	return min(wake, wire_pause_next(&q->pause));
}

/*
 * Whether a child is to be asked for a frame when the wire is free. One that had
 * nothing to give wakes us itself, but it may do so while a control frame is on
 * the wire, and not again: so that counts only as long as the wire is free.
 */
static bool wire_asks_child(const struct wire_sched *q, u64 now)
{
	return wire_child_waits(q) && !(q->child_held && wire_ceil(q->free) <= now);
}

/*
 * When to look again for the sake of what waits: when the last bit of the next
 * frame has left, if none comes before that starts, for then we are asked again.
 */
static u64 wire_next(const struct wire_sched *q, u64 now)
{
	const struct sk_buff *skb;

	if (!q->queues.backlogged)
		return wire_asks_child(q, now) ? wire_ceil(q->free) : U64_MAX;
	skb = q->queues.level[__fls(q->queues.backlogged)].queue.head;
	if (static_branch_unlikely(&wire_pauses) || unlikely(wire_to_be_stamped(skb)))
		return wire_ceil(q->free);
	return wire_ceil(wire_after(q->free, wire_sent_len(q, wire_cb(skb)->len), q->params.rate));
}

/* Nothing is to be handed over yet; first is what will be if nothing comes before it, or NULL. */
static noinline void wire_sleep(struct Qdisc *sch, const struct sk_buff *first, u64 now)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 wake = wire_next(q, now);

	if (static_branch_unlikely(&wire_pauses))
		wake = wire_advance_control(sch, now, wake);
	if (first)
		wake = min(wake, wire_cb(first)->time);
	if (wake != U64_MAX)
		qdisc_watchdog_schedule_ns(&q->watchdog, wake);
}

static noinline struct sk_buff *wire_dequeue_frame(struct Qdisc *sch)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns(), late;
	struct wire_level *l;
	struct sk_buff *skb;

	if (q->queues.backlogged || q->child != &noop_qdisc)
		wire_advance(sch, now);
	skb = wire_flight_next(&q->flight);
	if (!skb || wire_cb(skb)->time > now) {
		wire_sleep(sch, skb, now);
		return NULL;
	}
	wire_flight_take(&q->flight, skb, qdisc_dev(sch));
	l = &q->queues.level[wire_cb(skb)->level];
	late = now - wire_cb(skb)->time;
	if (late > l->max_late)
		l->max_late = late;
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_qlen_dec(sch);
	qdisc_bstats_update(sch, skb);
	if (q->params.orphan)
		skb_orphan(skb);
	return skb;
}

static struct sk_buff *wire_dequeue(struct Qdisc *sch)
{
	if (!sch->q.qlen && !static_branch_unlikely(&wire_pauses))
		return NULL;	/* nothing waits, and nothing is on the wire */
	return wire_dequeue_frame(sch);
}

/*
 * The parameters of a wire: netlink attributes, what is refused and why. They
 * are parsed into a copy, which replaces the old ones only when it is valid.
 */
static int wire_params_check_jitter(const struct wire_params *p, struct netlink_ext_ack *extack)
{
	u32 i, last = p->quantiles - 1;

	if (!p->quantiles)
		return 0;
	if (!last || p->jitter[0].share || p->jitter[last].share != U32_MAX)
		return refuse(extack, "The quantiles of the jitter must go from 0 to 100 %");
	for (i = 1; i <= last; i++)
		if (p->jitter[i].share <= p->jitter[i - 1].share ||
		    p->jitter[i].ns < p->jitter[i - 1].ns)
			return refuse(extack, "The quantiles of the jitter must ascend");
	if (p->jitter[last].ns > WIRE_MAX_JITTER)
		return refuse(extack, "The jitter must not exceed 4 s");
	return 0;
}

/* -EINVAL and the reason, or 0. */
static int wire_params_check(const struct wire_params *p, struct netlink_ext_ack *extack)
{
	if (!p->rate)
		return refuse(extack, "A wire needs a rate");
	if (p->xon >= max(p->xoff, 1U))
		return refuse(extack, "The threshold of resumes must be below that of pauses");
	if (p->pfc && !p->xoff)
		return refuse(extack, "Levels are paused by thresholds: give those of pauses too");
	return wire_params_check_jitter(p, extack);
}

/* The policies say "integer out of range"; say of what, and which it is. */
static int wire_out_of_range(int err, struct netlink_ext_ack *extack)
{
	const struct nla_policy *policy = extack ? extack->policy : NULL;

	if (err != -ERANGE)	/* a wrong length or type: the kernel says that well */
		return err;
	if (policy == &wire_policy[TCA_WIRE_RATE])
		NL_SET_ERR_MSG_MOD(extack, "The rate must lie between 1 kbit/s and 1 Tbit/s");
	else if (policy == &wire_policy[TCA_WIRE_LIMIT])
		NL_SET_ERR_MSG_MOD(extack, "The limit must lie between 64 and 2^31 - 1 bytes");
	else if (policy == &wire_policy[TCA_WIRE_CLASSIFY])
		NL_SET_ERR_MSG_MOD(extack,
				   "Frames are classified by pcp, by priority or not at all (fifo)");
	else if (policy == &wire_policy[TCA_WIRE_OVERHEAD])
		NL_SET_ERR_MSG_MOD(extack, "The overhead must not exceed 2048 bytes");
	else if (policy == &wire_policy[TCA_WIRE_DELAY])
		NL_SET_ERR_MSG_MOD(extack, "The delay must not exceed 10 s");
	else if (policy == &wire_policy[TCA_WIRE_ORPHAN])
		NL_SET_ERR_MSG_MOD(extack, "Orphan must be 0 or 1");
	else if (policy == &wire_policy[TCA_WIRE_PFC])
		NL_SET_ERR_MSG_MOD(extack, "Only levels 0 to 7 can be paused");
	return err;
}

static int wire_params_parse(struct wire_params *p, struct nlattr *opt,
			     struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_WIRE_MAX + 1];
	int err;

	err = nla_parse_nested(tb, TCA_WIRE_MAX, opt, wire_policy, extack);
	if (err)
		return wire_out_of_range(err, extack);
	if (tb[TCA_WIRE_RATE])
		p->rate = nla_get_u64(tb[TCA_WIRE_RATE]);
	if (tb[TCA_WIRE_LIMIT])
		p->limit = nla_get_u32(tb[TCA_WIRE_LIMIT]);
	if (tb[TCA_WIRE_CLASSIFY])
		p->classify = nla_get_u32(tb[TCA_WIRE_CLASSIFY]);
	if (tb[TCA_WIRE_OVERHEAD])
		p->overhead = nla_get_u32(tb[TCA_WIRE_OVERHEAD]);
	if (tb[TCA_WIRE_DELAY])
		p->delay = nla_get_u64(tb[TCA_WIRE_DELAY]);
	if (tb[TCA_WIRE_ORPHAN])
		p->orphan = nla_get_u32(tb[TCA_WIRE_ORPHAN]);
	if (tb[TCA_WIRE_XOFF])
		p->xoff = nla_get_u32(tb[TCA_WIRE_XOFF]);
	if (tb[TCA_WIRE_XON])
		p->xon = nla_get_u32(tb[TCA_WIRE_XON]);
	if (tb[TCA_WIRE_PFC])
		p->pfc = nla_get_u32(tb[TCA_WIRE_PFC]);
	else if (!p->xoff)	/* no pauses any more */
		p->pfc = 0;
	if (tb[TCA_WIRE_JITTER]) {
		if (nla_len(tb[TCA_WIRE_JITTER]) % sizeof(p->jitter[0]))
			return refuse_at(extack, tb[TCA_WIRE_JITTER],
					 "A quantile of the jitter has 8 bytes");
		p->quantiles = nla_len(tb[TCA_WIRE_JITTER]) / sizeof(p->jitter[0]);
		nla_memcpy(p->jitter, tb[TCA_WIRE_JITTER], sizeof(p->jitter));
	}
	if (tb[TCA_WIRE_SEED])
		p->seed = nla_get_u64(tb[TCA_WIRE_SEED]);
	return wire_params_check(p, extack);
}

static int wire_jitter_dump(const struct wire_params *p, struct sk_buff *skb)
{
	u32 i, quantiles = READ_ONCE(p->quantiles);
	struct tc_wire_quantile *quantile;
	struct nlattr *attr = nla_reserve(skb, TCA_WIRE_JITTER, quantiles * sizeof(*quantile));

	if (!attr)
		return -EMSGSIZE;
	quantile = nla_data(attr);
	for (i = 0; i < quantiles; i++) {
		quantile[i].share = READ_ONCE(p->jitter[i].share);
		quantile[i].ns = READ_ONCE(p->jitter[i].ns);
	}
	return 0;
}

static int wire_params_dump(const struct wire_params *p, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);

	if (!nest ||
	    nla_put_u64_64bit(skb, TCA_WIRE_RATE, READ_ONCE(p->rate), TCA_WIRE_PAD) ||
	    nla_put_u32(skb, TCA_WIRE_LIMIT, READ_ONCE(p->limit)) ||
	    nla_put_u32(skb, TCA_WIRE_CLASSIFY, READ_ONCE(p->classify)) ||
	    nla_put_u32(skb, TCA_WIRE_OVERHEAD, READ_ONCE(p->overhead)) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_DELAY, READ_ONCE(p->delay), TCA_WIRE_PAD) ||
	    nla_put_u32(skb, TCA_WIRE_ORPHAN, READ_ONCE(p->orphan)) ||
	    nla_put_u32(skb, TCA_WIRE_XOFF, READ_ONCE(p->xoff)) ||
	    nla_put_u32(skb, TCA_WIRE_XON, READ_ONCE(p->xon)) ||
	    nla_put_u32(skb, TCA_WIRE_PFC, READ_ONCE(p->pfc)) ||
	    wire_jitter_dump(p, skb) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_SEED, READ_ONCE(p->seed), TCA_WIRE_PAD))
		return -EMSGSIZE;
	return nla_nest_end(skb, nest);
}

/* For dumps, which may read them without our lock. */
static void wire_params_store(struct wire_params *to, const struct wire_params *from)
{
	u32 i;

	WRITE_ONCE(to->rate, from->rate);
	WRITE_ONCE(to->delay, from->delay);
	WRITE_ONCE(to->limit, from->limit);
	WRITE_ONCE(to->classify, from->classify);
	WRITE_ONCE(to->overhead, from->overhead);
	WRITE_ONCE(to->orphan, from->orphan);
	WRITE_ONCE(to->xoff, from->xoff);
	WRITE_ONCE(to->xon, from->xon);
	WRITE_ONCE(to->pfc, from->pfc);
	for (i = 0; i < from->quantiles; i++) {
		WRITE_ONCE(to->jitter[i].share, from->jitter[i].share);
		WRITE_ONCE(to->jitter[i].ns, from->jitter[i].ns);
	}
	WRITE_ONCE(to->quantiles, from->quantiles);
	WRITE_ONCE(to->seed, from->seed);
}

static int wire_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct wire_sched *q = qdisc_priv(sch);
	struct wire_params p = q->params;
	int err = wire_params_parse(&p, opt, extack);
	u64 now;

	if (err)
		return err;
	if (p.xoff && sch->parent != TC_H_ROOT)
		return refuse(extack, "Only the wire at the root of a device can send pauses");
	if (p.xoff)
		static_branch_enable(&wire_pauses);
	sch_tree_lock(sch);
	now = ktime_get_ns();
	wire_settle(sch, now);
	if (p.rate != q->params.rate)	/* the rest is counted in units of the rate */
		q->free = (struct wire_time) { .ns = wire_ceil(q->free) };
	if (p.xoff != q->params.xoff || p.xon != q->params.xon || p.pfc != q->params.pfc)
		wire_pause_change(&q->pause, qdisc_dev(sch), &p);
	if (p.seed != q->params.seed || p.quantiles != q->params.quantiles)
		prandom_seed_state(&q->jitter.rnd, p.seed);
	wire_params_store(&q->params, &p);
	if (sch->q.qlen)	/* what waits may leave earlier than the timer knows */
		qdisc_watchdog_schedule_ns(&q->watchdog, now);
	sch_tree_unlock(sch);
	return 0;
}

static int wire_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct wire_sched *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	q->child = &noop_qdisc;
	wire_pause_renew(&q->pause);
	if (qdisc_under_mq(sch))
		return refuse(extack, "Below a multi-queue root each queue would be its own wire");
	if (!opt)
		return refuse(extack, "A wire needs a rate");
	q->params.limit = WIRE_LIMIT;
	q->params.orphan = 1;
	return wire_change(sch, opt, extack);
}

static void wire_reset(struct Qdisc *sch)
{
	struct wire_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();

	qdisc_watchdog_cancel(&q->watchdog);
	wire_queues_purge(&q->queues, sch, now);
	wire_flight_purge(&q->flight);
	memset(q->jitter.last, 0, sizeof(q->jitter.last));
	qdisc_reset(q->child);
	q->child_held = false;
	wire_pause_reset(q, qdisc_dev(sch), now);
	q->free = (struct wire_time) {};
}

static void wire_destroy(struct Qdisc *sch)
{
	struct wire_sched *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->child);
}

static int wire_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct wire_sched *q = qdisc_priv(sch);

	return wire_params_dump(&q->params, skb);
}

static int wire_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct nlattr *stats = nla_nest_start(d->skb, TCA_STATS_APP);
	struct wire_sched *q = qdisc_priv(sch);
	int p, err = 0;

	if (!stats)
		return -1;
	sch_tree_lock(sch);
	wire_settle(sch, ktime_get_ns());
	for (p = 0; p < TC_WIRE_LEVELS && err >= 0; p++)
		err = wire_level_dump(q, p, d->skb);
	if (err >= 0)
		err = wire_pause_dump(q, d->skb);
	sch_tree_unlock(sch);
	if (err < 0) {
		nla_nest_cancel(d->skb, stats);
		return -1;
	}
	nla_nest_end(d->skb, stats);
	return 0;
}

static int wire_graft(struct Qdisc *sch, unsigned long cl, struct Qdisc *new, struct Qdisc **old,
		      struct netlink_ext_ack *extack)
{
	struct wire_sched *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->child);
	sch_tree_lock(sch);
	q->child_held = false;
	sch_tree_unlock(sch);
	return 0;
}

static struct Qdisc *wire_leaf(struct Qdisc *sch, unsigned long cl)
{
	struct wire_sched *q = qdisc_priv(sch);

	return q->child;
}

static unsigned long wire_find(struct Qdisc *sch, u32 classid)
{
	return TC_H_MIN(classid) == WIRE_CLASS ? WIRE_CLASS : 0;
}

static void wire_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop)
		tc_qdisc_stats_dump(sch, WIRE_CLASS, walker);
}

static int wire_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
			   struct tcmsg *tcm)
{
	struct wire_sched *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(WIRE_CLASS);
	tcm->tcm_info = q->child->handle;
	return 0;
}

static const struct Qdisc_class_ops wire_class_ops = {
	.graft	= wire_graft,
	.leaf	= wire_leaf,
	.find	= wire_find,
	.walk	= wire_walk,
	.dump	= wire_dump_class,
};

static struct Qdisc_ops wire_ops __read_mostly = {
	.id		= "wire",
	.cl_ops		= &wire_class_ops,
	.priv_size	= sizeof(struct wire_sched),
	.enqueue	= wire_enqueue,
	.dequeue	= wire_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= wire_init,
	.reset		= wire_reset,
	.destroy	= wire_destroy,
	.change		= wire_change,
	.dump		= wire_dump,
	.dump_stats	= wire_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("wire");

static int __init wire_module_init(void)
{
	return register_qdisc(&wire_ops);
}

static void __exit wire_module_exit(void)
{
	unregister_qdisc(&wire_ops);
}

module_init(wire_module_init)
module_exit(wire_module_exit)
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("One direction of a full-duplex Ethernet link");
