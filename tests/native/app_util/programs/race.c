/*
 * race COUNT: threads, a signal handler and children set IP_TOS of one socket; main sets its own SO_PRIORITY, COUNT
 * times. Prints how often that was another one afterwards, and how many children failed.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, CHILD_EVERY = 200 };
static int fd;
static atomic_bool ended;

static void set_tos(int tos)
{
	setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
}

static void *move(void *unused)
{
	while (!ended) {
		set_tos(8);
		set_tos(0);
	}
	return unused;
}

static void interrupt(int number)
{
	set_tos(number);
}

/* A child that neither fork handlers nor the C library know of, with whatever lock a thread had just then. */
static bool child_fails(void)
{
	int status = 1, priority = 1;
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (child == 0) {
		fd = socket(AF_INET, SOCK_DGRAM, 0);
		set_tos(8);
		_exit(setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)));
	}
	while (waitpid(child, &status, 0) < 0)
		;
	return status != 0;
}

int main(int argc, char **argv)
{
	const struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { 0 };
	int count = argc > 1 ? atoi(argv[1]) : 0, undone = 0, failed = 0;
	pthread_t threads[THREADS];

	fd = socket(AF_INET, SOCK_DGRAM, 0);
	signal(SIGALRM, interrupt);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, move, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < count; i++) {
		int wanted = 3 + i % 3, found = -1;
		socklen_t length = sizeof(found);

		setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &wanted, sizeof(wanted));
		getsockopt(fd, SOL_SOCKET, SO_PRIORITY, &found, &length);
		undone += found != wanted;
		failed += i % CHILD_EVERY == 0 && child_fails();
	}
	setitimer(ITIMER_REAL, &never, NULL);
	ended = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%d %d\n", undone, failed);
	return 0;
}
