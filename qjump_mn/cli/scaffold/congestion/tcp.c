// SPDX-License-Identifier: GPL-2.0-only
/* TCP congestion control @NAME@: additive increase, multiplicative decrease.
 *
 * Written for Linux 7.3. Documentation/networking/tcp.rst and struct
 * tcp_congestion_ops in include/net/tcp.h tell what else it may do.
 */

#include <linux/module.h>
#include <net/tcp.h>

static unsigned int increase = 2;
module_param(increase, uint, 0444);
MODULE_PARM_DESC(increase, "segments by which the window grows each round trip");

static unsigned int kept = 70;
module_param(kept, uint, 0444);
MODULE_PARM_DESC(kept, "per cent of the window that is left after a loss");

/* Return the window, in segments, after a loss. */
static u32 aimd_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) * kept / 100, 2U);
}

/* Let the window grow, because so many more segments were acknowledged. */
static void aimd_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	/* By one for each of so many acknowledged segments. */
	tcp_cong_avoid_ai(tp, max(tcp_snd_cwnd(tp) / increase, 1U), acked);
}

static struct tcp_congestion_ops aimd __read_mostly = {
	.ssthresh	= aimd_ssthresh,
	.cong_avoid	= aimd_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "@NAME@",
};

static int __init aimd_register(void)
{
	if (!increase || !kept || kept > 99) {
		pr_err("@NAME@: increase must be 1 or more, kept 1 to 99\n");
		return -EINVAL;
	}
	return tcp_register_congestion_control(&aimd);
}

static void __exit aimd_unregister(void)
{
	tcp_unregister_congestion_control(&aimd);
}

module_init(aimd_register);
module_exit(aimd_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TCP @NAME@");
