/*
 * ring ADDRESS PORT all: as client.c, but its socket is made, connected and written to by io_uring alone.
 * ring ADDRESS PORT send: the C library makes the socket.
 * ring ADDRESS PORT tos: it does, and io_uring sets IP_TOS, 0x08, before it writes.
 */
#include <arpa/inet.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SETSOCKOPT = 3 }; /* SOCKET_URING_OP_SETSOCKOPT */
static int tos = 0x08;
static int ring;
static char *queues;
static struct io_uring_sqe *entries;
static struct io_uring_params params;

/* The result of one operation, which is waited for. */
static int perform(struct io_uring_sqe operation)
{
	unsigned int *tail = (unsigned int *)(queues + params.sq_off.tail);
	unsigned int mask = *(unsigned int *)(queues + params.sq_off.ring_mask);
	unsigned int *head = (unsigned int *)(queues + params.cq_off.head);
	struct io_uring_cqe *done = (struct io_uring_cqe *)(queues + params.cq_off.cqes);
	int result;

	entries[*tail & mask] = operation;
	((unsigned int *)(queues + params.sq_off.array))[*tail & mask] = *tail & mask;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		exit(3);
	result = done[*head & *(unsigned int *)(queues + params.cq_off.ring_mask)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	char answer[64];
	size_t size;
	int fd;

	if (argc < 4 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
		return 2;
	to.sin_port = htons((unsigned short)atoi(argv[2]));
	ring = (int)syscall(SYS_io_uring_setup, 4, &params);
	if (ring < 0 || !(params.features & IORING_FEAT_SINGLE_MMAP))
		return 77;
	size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	queues = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
	entries = mmap(NULL, params.sq_entries * sizeof(*entries), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
		       IORING_OFF_SQES);
	fd = strcmp(argv[3], "all") != 0 ?
		     socket(AF_INET, SOCK_STREAM, 0) :
		     perform((struct io_uring_sqe){ .opcode = IORING_OP_SOCKET, .fd = AF_INET, .off = SOCK_STREAM });
	if (fd < 0 ||
	    perform((struct io_uring_sqe){ .opcode = IORING_OP_CONNECT, .fd = fd, .addr = (uintptr_t)&to, .off = sizeof(to) }))
		return 1;
	/* io_uring_prep_cmd_sock(), from Linux 6.7 on; older headers have neither the command nor its fields. */
	if (strcmp(argv[3], "tos") == 0 &&
	    perform((struct io_uring_sqe){ .opcode = IORING_OP_URING_CMD, .fd = fd, .off = SETSOCKOPT, .addr = IPPROTO_IP | (uint64_t)IP_TOS << 32,
					   .file_index = sizeof(tos), .addr3 = (uintptr_t)&tos }))
		return 77;
	if (perform((struct io_uring_sqe){ .opcode = IORING_OP_SEND, .fd = fd, .addr = (uintptr_t) "hello", .len = 5 }) != 5)
		return 1;
	shutdown(fd, SHUT_WR);
	while (perform((struct io_uring_sqe){
		       .opcode = IORING_OP_RECV, .fd = fd, .addr = (uintptr_t)answer, .len = sizeof(answer) }) > 0)
		;
	return 0;
}
