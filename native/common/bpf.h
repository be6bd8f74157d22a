/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf(2), for programs that assemble their BPF programs themselves. A header, as program.mk
 * compiles every C file here into every program.
 */
#ifndef QJUMP_MN_BPF_H
#define QJUMP_MN_BPF_H

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline long bpf(enum bpf_cmd command, union bpf_attr *attributes)
{
	return syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

/*
 * Load a program for attachment at `place`, with a name of at most 15 characters. Return its
 * descriptor, or -1 with errno and the verifier's log, which is "" unless the verifier refused it.
 */
static inline int bpf_load(enum bpf_prog_type type, enum bpf_attach_type place, const char *name,
			   const struct bpf_insn *program, size_t count, const char **log)
{
	static char text[1 << 16];
	union bpf_attr load = { 0 };
	int fd, error;

	load.prog_type = type;
	load.expected_attach_type = place;
	load.insns = (uintptr_t)program;
	load.insn_cnt = (uint32_t)count;
	load.license = (uintptr_t) "GPL";
	memcpy(load.prog_name, name, strlen(name));
	fd = (int)bpf(BPF_PROG_LOAD, &load);
	if (fd >= 0)
		return fd;
	error = errno;
	load.log_level = 1;
	load.log_buf = (uintptr_t)text;
	load.log_size = sizeof(text);
	bpf(BPF_PROG_LOAD, &load);
	*log = text;
	errno = error;
	return -1;
}

#endif
