/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events, a tap on every wire: wire_frame fires for each frame that starts,
 * wire_drop for each that finds its queue full. Both have the first bytes of the
 * frame; a tag that is not among them (vlan) is -1 if there is none.
 *
 * wire_queue fires once a window of window_ns is over in which frames waited, when
 * the queues change next or are read: for each level the most bytes that waited in
 * it, the bytes that waited from its end until now, and all drops so far. Windows in
 * between without an event are those in which the latter waited.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM wire

#if !defined(WIRE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define WIRE_TRACE_H

#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/tracepoint.h>

#define WIRE_TRACE_HEAD	96U	/* bytes */

DECLARE_EVENT_CLASS(wire_event,
		    TP_PROTO(const struct net_device *dev, const struct sk_buff *skb, u32 level,
			     u32 len, u64 arrival, u64 start, u64 handover),
		    TP_ARGS(dev, skb, level, len, arrival, start, handover),
		    TP_STRUCT__entry(__array(char, dev, IFNAMSIZ)
				     __field(u32, level)
				     __field(u32, len)
				     __field(u64, arrival)
				     __field(u64, start)
				     __field(u64, handover)
				     __field(int, vlan)
				     __dynamic_array(u8, head, min(skb->len, WIRE_TRACE_HEAD))
		    ),
		    TP_fast_assign(memcpy(__entry->dev, dev->name, IFNAMSIZ);
				   __entry->level = level;
				   __entry->len = len;
				   __entry->arrival = arrival;
				   __entry->start = start;
				   __entry->handover = handover;
				   __entry->vlan = skb_vlan_tag_present(skb) ?
						   skb_vlan_tag_get(skb) : -1;
				   skb_copy_bits(skb, 0, __get_dynamic_array(head),
						 __get_dynamic_array_len(head));
		    ),
		    TP_printk("dev=%s level=%u len=%u arrival=%llu start=%llu handover=%llu vlan=%d head=%s",
			      __entry->dev, __entry->level, __entry->len, __entry->arrival,
			      __entry->start, __entry->handover, __entry->vlan,
			      __print_hex_str(__get_dynamic_array(head),
					      __get_dynamic_array_len(head)))
);

DEFINE_EVENT(wire_event, wire_frame,
	     TP_PROTO(const struct net_device *dev, const struct sk_buff *skb, u32 level, u32 len,
		      u64 arrival, u64 start, u64 handover),
	     TP_ARGS(dev, skb, level, len, arrival, start, handover)
);

DEFINE_EVENT(wire_event, wire_drop,
	     TP_PROTO(const struct net_device *dev, const struct sk_buff *skb, u32 level, u32 len,
		      u64 arrival, u64 start, u64 handover),
	     TP_ARGS(dev, skb, level, len, arrival, start, handover)
);

TRACE_EVENT(wire_queue,
	    TP_PROTO(const struct net_device *dev, const struct wire_queues *queues),
	    TP_ARGS(dev, queues),
	    TP_STRUCT__entry(__array(char, dev, IFNAMSIZ)
			     __field(u64, window)
			     __array(u32, peak, TC_WIRE_LEVELS)
			     __array(u32, then, TC_WIRE_LEVELS)
			     __array(u64, drops, TC_WIRE_LEVELS)
	    ),
	    TP_fast_assign(int p;

			   memcpy(__entry->dev, dev->name, IFNAMSIZ);
			   __entry->window = queues->window;
			for (p = 0; p < TC_WIRE_LEVELS; p++) {
				__entry->peak[p] = queues->level[p].peak;
				__entry->then[p] = queues->level[p].backlog;
				__entry->drops[p] = queues->level[p].drops;
			}
	    ),
	    TP_printk("dev=%s window=%llu peak=%s then=%s drops=%s", __entry->dev, __entry->window,
		      __print_array(__entry->peak, TC_WIRE_LEVELS, sizeof(u32)),
		      __print_array(__entry->then, TC_WIRE_LEVELS, sizeof(u32)),
		      __print_array(__entry->drops, TC_WIRE_LEVELS, sizeof(u64)))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE wire_trace
#include <trace/define_trace.h>
