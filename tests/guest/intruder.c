// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs in place of a guest's kernel and tries everything that the sandbox must refuse. It writes a
 * line to descriptor 5 for each attempt that was not refused, and the number of attempts. The last
 * arguments are the port of a server on this machine, the name of an abstract socket, and a file
 * that must not be readable.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { OUT = 5, LAST = 6 };

static int tried;

static void try(const char *what, long result)
{
	tried++;
	if (result >= 0)
		dprintf(OUT, "%s\n", what);
}

static long connected(int family, struct sockaddr *address, socklen_t length)
{
	int fd = socket(family, SOCK_STREAM, 0);

	return fd < 0 ? fd : connect(fd, address, length);
}

static long kept_descriptors(void)
{
	long kept = -1;

	for (int fd = LAST + 1; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			kept = fd;
	return kept;
}

int main(int argc, char **argv)
{
	struct sockaddr_in server = { .sin_family = AF_INET };
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	char *shell[] = { "/bin/sh", "-c", "echo a shell >&5", NULL };

	if (argc < 4)
		return 2;
	argv += argc - 4;
	server.sin_port = htons(atoi(argv[1]));
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	strncpy(name.sun_path + 1, argv[2], sizeof(name.sun_path) - 2);

	try("reads a secret", open(argv[3], O_RDONLY));
	try("reads /etc/passwd", open("/etc/passwd", O_RDONLY));
	try("lists /", open("/", O_RDONLY | O_DIRECTORY));
	try("reads its own environment", open("/proc/self/environ", O_RDONLY));
	try("reads its parent's memory", open("/proc/self/../1/mem", O_RDONLY));
	try("writes into /tmp", open("/tmp/intruder", O_WRONLY | O_CREAT, 0600));
	try("writes a file without a name", open("/tmp", O_WRONLY | O_TMPFILE, 0600));
	try("writes into /dev/shm", open("/dev/shm/intruder", O_WRONLY | O_CREAT, 0600));
	try("makes a folder", mkdir("/tmp/intruder.d", 0700));
	try("makes a link", symlink("/etc/passwd", "/tmp/intruder.l"));
	try("signals its parent", kill(getppid(), 0));
	try("signals init", kill(1, 0));
	try("becomes root", setuid(0));
	try("looks into its parent", ptrace(PTRACE_SEIZE, getppid(), 0, 0));
	try("reads memory of its parent", syscall(SYS_process_vm_readv, getppid(), 0, 0, 0, 0, 0));
	try("reaches a server", connected(AF_INET, (void *)&server, sizeof(server)));
	try("sends datagrams", socket(AF_INET, SOCK_DGRAM, 0));
	try("sends packets", socket(AF_PACKET, SOCK_RAW, 0));
	try("asks the kernel of networks", socket(AF_NETLINK, SOCK_RAW, 0));
	try("reaches a socket by its name", connected(AF_UNIX, (void *)&name,
						      sizeof(sa_family_t) + 1 + strlen(argv[2])));
	try("makes a user namespace", unshare(CLONE_NEWUSER));
	try("mounts", mount("none", "/tmp", "tmpfs", 0, NULL));
	try("changes its root", chroot("/tmp"));
	try("loads a program into the kernel", syscall(SYS_bpf, 0, NULL, 0));
	try("counts events", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
	try("makes a ring", syscall(SYS_io_uring_setup, 1, NULL));
	try("holds a key", syscall(SYS_keyctl, 0, 0, 0, 0, 0));
	errno = 0;
	try("raises its limits", nice(-5) == -1 && errno ? -1 : 0);
	try("holds other descriptors", kept_descriptors());
	try("starts a shell", execv(shell[0], shell));
	dprintf(OUT, "tried %d\n", tried);
	return 0;
}
