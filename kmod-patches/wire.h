/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of sch_wire share. */
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

#define WIRE_FLOWS	256	/* flows of one hash keep their order among each other */

#define WIRE_MAILS		16	/* control frames under way at most; a power of two */
#define WIRE_NUMBER_SHIFT	40
#define WIRE_ACCOUNT_BYTES	(BIT_ULL(WIRE_NUMBER_SHIFT) - 1)

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

DECLARE_STATIC_KEY_FALSE(wire_pauses);	/* some wire has thresholds */

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

/* t, but not before ns */
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
void wire_queues_purge(struct wire_queues *w, struct Qdisc *sch, u64 now);

/* wire_jitter.c */
void wire_jitter_add(struct wire_jitter *j, const struct wire_params *p, struct sk_buff *skb);
void wire_flight_insert(struct wire_flight *f, struct sk_buff *skb);
void wire_flight_cut(struct wire_flight *f, struct sk_buff *skb);
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
