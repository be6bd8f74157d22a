/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ethernet flow control between the wires of a link (IEEE 802.3, annex 31B)
 *
 * A port with thresholds counts the bytes of frames that came in through it
 * and still wait in a wire of the same switch: they are charged to the wire at
 * the root of skb->skb_iif, the device that received them, when they are
 * queued, and released when they start to leave. When its account reaches XOFF
 * the port sends a pause to its link partner, and when it falls to XON a
 * resume. Control frames have 64 bytes, go before all queues and are held back
 * by no pause. A pause stands until it is resumed, as if it was refreshed in
 * time; there are no quanta.
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
#ifndef WIRE_PAUSE_H
#define WIRE_PAUSE_H

#include <linux/atomic.h>
#include <linux/jump_label.h>
#include <linux/netdevice.h>
#include "wire_frame.h"

#define WIRE_PAUSE_BYTES	64	/* of a MAC control frame */
#define WIRE_MAILS		16	/* control frames under way at most; a power of two */
#define WIRE_NUMBER_SHIFT	40
#define WIRE_ACCOUNT_BYTES	(BIT_ULL(WIRE_NUMBER_SHIFT) - 1)

struct wire_pause {
	/* sending; thresholds are copies of the parameters, for those without our lock */
	u32		xoff;		/* bytes; 0: sends no pauses */
	u32		xon;		/* bytes, below xoff */
	atomic64_t	account;	/* our number, and bytes that came in here and wait */
	atomic64_t	since;		/* ns: the account crossed a threshold */
	u64		max_account;	/* bytes */
	bool		want;		/* the partner is to be paused */
	bool		told;		/* what the last control frame said of that */
	u32		partner;	/* the number of the wire that it said it to; 0: none */
	u64		sent;		/* pauses */
	/* the mailbox; the partner writes the first three */
	u64		mail[WIRE_MAILS];	/* ns * 2, + 1: pause, + 0: resume */
	u32		head;		/* mails written */
	u32		void_until;	/* mails before this one are void: their sender is gone */
	u32		tail;		/* mails taken */
	u32		voided;		/* void_until, when it was last seen */
	/* obeying */
	bool		paused;
	bool		again;		/* no frame was started, but another may be */
	u64		since_paused;	/* ns */
	u64		received;	/* pauses */
	u64		paused_ns;	/* without the pause that stands */
};

static DEFINE_STATIC_KEY_FALSE(wire_pauses);	/* there has been a wire with thresholds */
static atomic_t wire_numbers;

/* That of the wire at the root of a device that is up, or NULL; dev may be NULL; under RCU. */
static struct wire_pause *wire_pause_of(const struct net_device *dev);

/* The other end of a veth, or NULL; under RCU. It may be gone the next time. */
static inline struct net_device *wire_peer(struct net_device *dev)
{
	const struct net_device_ops *ops = dev->netdev_ops;

	return ops->ndo_get_peer_dev ? ops->ndo_get_peer_dev(dev) : NULL;
}

/* Have the root qdisc of a device run soon, without its lock; under RCU. */
static inline void wire_kick(const struct net_device *dev)
{
	netif_schedule_queue(netdev_get_tx_queue(dev, 0));
}

static inline u32 wire_pause_number(const struct wire_pause *p)
{
	return atomic64_read(&p->account) >> WIRE_NUMBER_SHIFT;
}

/* A new number, never 0, and nothing on the account. */
static inline void wire_pause_renew(struct wire_pause *p)
{
	u32 number;

	do {
		number = atomic_inc_return(&wire_numbers) & (BIT(64 - WIRE_NUMBER_SHIFT) - 1);
	} while (!number);
	/* ordered: a partner that sees it writes behind what is not read any more */
	atomic64_xchg(&p->account, (u64)number << WIRE_NUMBER_SHIFT);
}

