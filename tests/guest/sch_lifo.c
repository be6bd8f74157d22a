// SPDX-License-Identifier: GPL-2.0-only
/* A qdisc that serves what came last, of at most so many packets. */

#include <linux/module.h>
#include <net/pkt_sched.h>

static unsigned int limit = 100;
module_param(limit, uint, 0444);

static int lifo_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free)
{
	if (sch->q.qlen >= limit)
		return qdisc_drop(skb, sch, to_free);
	__qdisc_enqueue_head(skb, &sch->q);
	qdisc_qstats_backlog_inc(sch, skb);
	return NET_XMIT_SUCCESS;
}

static struct Qdisc_ops lifo __read_mostly = {
	.id		= "lifo",
	.enqueue	= lifo_enqueue,
	.dequeue	= qdisc_dequeue_head,
	.peek		= qdisc_peek_head,
	.reset		= qdisc_reset_queue,
	.owner		= THIS_MODULE,
};

static int __init lifo_register(void)
{
	return register_qdisc(&lifo);
}

static void __exit lifo_unregister(void)
{
	unregister_qdisc(&lifo);
}

module_init(lifo_register);
module_exit(lifo_unregister);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("last in, first out");
