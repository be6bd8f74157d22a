// SPDX-License-Identifier: GPL-2.0
/*
 * Flow control of wires
 *
 * IEEE 802.3, annex 31B, between the two wires of a link. Every wire obeys pauses. A
 * port with thresholds counts the bytes of frames that it received and that still
 * wait in a wire of the same switch. When such a frame is queued, it is charged to the
 * wire at the root of skb->skb_iif, the device that received it; when it starts to
 * leave, it is released. When the account reaches XOFF, the port sends a pause to its
 * link partner; when it falls to XON, a resume. Control frames have 64 bytes, go
 * before all queues and are not held back by pauses. A pause lasts until the resume,
 * as if it were always refreshed in time; there are no pause quanta.
 *
 * With pfc (IEEE 802.1Qbb), each level named has its own account, with the same
 * thresholds, and is paused alone. A control frame, of the same size, lists the levels
 * that must pause now. Without pfc a pause applies to all levels, by one account. A
 * child does not report the level of its next frame, so it is held while any level is
 * paused.
 *
 * Control frames are not skbs. A control frame that starts is put into the mailbox of
 * the wire at the other end, with the arrival time of its last bit. So that wire knows
 * in advance, and starts no frame from exactly that time on, however late its timer.
 *
 * The data path never takes the lock of another wire, as two root locks must not nest.
 * An account is a single atomic word. A mailbox has one writer, the partner under its
 * lock, and one reader, the owner under its own. A wire found through its device,
 * under RCU, may be reset at any time. It then takes a new number, by which a frame
 * knows whether it is still on the account, and a partner whom it has paused.
 *
 * The static key wire_pauses skips all of this while no wire has thresholds.
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

/* Return the wire at the root of dev, or NULL if there is none or dev is NULL. Under RCU. */
static struct Qdisc *wire_at(const struct net_device *dev)
{
	struct Qdisc *root;

	if (!dev)
		return NULL;
	root = rcu_dereference(netdev_get_tx_queue(dev, 0)->qdisc);
	return root->ops == &wire_ops ? root : NULL;
}

/* Likewise, but return the flow control state of the wire. */
static struct wire_pause *wire_pause_of(const struct net_device *dev)
{
	struct Qdisc *root = wire_at(dev);

	return root ? &((struct wire_sched *)qdisc_priv(root))->pause : NULL;
}

/* Return the other end of a veth, or NULL. Under RCU: the next call may differ. */
static struct net_device *wire_peer(struct net_device *dev)
{
	const struct net_device_ops *ops = dev->netdev_ops;

	return ops->ndo_get_peer_dev ? ops->ndo_get_peer_dev(dev) : NULL;
}

/* Schedule the root qdisc of a device, without taking its lock. Under RCU. */
static void wire_kick(const struct net_device *dev)
{
	netif_schedule_queue(netdev_get_tx_queue(dev, 0));
}

static u32 wire_pause_number(const struct wire_pause *p)
{
	return (u64)atomic64_read(&p->account[0].bytes) >> WIRE_NUMBER_SHIFT;
}

/* Take a new number, never 0, and clear the accounts. */
void wire_pause_renew(struct wire_pause *p)
{
	u32 number;
	int i;

	do {
		number = atomic_inc_return(&wire_numbers) & (BIT(64 - WIRE_NUMBER_SHIFT) - 1);
	} while (!number);
	/* ordered: a partner that sees the number writes after the mails that were skipped */
	for (i = TC_WIRE_LEVELS - 1; i >= 0; i--)
		atomic64_xchg(&p->account[i].bytes, (u64)number << WIRE_NUMBER_SHIFT);
}

/* Return the account that frames of a level are charged to, or NULL. */
static struct wire_account *wire_pause_account(struct wire_pause *p, u32 level)
{
	u32 pfc = READ_ONCE(p->pfc);

	if (!pfc)
		return &p->account[0];
	return pfc & BIT(level) ? &p->account[level] : NULL;
}

