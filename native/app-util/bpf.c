#define _GNU_SOURCE
#include "bpf.h"

#include <stdio.h>
#include <sys/socket.h>

#include "../common/bpf.h"

/* --- instructions, as in the kernel's include/linux/filter.h --- */

#define MOVE(to, from)                                                                          \
	{                                                                                       \
		.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from)         \
	}
#define SET(to, value)                                                                          \
	{                                                                                       \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value)            \
	}
#define ADD(to, value)                                                                          \
	{                                                                                       \
		.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (to), .imm = (value)            \
	}
#define LOAD_WORD(to, base, at)                                                                 \
	{                                                                                       \
		.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = (to), .src_reg = (base), .off = (at) \
	}
#define STORE_WORD(base, at, from)                                                              \
	{                                                                                       \
		.code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = (base), .src_reg = (from), .off = (at) \
	}
#define SKIP_UNLESS(reg, value, count)                                                          \
	{                                                                                       \
		.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = (reg), .imm = (value), .off = (count) \
	}
#define CALL(function)                                                                          \
	{                                                                                       \
		.code = BPF_JMP | BPF_CALL, .imm = (function)                                   \
	}
#define RETURN                                                                                  \
	{                                                                                       \
		.code = BPF_JMP | BPF_EXIT                                                      \
	}

#define R0 BPF_REG_0
#define R1 BPF_REG_1 /* on entry: the context */
#define R2 BPF_REG_2
#define R3 BPF_REG_3
#define R4 BPF_REG_4
#define R5 BPF_REG_5
#define R6 BPF_REG_6 /* preserved across calls */
#define FRAME BPF_REG_10

enum { ALLOWED = 1 };
enum { DEFAULT_REPLY = -1 };
enum { LOG_SHOWN = 400 }; /* bytes of the verifier's log in a message */

static const char *explain(const char *what)
{
	static char text[256];

	switch (errno) {
	case EPERM:
	case EACCES:
		return "--cgroup needs CAP_BPF and CAP_NET_ADMIN; run qjau as root";
	case ENOSYS:
		return "this kernel has no bpf(2) (CONFIG_BPF_SYSCALL), which --cgroup needs";
	case EINVAL:
		return "this kernel runs no BPF programs at a cgroup (CONFIG_CGROUP_BPF), which --cgroup needs";
	}
	snprintf(text, sizeof(text), "cannot %s the program that sets priorities: %s", what,
	    strerror(errno));
	return text;
}

/* Format the end of the verifier's log in a line. */
static const char *explain_refusal(const char *log)
{
	static char text[512];
	size_t length = strlen(log);

	snprintf(text, sizeof(text), "this kernel does not accept the program that sets priorities: %s",
		 log + (length > LOG_SHOWN ? length - LOG_SHOWN : 0));
	for (char *end = text; (end = strchr(end, '\n'));)
		*end = ' ';
	return text;
}

static const char *attach(int cgroup, enum bpf_prog_type type, enum bpf_attach_type place,
    const struct bpf_insn *program,
			  size_t count)
{
	union bpf_attr target = { 0 };
	const char *why = NULL, *log;
	const int fd = bpf_load(type, place, "qjau", program, count, &log);

	if (fd < 0)
		return *log ? explain_refusal(log) : explain("load");
	target.target_fd = (uint32_t)cgroup;
	target.attach_bpf_fd = (uint32_t)fd;
	target.attach_type = place;
	target.attach_flags = BPF_F_ALLOW_MULTI; /* coexist with systemd's and containers' */
	if (bpf(BPF_PROG_ATTACH, &target) != 0)
		why = errno == EPERM ? "--cgroup needs CAP_NET_ADMIN, and no cgroup above with a program that allows no other; "
				       "run qjau as root" :
				       explain("attach");
	close(fd);
	return why;
}

/*
 * Set the priority of each outgoing IP packet of a socket, however the socket was created. This
 * runs after IP_TOS, control messages and netfilter, and before the egress map of a VLAN device and
 * all queueing disciplines.
 */
static const char *attach_to_packets(int cgroup, int priority)
{
	const struct bpf_insn program[] = {
		SET(R2, priority),
		STORE_WORD(R1, offsetof(struct __sk_buff, priority), R2),
		SET(R0, ALLOWED),
		RETURN,
	};

	return attach(cgroup, BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS, program,
	    sizeof(program) / sizeof(*program));
}

/*
 * Set the priority of the socket itself when it is created. Packets that the kernel sends for it by
 * a socket of its own inherit this priority: resets, acknowledgements in TIME_WAIT, SYN cookies,
 * and before Linux 6.6 every SYN-ACK.
 */
static const char *attach_to_making(int cgroup, int priority)
{
	const struct bpf_insn program[] = {
		SET(R2, priority),
		STORE_WORD(R1, offsetof(struct bpf_sock, priority), R2),
		SET(R0, ALLOWED),
		RETURN,
	};

	return attach(cgroup, BPF_PROG_TYPE_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_CREATE, program,
		      sizeof(program) / sizeof(*program));
}

/* Likewise for an accepted connection: the kernel starts it at 0, whatever its listener has. */
static const char *attach_to_accepting(int cgroup, int priority)
{
	const struct bpf_insn program[] = {
		MOVE(R6, R1),
		LOAD_WORD(R2, R6, offsetof(struct bpf_sock_ops, op)),
		SKIP_UNLESS(R2, BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB, 9),
		SET(R2, priority),
		STORE_WORD(FRAME, -(int)sizeof(int), R2),
		MOVE(R1, R6),
		SET(R2, SOL_SOCKET),
		SET(R3, SO_PRIORITY),
		MOVE(R4, FRAME),
		ADD(R4, -(int)sizeof(int)),
		SET(R5, sizeof(int)),
		CALL(BPF_FUNC_setsockopt),
		SET(R2, DEFAULT_REPLY), /* for TCP's questions: initial window, ECN, ... */
		STORE_WORD(R6, offsetof(struct bpf_sock_ops, reply), R2),
		SET(R0, ALLOWED),
		RETURN,
	};

	return attach(cgroup, BPF_PROG_TYPE_SOCK_OPS, BPF_CGROUP_SOCK_OPS, program,
	    sizeof(program) / sizeof(*program));
}

const char *attach_priority(int cgroup, int priority)
{
	const char *why = attach_to_packets(cgroup, priority);

	if (!why)
		why = attach_to_making(cgroup, priority);
	return why ? why : attach_to_accepting(cgroup, priority);
}
