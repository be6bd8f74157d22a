// SPDX-License-Identifier: GPL-2.0
/*
 * Flow control of wires
 *
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
 * Nothing that frames cause takes the lock of another wire, for two root locks
 * must never nest. An account is one atomic word. A mailbox has one writer, the partner
 * under its own lock, and one reader, its owner under its own. A wire that is
 * reached through its device, under RCU, may be reset at any time: it then
 * takes a new number, by which frames know whether they are still on its
 * account and partners whom they have paused.
 *
 * Wires look for all this only while one of them has thresholds: wire_pauses.
 */

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/jump_label.h>
#include <linux/ktime.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/skbuff.h>
#include <net/sch_generic.h>

#include "wire.h"

DEFINE_STATIC_KEY_FALSE(wire_pauses);
static atomic_t wire_numbers;

/* The wire at the root of a device that is up, or NULL; dev may be NULL; under RCU. */
static struct Qdisc *wire_at(const struct net_device *dev)
{
	struct Qdisc *root;

	if (!dev)
		return NULL;
	root = rcu_dereference(netdev_get_tx_queue(dev, 0)->qdisc);
	return root->ops == &wire_ops ? root : NULL;
}

/* The same of its flow control. */
static struct wire_pause *wire_pause_of(const struct net_device *dev)
{
	struct Qdisc *root = wire_at(dev);

	return root ? &((struct wire_sched *)qdisc_priv(root))->pause : NULL;
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

/* A new number, never 0, and nothing on the accounts. */
void wire_pause_renew(struct wire_pause *p)
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
void wire_pause_charge(struct Qdisc *egress, const struct sk_buff *skb)
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
void wire_pause_release(struct Qdisc *egress, const struct sk_buff *skb, u64 time)
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
bool wire_pause_due(struct wire_pause *p, struct net_device *dev, u64 now, u64 *since)
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
void wire_pause_send(struct wire_pause *p, struct net_device *dev, u64 by, u64 time)
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
bool wire_pause_obey(struct wire_sched *q, struct net_device *dev, u64 time, u64 now)
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
void wire_pause_reset(struct wire_sched *q, struct net_device *dev, u64 now)
{
	/* head first, as in wire_pause_obey() */
	WRITE_ONCE(q->pause.tail, smp_load_acquire(&q->pause.head));
	q->pause.voided = READ_ONCE(q->pause.void_until);
	wire_pause_set(q, 0, now);
	wire_pause_stop(&q->pause, dev);
}

/* Thresholds or levels have changed: look at the accounts, which are not kept without. */
void wire_pause_change(struct wire_pause *p, struct net_device *dev,
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

/* A wire has thresholds now. It may sleep, as the next. */
void wire_pauses_begin(void)
{
	static_branch_inc(&wire_pauses);
}

/*
 * The wire of that device has none any more, and has voided what it sent. Whom it
 * paused must know before nobody looks into mailboxes. None of our locks is held.
 */
void wire_pauses_end(struct net_device *dev)
{
	struct net_device *peer;
	struct Qdisc *partner;
	u64 now;

	rcu_read_lock();
	peer = wire_peer(dev);
	partner = wire_at(peer);
	if (partner) {
		spin_lock_bh(qdisc_lock(partner));
		now = ktime_get_ns();
		wire_pause_obey(qdisc_priv(partner), peer, now, now);
		spin_unlock_bh(qdisc_lock(partner));
	}
	rcu_read_unlock();
	static_branch_dec(&wire_pauses);
}

/* When the next control frame arrives that is known of; U64_MAX: none is. */
u64 wire_pause_next(const struct wire_pause *p)
{
	/* the number before the mail */
	if (smp_load_acquire(&p->head) == p->tail)
		return U64_MAX;
	return READ_ONCE(p->mail[p->tail % WIRE_MAILS].time);
}
