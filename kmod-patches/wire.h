/* SPDX-License-Identifier: GPL-2.0 */
/* Declarations shared by the files of sch_wire. */
#ifndef WIRE_H
#define WIRE_H

#include <linux/atomic.h>
#include <linux/jump_label.h>
#include <linux/prandom.h>
#include <linux/rbtree.h>
#include <linux/skbuff.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#include "pkt_sched_wire.h"

#define WIRE_ALL_LEVELS	(BIT(TC_WIRE_LEVELS) - 1)

#define WIRE_FLOWS	256	/* hash buckets; flows in one keep their mutual order */

#define WIRE_MAILS		16	/* most control frames in flight; a power of two */
#define WIRE_NUMBER_SHIFT	40
#define WIRE_ACCOUNT_BYTES	(BIT_ULL(WIRE_NUMBER_SHIFT) - 1)

struct wire_params {
	u64	rate;		/* bit/s */
	u64	delay;		/* ns */
	u32	limit;		/* bytes that may wait per level */
	u32	classify;	/* enum tc_wire_classify */
	u32	overhead;	/* bytes per frame */
	u32	orphan;		/* 0 or 1 */
	u32	xoff;		/* bytes; 0: no pauses */
	u32	xon;		/* bytes */
	u32	pfc;		/* bit p: pause level p alone; 0: pause the link */
	u32	quantiles;	/* used in jitter; 0: no jitter */
	struct tc_wire_quantile jitter[TC_WIRE_QUANTILES];
	u64	seed;		/* of the jitter's random numbers */
};

struct wire_time {
	u64	ns;
	u64	rest;		/* in units of 1/rate ns; less than rate */
};

struct wire_cb {
	u64	time;		/* ns: arrival while waiting, handover while in flight */
	u32	level : 8;
	u32	len : 24;	/* bytes: L of wire_link.c */
	u32	charged : 24;	/* number of the wire whose account has it; 0: none */
	u32	account : 8;	/* index of that account */
};

/*
 * The frames that have started and are not yet handed over, ordered by handover
 * time. A constant delay keeps them in the order of their starts, in a list. Jitter
 * lets frames overtake the last of the list; those are in a tree.
 */
struct wire_flight {
	struct qdisc_skb_head line;
	struct rb_root	ahead;	/* frames due before the last of line */
};

struct wire_jitter {
	struct rnd_state rnd;
	u64	last[WIRE_FLOWS];	/* ns: last handover in each bucket */
};

struct wire_account {
	atomic64_t	bytes;	/* received here and waiting; high bits: number */
	atomic64_t	since;	/* ns: when it last crossed a threshold */
	u64		max;	/* bytes */
};

struct wire_mail {
	u64	time;		/* ns: arrival of the control frame */
	u32	paused;		/* bit p: level p must pause */
};

struct wire_held {
	u64		since;	/* ns: start of the current pause */
	u64		ns;	/* total of earlier pauses */
};

struct wire_pause {
	/* sending; the first three copy parameters, for readers without our lock */
	u32		xoff;		/* bytes; 0: send no pauses */
	u32		xon;		/* bytes, less than xoff */
	u32		pfc;		/* bit p: level p has its own account; 0: one for all */
	struct wire_account account[TC_WIRE_LEVELS];
	u32		wanted;		/* bit p: the partner should pause level p */
	u32		announced;	/* wanted, as last sent to the partner */
	u32		partner;	/* number of the wire it was sent to; 0: none */
	u64		sent;		/* pauses sent */
	/* mailbox; the partner writes the first three */
	struct wire_mail mail[WIRE_MAILS];
	u32		head;		/* mails written */
	u32		void_until;	/* ignore earlier mails: their sender is gone */
	u32		tail;		/* mails read */
	u32		voided;		/* last value of void_until that was seen */
	/* obeying */
	bool		retry;		/* no frame was started, but try another */
	u64		received;	/* pauses received */
	struct wire_held held;		/* while any level was paused */
	struct wire_held held_level[TC_WIRE_LEVELS];
};

