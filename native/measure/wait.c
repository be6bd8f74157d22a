/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "measure.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>

#define TRIES 32

static int64_t read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

/*
 * The kernel keeps the difference as a whole number of nanoseconds, which changes only when somebody sets the clock:
 * slewing turns both clocks alike. It tells it to nobody but root, so take it from three readings, the middle one of the
 * other clock; the narrowest of some tries, as an interrupt may fall into one.
 */
int64_t realtime_ahead_ns(int64_t *error)
{
	int64_t ahead = 0;

	*error = LONGEST_NS;
	for (int i = 0; i < TRIES; i++) {
		int64_t before = read_ns(CLOCK_MONOTONIC), real = read_ns(CLOCK_REALTIME), after = read_ns(CLOCK_MONOTONIC);

		if (after - before >= 2 * *error)
			continue;
		*error = (after - before + 1) / 2;
		ahead = real - before - (after - before) / 2;
	}
	return ahead;
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
		fail("no descriptors for signals and a timer (%s); raise the limit of open files", strerror(errno));
}

/*
 * A timerfd, since it alone is exact: the kernel lets poll(2) and epoll_wait(2) oversleep by a thousandth of their timeout
 * (25 us in 25 ms), and clock_nanosleep(2) by the timer slack of 50 us. Setting it also takes back an expiry not read.
 */
void waiter_arm(struct waiter *waiter, int64_t at_ns)
{
	const int64_t from = at_ns > 1 ? at_ns : 1; /* 0 would disarm it */
	const struct itimerspec at = { .it_value = { .tv_sec = from / NS_PER_S, .tv_nsec = from % NS_PER_S } };

	if (at_ns == waiter->armed_ns)
		return;
	timerfd_settime(waiter->timer, TFD_TIMER_ABSTIME, &at, NULL);
	waiter->armed_ns = at_ns;
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
			fail("cannot wait: %s", strerror(errno));
	if (fds[0].revents)
		return WAKE_SIGNAL;
	return fds[1].revents ? WAKE_READY : WAKE_TIME;
}
