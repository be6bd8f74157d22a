/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

const char *address_text(const struct sockaddr_in *address)
{
	static char buffers[4][INET_ADDRSTRLEN + sizeof(":65535")];
	static unsigned int turn;
	char host[INET_ADDRSTRLEN];
	char *buffer = buffers[turn++ % 4];

	inet_ntop(AF_INET, &address->sin_addr, host, sizeof(host));
	snprintf(buffer, sizeof(buffers[0]), "%s:%u", host, ntohs(address->sin_port));
	return buffer;
}

int connect_to(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, error;

	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EINPROGRESS)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

int accept_from(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;

	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

int socket_error(int fd)
{
	int error = 0;
	socklen_t size = sizeof(error);

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	return error;
}

uint32_t socket_overflowed(int fd)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof(memory);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &size) != 0)
		fail("the kernel does not report dropped packets (%s); Linux 4.12 or later is needed",
		    strerror(errno));
	return memory[SK_MEMINFO_DROPS];
}