struct wire_level {
	struct qdisc_skb_head queue;
	u32	backlog;	/* bytes (L) waiting */
	u32	max_backlog;	/* bytes */
	u32	peak;		/* bytes: max_backlog of this window, while it is traced */
	u64	packets;	/* put on the wire */
	u64	bytes;		/* put on the wire, preamble and gap included */
	u64	drops;		/* packets */
	u64	max_wait;	/* ns from arrival to start */
	u64	max_late;	/* ns from the due handover of a frame to the actual one */
};

struct wire_queues {
	unsigned long	backlogged;	/* bit p: level p has frames waiting */
	unsigned long	paused;		/* bit p: level p may not start a frame */
	u64		window;		/* number of the window that peaks are of */
	bool		waited;		/* a frame waited in this window */
	struct wire_level level[TC_WIRE_LEVELS];
};

struct wire_sched {
	struct wire_queues queues;
	struct wire_params params;
	struct wire_time free;		/* when the next frame may start */
	struct wire_flight flight;
	struct Qdisc	*child;		/* &noop_qdisc: none */
	u64		child_since;	/* ns: child became non-empty */
	bool		child_blocked;	/* the child's last dequeue gave nothing */
	struct qdisc_watchdog watchdog;
	struct wire_pause pause;
	struct wire_jitter jitter;
};

DECLARE_STATIC_KEY_FALSE(wire_pauses);	/* at least one wire has thresholds */

extern struct Qdisc_ops wire_ops;

static inline struct wire_cb *wire_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct wire_cb));
	return (struct wire_cb *)qdisc_skb_cb(skb)->data;
}

static inline u64 wire_ceil(struct wire_time t)
{
	return t.ns + !!t.rest;
}

/* Return t, but no earlier than ns. */
static inline struct wire_time wire_not_before(struct wire_time t, u64 ns)
{
	return ns <= wire_ceil(t) ? t : (struct wire_time) { .ns = ns };
}

static inline u64 wire_account_bytes(const struct wire_account *a)
{
	return atomic64_read(&a->bytes) & WIRE_ACCOUNT_BYTES;
}

/* wire_link.c */
int wire_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
struct sk_buff *wire_dequeue(struct Qdisc *sch);
void wire_settle(struct Qdisc *sch, u64 now);
void wire_trace_window(struct wire_queues *w, const struct net_device *dev, u64 time);
void wire_queues_purge(struct wire_queues *w, struct Qdisc *sch, u64 now);

/* wire_jitter.c */
void wire_jitter_add(struct wire_jitter *j, const struct wire_params *p, struct sk_buff *skb);
void wire_flight_insert(struct wire_flight *f, struct sk_buff *skb);
void wire_flight_remove(struct wire_flight *f, struct sk_buff *skb);
void wire_flight_purge(struct wire_flight *f);

/* wire_pause.c */
void wire_pause_renew(struct wire_pause *p);
void wire_pause_reset(struct wire_sched *q, struct net_device *dev, u64 now);
void wire_pause_change(struct wire_pause *p, struct net_device *dev,
		       const struct wire_params *params);
void wire_pause_charge(struct Qdisc *egress, const struct sk_buff *skb);
void wire_pause_release(struct Qdisc *egress, const struct sk_buff *skb, u64 time);
bool wire_pause_due(struct wire_pause *p, struct net_device *dev, u64 now, u64 *since);
void wire_pause_send(struct wire_pause *p, struct net_device *dev, u64 by, u64 time);
bool wire_pause_obey(struct wire_sched *q, struct net_device *dev, u64 time, u64 now);
u64 wire_pause_next(const struct wire_pause *p);
void wire_pauses_begin(void);
void wire_pauses_end(struct net_device *dev);

/* wire_options.c */
int wire_params_parse(struct wire_params *p, struct nlattr *opt,
		      struct netlink_ext_ack *extack);
int wire_params_dump(const struct wire_params *p, struct sk_buff *skb);
void wire_params_store(struct wire_params *to, const struct wire_params *from);

#endif
