/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The trace event wire:wire_frame, a tap on every wire: fires for each frame that
 * starts.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM wire

#if !defined(WIRE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define WIRE_TRACE_H

#include <linux/netdevice.h>
#include <linux/tracepoint.h>

TRACE_EVENT(wire_frame,
	    TP_PROTO(const struct net_device *dev, u32 level, u32 len, u64 arrival, u64 start,
		     u64 handover),
	    TP_ARGS(dev, level, len, arrival, start, handover),
	    TP_STRUCT__entry(__array(char, dev, IFNAMSIZ)
			     __field(u32, level)
			     __field(u32, len)
			     __field(u64, arrival)
			     __field(u64, start)
			     __field(u64, handover)
	    ),
	    TP_fast_assign(memcpy(__entry->dev, dev->name, IFNAMSIZ);
			   __entry->level = level;
			   __entry->len = len;
			   __entry->arrival = arrival;
			   __entry->start = start;
			   __entry->handover = handover;
	    ),
	    TP_printk("dev=%s level=%u len=%u arrival=%llu start=%llu handover=%llu",
		      __entry->dev, __entry->level, __entry->len, __entry->arrival, __entry->start,
		      __entry->handover)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE wire_trace
#include <trace/define_trace.h>
