/* SPDX-License-Identifier: GPL-2.0 */
/* Parse the command line of a qjump qdisc into netlink attributes. */
#ifndef QJUMP_PARSE_H
#define QJUMP_PARSE_H

#include "plugin.h"
#include "units.h"
#include "pkt_sched_qjump.h"

/* Options of one level; also used for a limit that applies to all levels. */
struct level {
	bool	named, unlimited, scaled, has_limit;
	double	factor;
	uint32_t budget, limit;
};

#define HOUR_NS	3600000000000ULL

struct args {
	int	argc;
	char	**argv;
};

static inline int explain(void)
{
	fprintf(stderr,
		"Usage: ... qjump [ epoch TIME ] [ bytes SIZE ]\n"
		"           [ level P BYTES|unlimited|factor F [ limit PACKETS ] ]...\n"
		"           [ limit PACKETS ] [ priomap P0 .. P15 ]\n"
		"           [ overhead BYTES ] [ mpu BYTES ] [ slack TIME ]\n");
	return -1;
}

static inline int repeated(const char *option)
{
	fprintf(stderr, "\"%s\" is given twice\n", option);
	return -1;
}

/* Return the next word; print a message and return NULL if there is none. */
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

/* Parse [limit PACKETS]; return 1 if present, 0 if absent, -1 on error. */
static inline int parse_limit(struct args *a, struct level *l)
{
	const char *arg;

	if (!takes(a, "limit"))
		return 0;
	arg = next(a, "limit");
	if (!arg)
		return -1;
	if (l->has_limit)
		return repeated("limit");
	if (get_u32(&l->limit, arg, 10) || !l->limit || l->limit > 1000000) {
		fprintf(stderr,
			"invalid value \"%s\" for \"limit\": give 1 to 1000000 packets\n", arg);
		return -1;
	}
	l->has_limit = true;
	return 1;
}

