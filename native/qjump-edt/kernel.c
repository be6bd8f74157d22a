/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Load the program and its map, attach it to a device's egress, and find it there again. With tcx
 * (Linux 6.6) a program stays attached until it is detached or the device goes, without a pin or a
 * process.
 */
#include "edt.h"

#include <errno.h>
#include <linux/btf.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/bpf.h"
#include "../common/common.h"

#define NAME "qjump_edt"
#define TCX_EGRESS 47 /* BPF_TCX_EGRESS, missing in headers before Linux 6.6 */
#define MAX_PROGRAMS 64 /* per device */

enum { TYPE_U32 = 1, TYPE_LOCK, TYPE_STATE }; /* type ids in the map's BTF */

#define NAMES "\0u32\0bpf_spin_lock\0val\0state\0lock"
enum { NAME_U32 = 1, NAME_SPIN_LOCK = 5, NAME_VAL = 19, NAME_STATE = 23, NAME_LOCK = 29 };

__attribute__((noreturn)) static void fail_errno(const char *what)
{
	if (errno == EPERM || errno == EACCES)
		fail("cannot %s: it needs CAP_BPF and CAP_NET_ADMIN; run it as root", what);
	if (errno == ENOSYS)
		fail("cannot %s: this kernel has no bpf(2) (CONFIG_BPF_SYSCALL)", what);
	fail("cannot %s: %s", what, strerror(errno));
}

/* Load the BTF that the kernel needs for a map with a lock: a struct of that size, lock first. */
static int load_types(uint32_t size)
{
	const struct {
		struct btf_header header;
		struct btf_type u32;
		uint32_t encoding;
		struct btf_type lock;
		struct btf_member val;
		struct btf_type state;
		struct btf_member first;
		char names[sizeof(NAMES)];
	} blob = {
		.header = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(struct btf_header),
			    .type_len = 3 * sizeof(struct btf_type) + sizeof(uint32_t) + 2 * sizeof(struct btf_member),
			    .str_off = 3 * sizeof(struct btf_type) + sizeof(uint32_t) + 2 * sizeof(struct btf_member),
			    .str_len = sizeof(NAMES) },
		.u32 = { .name_off = NAME_U32, .info = BTF_KIND_INT << 24, .size = sizeof(uint32_t) },
		.encoding = 32,
		.lock = { .name_off = NAME_SPIN_LOCK, .info = BTF_KIND_STRUCT << 24 | 1,
		    .size = sizeof(uint32_t) },
		.val = { .name_off = NAME_VAL, .type = TYPE_U32 },
		.state = { .name_off = NAME_STATE, .info = BTF_KIND_STRUCT << 24 | 1, .size = size },
		.first = { .name_off = NAME_LOCK, .type = TYPE_LOCK },
		.names = NAMES,
	};
	union bpf_attr load = { 0 };
	long fd;

	load.btf = (uintptr_t)&blob;
	load.btf_size = offsetof(__typeof__(blob), names) + sizeof(NAMES);
	fd = bpf(BPF_BTF_LOAD, &load);
	if (fd < 0)
		fail_errno("describe the map to the kernel");
	return (int)fd;
}

static int make_map(struct state *state, const struct layout *layout)
{
	union bpf_attr make = { 0 }, fill = { 0 };
	const uint32_t key = 0;
	long fd;

	make.map_type = BPF_MAP_TYPE_ARRAY;
	make.key_size = sizeof(key);
	make.value_size = layout->size;
	make.max_entries = 1;
	make.btf_fd = (uint32_t)load_types(layout->size);
	make.btf_key_type_id = TYPE_U32;
	make.btf_value_type_id = TYPE_STATE;
	memcpy(make.map_name, NAME, sizeof(NAME));
	fd = bpf(BPF_MAP_CREATE, &make);
	if (fd < 0)
		fail_errno("create the map");
	fill.map_fd = (uint32_t)fd;
	fill.key = (uintptr_t)&key;
	fill.value = (uintptr_t)state;
	if (bpf(BPF_MAP_UPDATE_ELEM, &fill))
		fail_errno("fill the map");
	return (int)fd;
}

static int load_program(int map, const struct layout *layout)
{
	struct bpf_insn insns[MAX_INSNS];
	const size_t count = assemble(insns, map, layout);
	const char *log;
	const int fd = bpf_load(BPF_PROG_TYPE_SCHED_CLS, 0, NAME, insns, count, &log);

	if (fd >= 0)
		return fd;
	if (!*log)
		fail_errno("load the program");
	fail("this kernel does not accept the program; end of the verifier's log:\n%s",
	     log + (strlen(log) > 2000 ? strlen(log) - 2000 : 0));
}

