/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include "common.h"

int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

void waiter_open(struct waiter *waiter)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	waiter->signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	waiter->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	waiter->armed_ns = NEVER;
	if (waiter->signals < 0 || waiter->timer < 0)
		fail("cannot open descriptors for signals and a timer (%s), raise the limit of open files",
		    strerror(errno));
}

void waiter_arm(struct waiter *waiter, int64_t at_ns)
{
	const int64_t from = at_ns > 1 ? at_ns : 1; /* 0 would disarm it */
	struct itimerspec at = { 0 };

	if (at_ns == waiter->armed_ns)
		return;
	waiter->armed_ns = at_ns;
	if (at_ns != NEVER) {
		at.it_value.tv_sec = from / NS_PER_S;
		at.it_value.tv_nsec = from % NS_PER_S;
	}
	timerfd_settime(waiter->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

enum wake wait_for(struct waiter *waiter, int fd, short events, int64_t until_ns)
{
	struct pollfd fds[] = {
		{ .fd = waiter->signals, .events = POLLIN },
		{ .fd = fd, .events = events },
		{ .fd = until_ns == NEVER ? -1 : waiter->timer, .events = POLLIN },
	};

	if (until_ns != NEVER)
		waiter_arm(waiter, until_ns);
	while (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0)
		if (errno != EINTR)
			fail("cannot wait (%s)", strerror(errno));
	if (fds[0].revents)
		return WAKE_SIGNAL;
	return fds[1].revents ? WAKE_READY : WAKE_TIME;
}