/* A frame has been queued at an egress: put it on the account of its ingress. */
static noinline void wire_pause_charge(struct Qdisc *egress, const struct sk_buff *skb)
{
	struct wire_cb *cb = wire_cb(skb);
	struct net_device *dev;
	struct wire_pause *p;

	if (!skb->skb_iif)	/* sent by this host itself */
		return;
	rcu_read_lock();
	dev = dev_get_by_index_rcu(dev_net(qdisc_dev(egress)), skb->skb_iif);
	p = wire_pause_of(dev);
	if (p && READ_ONCE(p->xoff)) {
		u64 account = atomic64_add_return(cb->len, &p->account);
		u64 bytes = account & WIRE_ACCOUNT_BYTES;

		cb->charged = account >> WIRE_NUMBER_SHIFT;
		if (bytes > READ_ONCE(p->max_account))
			WRITE_ONCE(p->max_account, bytes);
		if (bytes >= READ_ONCE(p->xoff)) {
			if (bytes - cb->len < READ_ONCE(p->xoff))
				atomic64_set(&p->since, cb->time);
			wire_kick(dev);
		}
	}
	rcu_read_unlock();
}

/* A frame starts to leave, or is purged. */
static noinline void wire_pause_release(struct Qdisc *egress, const struct sk_buff *skb, u64 time)
{
	const struct wire_cb *cb = wire_cb(skb);
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
	old = atomic64_read(&p->account);
	do {
		if ((u64)old >> WIRE_NUMBER_SHIFT != cb->charged)
			goto out;
	} while (!atomic64_try_cmpxchg(&p->account, &old, old - cb->len));
	bytes = old & WIRE_ACCOUNT_BYTES;
	if (bytes > READ_ONCE(p->xon) && bytes - cb->len <= READ_ONCE(p->xon)) {
		atomic64_set(&p->since, time);
		wire_kick(dev);
	}
out:
	rcu_read_unlock();
}

/*
 * Whether a control frame is to be sent, and since when. A partner that has
 * been replaced does not know of the pause that stands: it is told again.
 */
static inline bool wire_pause_due(struct wire_pause *p, struct net_device *dev, u64 now,
				  u64 *since)
{
	u64 bytes = atomic64_read(&p->account) & WIRE_ACCOUNT_BYTES;
	const struct wire_pause *partner;
	bool due;

	if (p->xoff && bytes >= p->xoff)
		p->want = true;
	else if (bytes <= p->xon)
		p->want = false;
	if (!p->want && !p->told)
		return false;
	rcu_read_lock();
	partner = wire_pause_of(wire_peer(dev));
	due = p->want != p->told || (partner && wire_pause_number(partner) != p->partner);
	*since = p->want != p->told ? atomic64_read(&p->since) : now;
	/* pairs with the release of tail: a mail is read before it is written anew */
	if (partner && partner->head - smp_load_acquire(&partner->tail) == WIRE_MAILS)
		due = false;	/* it will kick us */
	rcu_read_unlock();
	return due;
}

/* The control frame that is due has started, and arrives at that time. */
static inline void wire_pause_send(struct wire_pause *p, struct net_device *dev, u64 time)
{
	struct wire_pause *partner;
	struct net_device *peer;

	p->told = p->want;
	p->sent += p->want;
	p->partner = 0;
	rcu_read_lock();
	peer = wire_peer(dev);
	partner = wire_pause_of(peer);
	if (partner) {
		p->partner = wire_pause_number(partner);
		WRITE_ONCE(partner->mail[partner->head % WIRE_MAILS], time << 1 | p->want);
		/* the mail before its number */
		smp_store_release(&partner->head, partner->head + 1);
		wire_kick(peer);
	}
	rcu_read_unlock();
}

/* No pauses any more: whom we have paused goes on at once, and what is on our account is not. */
static inline void wire_pause_stop(struct wire_pause *p, struct net_device *dev)
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
	p->want = false;
	p->told = false;
	p->partner = 0;
	wire_pause_renew(p);
}

static inline void wire_pause_end(struct wire_pause *p, u64 time, struct wire_time *free)
{
	if (!p->paused)
		return;
	p->paused = false;
	p->paused_ns += time - p->since_paused;
	*free = wire_not_before(*free, time);
}