static uint32_t index_of(const char *device)
{
	const uint32_t index = if_nametoindex(device);

	if (!index)
		fail("there is no device %s", device);
	return index;
}

/*
 * Find our program at the device's egress; return its descriptor and set the id of its map, or
 * return -1.
 */
static int find(const char *device, uint32_t *map)
{
	uint32_t ids[MAX_PROGRAMS] = { 0 };
	union bpf_attr query = { 0 };

	query.query.target_fd = index_of(device);
	query.query.attach_type = TCX_EGRESS;
	query.query.prog_ids = (uintptr_t)ids;
	query.query.prog_cnt = MAX_PROGRAMS;
	if (bpf(BPF_PROG_QUERY, &query)) {
		if (errno == ENOENT)
			return -1;
		if (errno == EINVAL)
			fail("this kernel does not support tcx (Linux 6.6)");
		fail_errno("query the device's programs");
	}
	for (uint32_t i = 0; i < query.query.prog_cnt; i++) {
		struct bpf_prog_info about = { .nr_map_ids = 1, .map_ids = (uintptr_t)map };
		union bpf_attr open = { 0 }, ask = { 0 };
		long fd;

		open.prog_id = ids[i];
		fd = bpf(BPF_PROG_GET_FD_BY_ID, &open);
		if (fd < 0)
			continue; /* it was removed meanwhile */
		ask.info.bpf_fd = (uint32_t)fd;
		ask.info.info_len = sizeof(about);
		ask.info.info = (uintptr_t)&about;
		if (!bpf(BPF_OBJ_GET_INFO_BY_FD, &ask) && !strcmp(about.name, NAME) && about.nr_map_ids == 1)
			return (int)fd;
		close((int)fd);
	}
	return -1;
}

static int find_or_fail(const char *device, uint32_t *map)
{
	const int program_fd = find(device, map);

	if (program_fd < 0)
		fail("qjump-edt is not attached to %s", device);
	return program_fd;
}

void attach(const char *device, struct state *state, const struct layout *layout)
{
	union bpf_attr target = { 0 };
	uint32_t map;

	if (find(device, &map) >= 0)
		fail("qjump-edt is already attached to %s; remove it with: qjump-edt del %s", device, device);
	target.target_fd = index_of(device);
	target.attach_bpf_fd = (uint32_t)load_program(make_map(state, layout), layout);
	target.attach_type = TCX_EGRESS;
	if (bpf(BPF_PROG_ATTACH, &target))
		fail_errno("attach the program");
}

void detach(const char *device)
{
	union bpf_attr target = { 0 };
	uint32_t map;

	target.attach_bpf_fd = (uint32_t)find_or_fail(device, &map);
	target.target_fd = index_of(device);
	target.attach_type = TCX_EGRESS;
	if (bpf(BPF_PROG_DETACH, &target))
		fail_errno("detach the program");
}

struct state *read_back(const char *device, struct layout *layout)
{
	struct bpf_map_info about = { 0 };
	union bpf_attr open = { 0 }, ask = { 0 }, look = { 0 };
	const uint32_t key = 0;
	struct state *state;
	uint32_t map;
	long fd;

	close(find_or_fail(device, &map));
	open.map_id = map;
	fd = bpf(BPF_MAP_GET_FD_BY_ID, &open);
	if (fd < 0)
		fail_errno("open the map");
	ask.info.bpf_fd = (uint32_t)fd;
	ask.info.info_len = sizeof(about);
	ask.info.info = (uintptr_t)&about;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &ask))
		fail_errno("query the map's size");
	layout->size = about.value_size;
	layout->stride = (uint32_t)((about.value_size - sizeof(*state)) / LEVELS);
	layout->ring = (uint32_t)((layout->stride - sizeof(struct level)) / sizeof(uint64_t));
	state = allocate(1, layout->size);
	look.map_fd = (uint32_t)fd;
	look.key = (uintptr_t)&key;
	look.value = (uintptr_t)state;
	look.flags = BPF_F_LOCK;
	if (bpf(BPF_MAP_LOOKUP_ELEM, &look))
		fail_errno("read the map");
	return state;
}
