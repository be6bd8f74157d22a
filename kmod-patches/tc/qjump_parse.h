/* SPDX-License-Identifier: GPL-2.0 */
/* The command line of a qjump qdisc, as the attributes of its message. */
#ifndef QJUMP_PARSE_H
#define QJUMP_PARSE_H

#include "plugin.h"
#include "units.h"
#include "pkt_sched_qjump.h"

static const char *const modes[] = { "delay", "drop", "2015" };
static const char *const epoch_kinds[] = { "rolling", "first-packet", "aligned" };

/* What a command says of one level; bare limit and packets are kept in one too. */
struct level {
	bool	named, unlimited, scaled, has_limit, has_packets;
	double	factor;
	uint32_t budget, limit, packets;
};

struct args {
	int	argc;
	char	**argv;
};

static inline int explain(void)
{
	fprintf(stderr,
		"Usage: ... qjump [ epoch TIME ] [ bytes SIZE ]\n"
		"           [ level P BYTES|unlimited|factor F [ limit BYTES|auto ] [ packets N ] ]...\n"
		"           [ mode delay|drop|2015 ] [ epochs rolling|first-packet|aligned ] [ base TIME ]\n"
		"           [ limit BYTES|auto ] [ packets N ] [ priomap P0 .. P15 ]\n"
		"           [ overhead BYTES ] [ mpu BYTES ] [ slack TIME ]\n");
	return -1;
}

/* The word after option; NULL with a message if there is none. */
static inline const char *next(struct args *a, const char *option)
{
	if (!a->argc) {
		missing(option);
		return NULL;
	}
	a->argc--;
	return *a->argv++;
}

static inline bool takes(struct args *a, const char *option)
{
	if (!a->argc || strcmp(*a->argv, option))
		return false;
	a->argc--;
	a->argv++;
	return true;
}

static inline int next_time(struct args *a, const char *option, uint64_t *ns)
{
	const char *arg = next(a, option);

	return arg ? parse_time(option, arg, ns) : -1;
}

static inline int next_size(struct args *a, const char *option, uint32_t *bytes)
{
	const char *arg = next(a, option);

	return arg ? parse_size(option, arg, bytes) : -1;
}

static inline int next_choice(struct args *a, const char *option, const char *const *names, int n)
{
	const char *arg = next(a, option);

	return arg ? choose(option, names, n, arg) : -1;
}

static inline int next_level(struct args *a, const char *option, uint32_t *level)
{
	const char *arg = next(a, option);

	if (!arg)
		return -1;
	if (get_u32(level, arg, 10) || *level >= TC_QJUMP_LEVELS) {
		fprintf(stderr,
			"\"%s\" is not a level; levels are 0 to 7, 7 is the most urgent\n", arg);
		return -1;
	}
	return 0;
}

/* [limit BYTES|auto] [packets N]: 1 if either was there, 0 if not, -1 if wrong */
static inline int parse_bounds(struct args *a, struct level *l)
{
	const char *arg;
	int found = 0;

	for (;; found = 1) {
		if (takes(a, "limit")) {
			arg = next(a, "limit");
			l->limit = 0;
			if (!arg || (strcmp(arg, "auto") && parse_size("limit", arg, &l->limit)))
				return -1;
			l->has_limit = true;
		} else if (takes(a, "packets")) {
			arg = next(a, "packets");
			if (!arg)
				return -1;
			if (get_u32(&l->packets, arg, 10)) {
				fprintf(stderr,
					"\"packets\" cannot be \"%s\"; give a whole number\n", arg);
				return -1;
			}
			l->has_packets = true;
		} else {
			return found;
		}
	}
}

static inline int parse_factor(struct args *a, struct level *l)
{
	const char *arg = next(a, "factor");
	char *end;

	if (!arg)
		return -1;
	l->scaled = true;
	l->factor = strtod(arg, &end);
	if (end == arg || *end || !isfinite(l->factor) || l->factor < 0) {
		fprintf(stderr,
			"\"factor\" cannot be \"%s\"; give a number, 0 for unlimited\n", arg);
		return -1;
	}
	return 0;
}

static inline int parse_one_level(struct args *a, struct level *levels)
{
	struct level *l;
	uint32_t p;
	int err;

	if (next_level(a, "level", &p))
		return -1;
	l = &levels[p];
	if (l->named) {
		fprintf(stderr, "level %u is given twice\n", p);
		return -1;
	}
	l->named = true;
	l->unlimited = takes(a, "unlimited");
	if (l->unlimited)
		err = 0;
	else if (takes(a, "factor"))
		err = parse_factor(a, l);
	else
		err = next_size(a, "level", &l->budget);
	return err || parse_bounds(a, l) < 0 ? -1 : 0;
}

static inline int parse_priomap(struct args *a, struct nlmsghdr *n)
{
	uint8_t priomap[TC_QJUMP_PRIOS];
	uint32_t level;
	int i;

	for (i = 0; i < TC_QJUMP_PRIOS; i++) {
		if (next_level(a, "priomap", &level))
			return -1;
		priomap[i] = level;
	}
	return addattr_l(n, MSG_MAX, TCA_QJUMP_PRIOMAP, priomap, sizeof(priomap));
}