/* Obey the control frames that have arrived by that time; free: when the next frame may start. */
static inline void wire_pause_obey(struct wire_pause *p, struct net_device *dev, u64 time, u64 now,
				   struct wire_time *free)
{
	u32 head, gone, tail = p->tail;
	struct net_device *peer;
	bool full;

	/* head first: who sees a mail sees the voids before it */
	head = smp_load_acquire(&p->head);
	gone = READ_ONCE(p->void_until);
	if (unlikely(gone != p->voided)) {
		p->voided = gone;
		tail = gone;
		if ((s32)(gone - head) > 0)
			head = gone;
		wire_pause_end(p, now, free);
	}
	for (; tail != head; tail++) {
		u64 mail = READ_ONCE(p->mail[tail % WIRE_MAILS]);

		if (mail >> 1 > time)
			break;
		if (!(mail & 1)) {
			wire_pause_end(p, mail >> 1, free);
			continue;
		}
		p->received++;
		if (!p->paused)
			p->since_paused = mail >> 1;
		p->paused = true;
	}
	if (tail == p->tail)
		return;
	full = head - p->tail == WIRE_MAILS;
	/* its mails have been read */
	smp_store_release(&p->tail, tail);
	rcu_read_lock();
	peer = full ? wire_peer(dev) : NULL;
	if (peer)
		wire_kick(peer);
	rcu_read_unlock();
}

/* As new: the account is empty, no frame is held, and no partner because of us. */
static inline void wire_pause_reset(struct wire_pause *p, struct net_device *dev, u64 now,
				    struct wire_time *free)
{
	WRITE_ONCE(p->tail, READ_ONCE(p->head));
	p->voided = READ_ONCE(p->void_until);
	wire_pause_end(p, now, free);
	wire_pause_stop(p, dev);
}

/* Thresholds have changed: look at the account, which is not kept without. */
static inline void wire_pause_change(struct wire_pause *p, struct net_device *dev, u32 xoff,
				     u32 xon)
{
	if (!p->xoff || !xoff)
		wire_pause_stop(p, dev);
	WRITE_ONCE(p->xoff, xoff);
	WRITE_ONCE(p->xon, xon);
	atomic64_set(&p->since, ktime_get_ns());
	rcu_read_lock();
	wire_kick(dev);
	rcu_read_unlock();
}

static inline int wire_pause_dump(const struct wire_pause *p, struct sk_buff *skb)
{
	u64 paused = p->paused_ns + (p->paused ? ktime_get_ns() - p->since_paused : 0);

	if (nla_put_u32(skb, TCA_WIRE_STATS_PAUSE_ON, !!p->xoff) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_PAUSE_SENT, p->sent, TCA_WIRE_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_PAUSE_RECEIVED, p->received,
			      TCA_WIRE_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_PAUSED, paused, TCA_WIRE_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_INGRESS,
			      atomic64_read(&p->account) & WIRE_ACCOUNT_BYTES,
			      TCA_WIRE_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_WIRE_STATS_MAX_INGRESS, READ_ONCE(p->max_account),
			      TCA_WIRE_STATS_PAD))
		return -EMSGSIZE;
	return 0;
}

/* When the next control frame arrives that is known of; U64_MAX: none is. */
static inline u64 wire_pause_next(const struct wire_pause *p)
{
	/* the number before the mail */
	if (smp_load_acquire(&p->head) == p->tail)
		return U64_MAX;
	return READ_ONCE(p->mail[p->tail % WIRE_MAILS]) >> 1;
}

/* Whether a frame that could start at that time, which is not after now, must wait. */
static inline bool wire_pause_holds(struct wire_pause *p, struct net_device *dev, u64 time, u64 now,
				    struct wire_time *free)
{
	wire_pause_obey(p, dev, time, now, free);
	while (p->paused && wire_pause_next(p) <= now)
		wire_pause_obey(p, dev, wire_pause_next(p), now, free);
	return p->paused;
}

#endif
