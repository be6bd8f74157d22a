/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of a wire, and when it is free again.
 */
#ifndef WIRE_SCHED_H
#define WIRE_SCHED_H

#include "wire_flight.h"
#include "wire_frame.h"
#include "wire_jitter.h"
#include "wire_params.h"
#include "wire_pause.h"
#include "wire_queue.h"

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

/* From start on, so many bytes and the gap; when the last of them is at the other end. */
static __always_inline u64 wire_occupy(struct wire_sched *q, struct wire_time start, u32 bytes)
{
	u64 time = wire_ceil(wire_after(start, bytes, q->params.rate)) + q->params.delay;

	q->free = wire_after(start, bytes + WIRE_GAP, q->params.rate);
	/* a shorter delay must not overtake */
	if (q->flight.line.tail && !q->params.quantiles)
		time = max(time, wire_cb(q->flight.line.tail)->time);
	return time;
}

#endif
