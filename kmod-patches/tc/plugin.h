/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a plugin needs from tc: declarations of functions that the tc binary
 * exports (iproute2 6.1 to 6.15, as in its include/utils.h,
 * include/json_print.h and tc/tc_util.h), and small helpers on top of them.
 */
#ifndef PLUGIN_H
#define PLUGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <linux/rtnetlink.h>

struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_qopt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*print_xstats)(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats);
	int (*parse_copt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_copt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*has_block)(const struct qdisc_util *qu, struct rtattr *opt,
			 uint32_t block, bool *has);
};

enum output_type { PRINT_FP = 1, PRINT_JSON = 2, PRINT_ANY = 4 };
#define COLOR_NONE 6

int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data, int alen);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);
int get_u32(uint32_t *val, const char *arg, int base);
bool is_json_context(void);
void open_json_object(const char *key);
void close_json_object(void);
void open_json_array(enum output_type type, const char *key);
void close_json_array(enum output_type type, const char *delim);
int print_color_string(enum output_type type, int color, const char *key,
		       const char *fmt, const char *value);
int print_color_u64(enum output_type type, int color, const char *key,
		    const char *fmt, uint64_t value);
int print_color_bool(enum output_type type, int color, const char *key,
		     const char *fmt, bool value);

#define MSG_MAX 4096	/* bytes; below tc's buffer in every version */

static inline struct rtattr *nest_start(struct nlmsghdr *n, int type)
{
	struct rtattr *nest = addattr_nest(n, MSG_MAX, type);

	nest->rta_type |= NLA_F_NESTED;
	return nest;
}

static inline void put_u32(struct nlmsghdr *n, int type, uint32_t value)
{
	addattr_l(n, MSG_MAX, type, &value, sizeof(value));
}

static inline void put_u64(struct nlmsghdr *n, int type, uint64_t value)
{
	addattr_l(n, MSG_MAX, type, &value, sizeof(value));
}

/* Fill tb with the attributes of opt by type; skip types above max and short attributes. */
static inline void parse_options(struct rtattr **tb, const uint8_t *size, int max,
				 struct rtattr *opt)
{
	struct rtattr *a;
	int len = RTA_PAYLOAD(opt);

	memset(tb, 0, sizeof(*tb) * (max + 1));
	for (a = RTA_DATA(opt); RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		int type = a->rta_type & NLA_TYPE_MASK;

		if (type <= max && size[type] && RTA_PAYLOAD(a) >= size[type])
			tb[type] = a;
	}
}

static inline uint32_t attr_u32(const struct rtattr *a)
{
	uint32_t value;

	memcpy(&value, RTA_DATA(a), sizeof(value));
	return value;
}

/* A NLA_UINT: 32 or 64 bits, depending on its value. */
static inline uint64_t attr_uint(const struct rtattr *a)
{
	uint64_t value = 0;
	uint32_t small;

	if (RTA_PAYLOAD(a) >= sizeof(value)) {
		memcpy(&value, RTA_DATA(a), sizeof(value));
		return value;
	}
	memcpy(&small, RTA_DATA(a), sizeof(small));
	return small;
}

static inline uint64_t attr_u64(const struct rtattr *a)
{
	uint64_t value;

	memcpy(&value, RTA_DATA(a), sizeof(value));
	return value;
}

static inline void show_json(const char *key, uint64_t value)
{
	print_color_u64(PRINT_JSON, COLOR_NONE, key, NULL, value);
}

static inline void show_text(const char *text)
{
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", text);
}

/* Print a JSON string named key, or "key value " as text. */
static inline void show_name(const char *key, const char *value)
{
	show_text(key);
	print_color_string(PRINT_ANY, COLOR_NONE, key, " %s ", value);
}

/* A counter: its attribute, minimum size in bytes, and JSON name. */
struct figure {
	int type;
	uint8_t size;
	const char *name;
};

/* Read counters into value, 0 for a missing one, and print them as JSON. */
static inline void show_figures(struct rtattr **tb, const struct figure *figures, int n,
				unsigned long long *value)
{
	int i;

	for (i = 0; i < n; i++) {
		struct rtattr *a = tb[figures[i].type];

		value[i] = a ? attr_uint(a) : 0;
		show_json(figures[i].name, value[i]);
	}
}

/* Fill level with the nests of a type, by the value of the attribute index in each. */
static inline void find_levels(struct rtattr *xstats, int type, int index, struct rtattr **level,
			       uint32_t levels)
{
	int len = RTA_PAYLOAD(xstats), inner;
	struct rtattr *a, *i;

	memset(level, 0, sizeof(*level) * levels);
	for (a = RTA_DATA(xstats); RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		if ((a->rta_type & NLA_TYPE_MASK) != type)
			continue;
		inner = RTA_PAYLOAD(a);
		for (i = RTA_DATA(a); RTA_OK(i, inner); i = RTA_NEXT(i, inner))
			if (i->rta_type == index && RTA_PAYLOAD(i) >= 4 && attr_uint(i) < levels)
				level[attr_uint(i)] = a;
	}
}

/* Return the index of arg in names; print a message and return -1 if it is not there. */
static inline int choose(const char *option, const char *const *names, int n, const char *arg)
{
	int i;

	for (i = 0; i < n; i++)
		if (!strcmp(arg, names[i]))
			return i;
	fprintf(stderr, "invalid value \"%s\" for \"%s\": give", arg, option);
	for (i = 0; i < n; i++)
		fprintf(stderr, "%s %s", !i ? "" : i == n - 1 ? " or" : ",", names[i]);
	fprintf(stderr, "\n");
	return -1;
}

static inline int missing(const char *option)
{
	fprintf(stderr, "\"%s\" needs a value\n", option);
	return -1;
}

#endif
