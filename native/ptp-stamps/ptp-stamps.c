/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A preload library that gives ptpd 2.3.1 a source of send times which works in a
 * loaded network.
 *
 * If the device offers transmit time stamps (SO_TIMESTAMPING), ptpd reads them from
 * the socket's error queue, and waits for one for at most 10 ms. If a message waits
 * longer in the host's own queue, its stamp comes when ptpd no longer reads the error
 * queue. From then on select(2) always finds the socket readable, and recvmsg(2) finds
 * nothing to read. On Linux 6.12, with a link of 10 Mb/s filled for 2 s by frames of
 * the same level, ptpd used 0.1 ms of processor time per second before and 999.7 ms
 * afterwards; at a higher level, where it waits for at most one frame, it stayed idle.
 * In the middle of the run it also changes to its other source of send times: a copy
 * of each message to itself, stamped where IP sends it. A message that took 80 us then
 * seems to take 184 us.
 *
 * This library hides the device's transmit time stamps, so that ptpd uses the copies
 * from the start, in every arm and with every link model, as its first versions did.
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