/* Charge a frame, queued at egress, to the account of its ingress. */
void wire_pause_charge(struct Qdisc *egress, const struct sk_buff *skb)
{
	struct wire_cb *cb = wire_cb(skb);
	struct wire_account *a;
	struct net_device *dev;
	struct wire_pause *p;

	if (!skb->skb_iif)	/* sent by this host, not forwarded */
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

/* Release a frame that starts to leave or is purged. */
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

/* Return the levels that an account pauses. */
static u32 wire_account_levels(const struct wire_pause *p, int account)
{
	return p->pfc ? BIT(account) : WIRE_ALL_LEVELS;
}

/*
 * True if the mailbox of the partner is full. The barriers make sure that either we
 * see the tail that the partner wrote, or it sees the head that we wrote, and kicks us.
 */
static bool wire_pause_full(const struct wire_pause *partner)
{
	/* pairs with the release of tail: a mail is read before it is overwritten */
	if (partner->head - smp_load_acquire(&partner->tail) != WIRE_MAILS)
		return false;
	smp_mb();	/* pairs with smp_mb() in wire_pause_obey() */
	return partner->head - smp_load_acquire(&partner->tail) == WIRE_MAILS;
}

/*
 * True if a control frame must be sent; set *since to when it became due. A partner
 * that has been replaced does not know of the current pauses, so repeat them.
 */
bool wire_pause_due(struct wire_pause *p, struct net_device *dev, u64 now, u64 *since)
{
	const struct wire_pause *partner;
	bool full, replaced;
	int i;

	for (i = 0; i < (p->pfc ? TC_WIRE_LEVELS : 1); i++) {
		u64 bytes = wire_account_bytes(&p->account[i]);

		if (p->xoff && bytes >= p->xoff)
			p->wanted |= wire_account_levels(p, i);
		else if (bytes <= p->xon)
			p->wanted &= ~wire_account_levels(p, i);
	}
	if (!p->wanted && !p->announced)
		return false;
	rcu_read_lock();
	partner = wire_pause_of(wire_peer(dev));
	replaced = p->announced && partner && wire_pause_number(partner) != p->partner;
	full = partner && wire_pause_full(partner);
	rcu_read_unlock();
	if (replaced)
		p->announced = 0;
	*since = U64_MAX;
	for (i = 0; i < TC_WIRE_LEVELS; i++) {
		struct wire_account *a = &p->account[i];

		if (!((p->wanted ^ p->announced) & wire_account_levels(p, i)))
			continue;
		if (replaced)
			atomic64_set(&a->since, now);
		*since = min_t(u64, *since, atomic64_read(&a->since));
		if (!p->pfc)
			break;
	}
	return *since != U64_MAX && !full;	/* if full, the partner will kick us */
}

/* Send the control frame that was due at @by; its last bit arrives at @time. */
void wire_pause_send(struct wire_pause *p, struct net_device *dev, u64 by, u64 time)
{
	u32 before = p->announced, levels;
	struct wire_pause *partner;
	struct net_device *peer;
	int i;

	for (i = 0; i < (p->pfc ? TC_WIRE_LEVELS : 1); i++) {
		levels = wire_account_levels(p, i);
		if (atomic64_read(&p->account[i].since) <= by)
			p->announced = (p->announced & ~levels) | (p->wanted & levels);
	}
	p->sent += !!(p->announced & ~before);
	p->partner = 0;
	rcu_read_lock();
	peer = wire_peer(dev);
	partner = wire_pause_of(peer);
	if (partner) {
		struct wire_mail *mail = &partner->mail[partner->head % WIRE_MAILS];
		struct wire_mail *last = &partner->mail[(partner->head - 1) % WIRE_MAILS];

		p->partner = wire_pause_number(partner);
		/* keep the order if the delay was shortened since the last one */
		if (partner->head != READ_ONCE(partner->void_until))
			time = max(time, last->time);
		WRITE_ONCE(mail->time, time);
		WRITE_ONCE(mail->paused, p->announced);
		/* publish the mail before head */
		smp_store_release(&partner->head, partner->head + 1);
		wire_kick(peer);
	}
	rcu_read_unlock();
}

/* Stop pausing: the partner resumes at once, and our accounts are cleared. */
static void wire_pause_stop(struct wire_pause *p, struct net_device *dev)
{
	struct wire_pause *partner;
	struct net_device *peer;

	rcu_read_lock();
	peer = p->partner ? wire_peer(dev) : NULL;
	partner = wire_pause_of(peer);
	if (partner) {
		/* ordered before any mail of the wire that replaces us */
		smp_store_release(&partner->void_until, partner->head);
		wire_kick(peer);
	}
	rcu_read_unlock();
	p->wanted = 0;
	p->announced = 0;
	p->partner = 0;
	wire_pause_renew(p);
}

/* Pause exactly these levels from @time on. */
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
	if (ended)	/* frames that could start earlier already have */
		q->free = wire_not_before(q->free, time);
}

/* Obey the control frames that arrived by @time; return false if there are none. */
bool wire_pause_obey(struct wire_sched *q, struct net_device *dev, u64 time, u64 now)
{
	struct wire_pause *p = &q->pause;
	u32 head, gone, before, tail = p->tail;
	struct net_device *peer;
	bool full, obeyed = false;

	/* head first: whoever sees a mail also sees void_until written before it */
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
	/* after the mails have been read */
	smp_store_release(&p->tail, tail);
	smp_mb();	/* pairs with smp_mb() in wire_pause_full() */
	full = READ_ONCE(p->head) - before == WIRE_MAILS;
	rcu_read_lock();
	peer = full ? wire_peer(dev) : NULL;
	if (peer)
		wire_kick(peer);
	rcu_read_unlock();
	return true;
}

/* Return to the initial state: accounts empty, no level paused here or by us. */
void wire_pause_reset(struct wire_sched *q, struct net_device *dev, u64 now)
{
	/* head first, as in wire_pause_obey() */
	WRITE_ONCE(q->pause.tail, smp_load_acquire(&q->pause.head));
	q->pause.voided = READ_ONCE(q->pause.void_until);
	wire_pause_set(q, 0, now);
	wire_pause_stop(&q->pause, dev);
}

/* Apply new thresholds or levels, and re-check the accounts. */
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

/* A wire gets thresholds. May sleep, like wire_pauses_end(). */
void wire_pauses_begin(void)
{
	static_branch_inc(&wire_pauses);
}

/*
 * The wire of dev loses its thresholds, after it has voided its mails. The partner must
 * resume before the static key stops the reading of mailboxes. Called without qdisc lock.
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

/* Return the arrival of the next known control frame, or U64_MAX. */
u64 wire_pause_next(const struct wire_pause *p)
{
	/* read head before the mail */
	if (smp_load_acquire(&p->head) == p->tail)
		return U64_MAX;
	return READ_ONCE(p->mail[p->tail % WIRE_MAILS].time);
}