/* The budgets that factors of so many bytes stand for. */
static inline int scale(struct level *levels, const uint32_t *bytes)
{
	bool scaled = false;
	int p;

	for (p = 0; p < TC_QJUMP_LEVELS; p++) {
		struct level *l = &levels[p];
		double budget;

		if (!l->scaled)
			continue;
		scaled = true;
		if (!bytes) {
			fprintf(stderr,
				"\"factor\" needs \"bytes\": how many a factor of 1 stands for\n");
			return -1;
		}
		budget = round(l->factor * *bytes);
		if (budget > UINT32_MAX || (l->factor > 0 && budget < 1)) {
			fprintf(stderr,
				"level %d: %g times %u bytes is no budget\n", p, l->factor, *bytes);
			return -1;
		}
		l->budget = budget;
	}
	if (bytes && !scaled) {
		fprintf(stderr, "\"bytes\" is what a \"factor\" counts, and there is none\n");
		return -1;
	}
	return 0;
}

static inline int put_levels(struct nlmsghdr *n, const struct level *levels,
			     const struct level *all, bool old)
{
	uint32_t p;

	for (p = 0; p < TC_QJUMP_LEVELS; p++) {
		const struct level *l = &levels[p];
		const struct level *limit = l->has_limit ? l : all;
		const struct level *packets = l->has_packets ? l : all;
		struct rtattr *nest;

		if (!l->named && !all->has_limit && !all->has_packets)
			continue;
		if (l->unlimited && old) {
			fprintf(stderr,
				"level %u: mode 2015 has no unlimited levels, there 0 lets nothing pass\n",
				p);
			return -1;
		}
		nest = nest_start(n, TCA_QJUMP_LEVEL);
		put_u32(n, TCA_QJUMP_LEVEL_INDEX, p);
		if (l->named)
			put_u32(n, TCA_QJUMP_LEVEL_BUDGET, l->budget);
		if (limit->has_limit)
			put_u32(n, TCA_QJUMP_LEVEL_LIMIT, limit->limit);
		if (packets->has_packets)
			put_u32(n, TCA_QJUMP_LEVEL_PACKETS, packets->packets);
		addattr_nest_end(n, nest);
	}
	return 0;
}

static inline int qjump_parse(const struct qdisc_util *qu, int argc, char **argv,
			      struct nlmsghdr *n, const char *dev)
{
	struct level levels[TC_QJUMP_LEVELS] = {}, all = {};
	struct args a = { argc, argv };
	bool has_bytes = false, old = false;
	struct rtattr *nest;
	uint32_t size, bytes;
	uint64_t time;
	int i;

	if (!argc)
		return 0;
	nest = nest_start(n, TCA_OPTIONS);
	while (a.argc) {
		if (takes(&a, "help"))
			return explain();
		i = parse_bounds(&a, &all);
		if (i < 0)
			return -1;
		if (i)
			continue;
		if (takes(&a, "epoch")) {
			if (next_time(&a, "epoch", &time))
				return -1;
			put_u64(n, TCA_QJUMP_EPOCH, time);
		} else if (takes(&a, "base")) {
			if (next_time(&a, "base", &time))
				return -1;
			put_u64(n, TCA_QJUMP_BASE, time);
		} else if (takes(&a, "slack")) {
			if (next_time(&a, "slack", &time))
				return -1;
			put_u64(n, TCA_QJUMP_SLACK, time);
		} else if (takes(&a, "bytes")) {
			if (next_size(&a, "bytes", &bytes))
				return -1;
			has_bytes = true;
		} else if (takes(&a, "level")) {
			if (parse_one_level(&a, levels))
				return -1;
		} else if (takes(&a, "mode")) {
			i = next_choice(&a, "mode", modes, 3);
			if (i < 0)
				return -1;
			put_u32(n, TCA_QJUMP_MODE, i);
			old = i == TC_QJUMP_2015;
		} else if (takes(&a, "epochs")) {
			i = next_choice(&a, "epochs", epoch_kinds, 3);
			if (i < 0)
				return -1;
			put_u32(n, TCA_QJUMP_EPOCHS, i);
		} else if (takes(&a, "priomap")) {
			if (parse_priomap(&a, n))
				return -1;
		} else if (takes(&a, "overhead")) {
			if (next_size(&a, "overhead", &size))
				return -1;
			put_u32(n, TCA_QJUMP_OVERHEAD, size);
		} else if (takes(&a, "mpu")) {
			if (next_size(&a, "mpu", &size))
				return -1;
			put_u32(n, TCA_QJUMP_MPU, size);
		} else {
			fprintf(stderr,
				"qjump has no option \"%s\"; \"qjump help\" names them\n", *a.argv);
			return -1;
		}
	}
	if (scale(levels, has_bytes ? &bytes : NULL) || put_levels(n, levels, &all, old))
		return -1;
	addattr_nest_end(n, nest);
	return 0;
}

#endif