static inline int parse_factor(struct args *a, struct level *l)
{
	const char *arg = next(a, "factor");
	char *end;

	if (!arg)
		return -1;
	l->scaled = true;
	l->factor = strtod(arg, &end);
	if (end == arg || *end || !isfinite(l->factor) || l->factor <= 0) {
		fprintf(stderr,
			"invalid value \"%s\" for \"factor\": give a number above 0, or \"unlimited\"\n",
			arg);
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
	if (!err && !l->unlimited && !l->scaled && (!l->budget || l->budget > INT32_MAX)) {
		fprintf(stderr,
			"level %u: give a budget of 1 to 2147483647 bytes, or \"unlimited\"\n", p);
		return -1;
	}
	/* the second call is for a repeated limit */
	return err || parse_limit(a, l) < 0 || parse_limit(a, l) < 0 ? -1 : 0;
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

/* Compute budgets from factors; bytes: the budget of factor 1, or NULL. */
static inline int scale(struct level *levels, const uint32_t *bytes)
{
	int p, below = -1;

	for (p = 0; p < TC_QJUMP_LEVELS; p++) {
		struct level *l = &levels[p];
		double budget;

		if (!l->scaled)
			continue;
		if (!bytes) {
			fprintf(stderr,
				"\"factor\" needs \"bytes\": how many a factor of 1 stands for\n");
			return -1;
		}
		budget = round(l->factor * *bytes);
		if (budget > INT32_MAX || budget < 1) {
			fprintf(stderr,
				"level %d: %g times %u bytes is not a valid budget (1 to 2147483647 bytes)\n",
				p, l->factor, *bytes);
			return -1;
		}
		l->budget = budget;
		if (below >= 0 && l->factor > levels[below].factor)
			fprintf(stderr,
				"Warning: level %d has a larger factor than level %d, which is less urgent\n",
				p, below);
		below = p;
	}
	if (bytes && below < 0) {
		fprintf(stderr, "\"bytes\" needs a level with \"factor\"\n");
		return -1;
	}
	return 0;
}

static inline void put_levels(struct nlmsghdr *n, const struct level *levels,
			      const struct level *all)
{
	uint32_t p;

	for (p = 0; p < TC_QJUMP_LEVELS; p++) {
		const struct level *l = &levels[p];
		const struct level *limit = l->has_limit ? l : all;
		struct rtattr *nest;

		if (!l->named && !all->has_limit)
			continue;
		nest = nest_start(n, TCA_QJUMP_LEVEL);
		put_u64(n, TCA_QJUMP_LEVEL_INDEX, p);
		if (l->named)
			put_u64(n, TCA_QJUMP_LEVEL_BUDGET, l->budget);
		if (limit->has_limit)
			put_u64(n, TCA_QJUMP_LEVEL_LIMIT, limit->limit);
		addattr_nest_end(n, nest);
	}
}

/* An option with one number as its value. */
struct option {
	const char *word;
	int	type;
	bool	is_time;
	uint64_t max;
	const char *range;
};

static inline int parse_option(struct args *a, const struct option *o, struct nlmsghdr *n)
{
	uint32_t bytes;
	uint64_t value;

	if (o->is_time ? next_time(a, o->word, &value) : next_size(a, o->word, &bytes))
		return -1;
	if (!o->is_time)
		value = bytes;
	if (value > o->max) {
		fprintf(stderr, "\"%s\" is out of range: %s\n", o->word, o->range);
		return -1;
	}
	put_u64(n, o->type, value);
	return 0;
}

/* Parse an option with one number, once; return 1 if present, 0 if absent, -1 on error. */
static inline int parse_plain(struct args *a, struct nlmsghdr *n, bool seen[4])
{
	static const struct option options[] = {
		{ "epoch", TCA_QJUMP_EPOCH, true, HOUR_NS, "at most 1 hour" },
		{ "slack", TCA_QJUMP_SLACK, true, HOUR_NS, "at most 1 hour" },
		{ "overhead", TCA_QJUMP_OVERHEAD, false, 2048, "at most 2048 bytes" },
		{ "mpu", TCA_QJUMP_MPU, false, 2048, "at most 2048 bytes" },
	};
	int i;

	for (i = 0; i < 4; i++) {
		if (!takes(a, options[i].word))
			continue;
		if (seen[i])
			return repeated(options[i].word);
		seen[i] = true;
		return parse_option(a, &options[i], n) ? -1 : 1;
	}
	return 0;
}

static inline int qjump_parse(const struct qdisc_util *qu, int argc, char **argv,
			      struct nlmsghdr *n, const char *dev)
{
	struct level levels[TC_QJUMP_LEVELS] = {}, all = {};
	bool seen[4] = {}, has_bytes = false, has_priomap = false;
	struct args a = { argc, argv };
	struct rtattr *nest;
	uint32_t bytes;
	int found;

	if (!argc)
		return 0;
	nest = nest_start(n, TCA_OPTIONS);
	while (a.argc) {
		if (takes(&a, "help"))
			return explain();
		found = parse_limit(&a, &all) ?: parse_plain(&a, n, seen);
		if (found < 0)
			return -1;
		if (found)
			continue;
		if (takes(&a, "bytes")) {
			if (has_bytes)
				return repeated("bytes");
			has_bytes = true;
			if (next_size(&a, "bytes", &bytes))
				return -1;
		} else if (takes(&a, "level")) {
			if (parse_one_level(&a, levels))
				return -1;
		} else if (takes(&a, "priomap")) {
			if (has_priomap)
				return repeated("priomap");
			has_priomap = true;
			if (parse_priomap(&a, n))
				return -1;
		} else {
			fprintf(stderr,
				"qjump has no option \"%s\"; see \"qjump help\"\n", *a.argv);
			return -1;
		}
	}
	if (scale(levels, has_bytes ? &bytes : NULL))
		return -1;
	put_levels(n, levels, &all);
	addattr_nest_end(n, nest);
	return 0;
}

#endif
