/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Send times that ptpd 2.3.1 can cope with in a loaded network.
 *
 * Where the device offers it, ptpd has the kernel tell when a message has left
 * (SO_TIMESTAMPING, by the socket's error queue), and waits for that, for 10 ms
 * at most. A message that waits longer in the host's own queue leaves when
 * nobody reads the error queue any more: from then on select(2) finds the
 * socket readable for ever and recvmsg(2) nothing to read. On Linux 6.12, with
 * a link of 10 Mb/s full for 2 s of frames of the same level, ptpd used 0.1 ms
 * of processor time a second before and 999.7 ms from then on; at a level above
 * theirs, where it waits for one frame at most, it idled on. It also changes in
 * the middle of the run to its other source of send times, a copy of each
 * message to itself that is stamped where IP sends it; a message that took 80 us
 * then seems to take 184.
 *
 * Here the device does not offer it, so that ptpd uses those copies from the
 * beginning, in every arm and behind every link model, as its first versions
 * always did.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

int ioctl(int fd, unsigned long request, ...);

static void refuse_send_times(const struct ifreq *wanted)
{
	struct ethtool_ts_info *info = (void *)wanted->ifr_data;

	if (info && info->cmd == ETHTOOL_GET_TS_INFO)
		info->so_timestamping &= ~SOF_TIMESTAMPING_TX_SOFTWARE;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	int (*next)(int, unsigned long, void *) = dlsym(RTLD_NEXT, "ioctl");
	va_list arguments;
	void *argument;
	int result;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	result = next(fd, request, argument);
	if (!result && request == SIOCETHTOOL)
		refuse_send_times(argument);
	return result;
}
