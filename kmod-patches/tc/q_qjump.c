// SPDX-License-Identifier: GPL-2.0
/*
 * tc support for the qjump qdisc. Levels are numbered by 802.1Q priority: 7 is the
 * most urgent. A bare "qjump" limits nothing.
 */
#include "qjump_parse.h"

/* Read the levels from the kernel's dump; return false if one is missing. */
static bool read_levels(struct rtattr *opt, struct level *levels)
{
	static const uint8_t size[TCA_QJUMP_LEVEL_MAX + 1] = {
		[TCA_QJUMP_LEVEL_INDEX] = 4, [TCA_QJUMP_LEVEL_BUDGET] = 4,
		[TCA_QJUMP_LEVEL_LIMIT] = 4,
	};
	int len = RTA_PAYLOAD(opt), p;
	struct rtattr *at, *tb[TCA_QJUMP_LEVEL_MAX + 1];

	for (at = RTA_DATA(opt); RTA_OK(at, len); at = RTA_NEXT(at, len)) {
		struct level *l;

		if ((at->rta_type & NLA_TYPE_MASK) != TCA_QJUMP_LEVEL)
			continue;
		parse_options(tb, size, TCA_QJUMP_LEVEL_MAX, at);
		if (!tb[TCA_QJUMP_LEVEL_INDEX] || !tb[TCA_QJUMP_LEVEL_BUDGET] ||
		    !tb[TCA_QJUMP_LEVEL_LIMIT] ||
		    attr_uint(tb[TCA_QJUMP_LEVEL_INDEX]) >= TC_QJUMP_LEVELS)
			continue;
		l = &levels[attr_uint(tb[TCA_QJUMP_LEVEL_INDEX])];
		l->named = true;
		l->budget = attr_uint(tb[TCA_QJUMP_LEVEL_BUDGET]);
		l->limit = attr_uint(tb[TCA_QJUMP_LEVEL_LIMIT]);
	}
	for (p = 0; p < TC_QJUMP_LEVELS; p++)
		if (!levels[p].named)
			return false;
	return true;
}

static void show_settings(const struct level *levels)
{
	bool same = true;
	char text[64];
	int p;

	open_json_array(PRINT_JSON, "budgets");
	for (p = 0; p < TC_QJUMP_LEVELS; p++)
		show_json(NULL, levels[p].budget);
	close_json_array(PRINT_JSON, NULL);
	open_json_array(PRINT_JSON, "limits");
	for (p = 0; p < TC_QJUMP_LEVELS; p++)
		show_json(NULL, levels[p].limit);
	close_json_array(PRINT_JSON, NULL);
	for (p = 1; p < TC_QJUMP_LEVELS; p++)
		same &= levels[p].limit == levels[0].limit;
	if (same) {	/* print before the levels: after one it would be that level's limit */
		snprintf(text, sizeof(text), "limit %u ", levels[0].limit);
		show_text(text);
	}
	for (p = TC_QJUMP_LEVELS - 1; p >= 0; p--) {
		if (levels[p].budget)
			snprintf(text, sizeof(text), "level %d %ub ", p, levels[p].budget);
		else
			snprintf(text, sizeof(text), "level %d unlimited ", p);
		show_text(text);
		if (!same) {
			snprintf(text, sizeof(text), "limit %u ", levels[p].limit);
			show_text(text);
		}
	}
}

static void show_priomap(const uint8_t *priomap)
{
	char text[8];
	int i;

	open_json_array(PRINT_JSON, "priomap");
	show_text("priomap ");
	for (i = 0; i < TC_QJUMP_PRIOS; i++) {
		show_json(NULL, priomap[i]);
		snprintf(text, sizeof(text), "%u ", priomap[i]);
		show_text(text);
	}
	close_json_array(PRINT_JSON, NULL);
}

static void show_time(const char *word, const char *key, uint64_t ns)
{
	char text[64], time[40];

	show_json(key, ns);
	snprintf(text, sizeof(text), "%s %s ", word, format_time(time, ns));
	show_text(text);
}

static void show_size(const char *key, uint32_t value)
{
	char text[64];

	show_json(key, value);
	snprintf(text, sizeof(text), "%s %ub ", key, value);
	show_text(text);
}

static int show(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	static const uint8_t size[TCA_QJUMP_MAX + 1] = {
		[TCA_QJUMP_EPOCH] = 4, [TCA_QJUMP_SLACK] = 4,
		[TCA_QJUMP_PRIOMAP] = TC_QJUMP_PRIOS,
		[TCA_QJUMP_OVERHEAD] = 4, [TCA_QJUMP_MPU] = 4,
	};
	struct level levels[TC_QJUMP_LEVELS] = {};
	struct rtattr *tb[TCA_QJUMP_MAX + 1];

	if (!opt)
		return 0;
	parse_options(tb, size, TCA_QJUMP_MAX, opt);
	if (tb[TCA_QJUMP_EPOCH])
		show_time("epoch", "epoch_ns", attr_uint(tb[TCA_QJUMP_EPOCH]));
	else
		show_json("epoch_ns", 0);
	if (tb[TCA_QJUMP_SLACK])
		show_time("slack", "slack_ns", attr_uint(tb[TCA_QJUMP_SLACK]));
	if (read_levels(opt, levels))
		show_settings(levels);
	if (tb[TCA_QJUMP_PRIOMAP])
		show_priomap(RTA_DATA(tb[TCA_QJUMP_PRIOMAP]));
	if (tb[TCA_QJUMP_OVERHEAD])
		show_size("overhead", attr_uint(tb[TCA_QJUMP_OVERHEAD]));
	if (tb[TCA_QJUMP_MPU])
		show_size("mpu", attr_uint(tb[TCA_QJUMP_MPU]));
	return 0;
}

static void show_level(struct rtattr *nest)
{
	enum { LEVEL, PACKETS, BYTES, DROPS, OVERSIZE, THROTTLED, QLEN, BACKLOG, VALUES };
	static const struct figure figures[VALUES] = {
		{ TCA_QJUMP_LEVEL_STATS_INDEX, 4, "level" },
		{ TCA_QJUMP_LEVEL_STATS_PACKETS, 4, "packets" },
		{ TCA_QJUMP_LEVEL_STATS_BYTES, 4, "bytes" },
		{ TCA_QJUMP_LEVEL_STATS_DROPS, 4, "drops" },
		{ TCA_QJUMP_LEVEL_STATS_OVERSIZE, 4, "oversize" },
		{ TCA_QJUMP_LEVEL_STATS_THROTTLED, 4, "throttled" },
		{ TCA_QJUMP_LEVEL_STATS_QLEN, 4, "qlen" },
		{ TCA_QJUMP_LEVEL_STATS_BACKLOG, 4, "backlog" },
	};
	uint8_t size[TCA_QJUMP_LEVEL_STATS_MAX + 1] = {};
	struct rtattr *tb[TCA_QJUMP_LEVEL_STATS_MAX + 1];
	unsigned long long value[VALUES];
	char text[256];
	int i;

	for (i = 0; i < VALUES; i++)
		size[figures[i].type] = figures[i].size;
	parse_options(tb, size, TCA_QJUMP_LEVEL_STATS_MAX, nest);
	open_json_object(NULL);
	show_figures(tb, figures, VALUES, value);
	close_json_object();
	snprintf(text, sizeof(text),
		 "%s level %llu: sent %llu bytes %llu pkt (dropped %llu, oversize %llu, throttled %llu) backlog %llub %llup",
		 value[LEVEL] == TC_QJUMP_LEVELS - 1 ? "" : "\n", value[LEVEL], value[BYTES],
		 value[PACKETS], value[DROPS], value[OVERSIZE], value[THROTTLED], value[BACKLOG],
		 value[QLEN]);
	show_text(text);
}

static int show_levels(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	struct rtattr *level[TC_QJUMP_LEVELS];
	int p;

	if (!xstats)
		return 0;
	find_levels(xstats, TCA_QJUMP_STATS_LEVEL, TCA_QJUMP_LEVEL_STATS_INDEX, level,
		    TC_QJUMP_LEVELS);
	open_json_array(PRINT_JSON, "levels");
	for (p = TC_QJUMP_LEVELS - 1; p >= 0; p--)
		if (level[p])
			show_level(level[p]);
	close_json_array(PRINT_JSON, NULL);
	return 0;
}

struct qdisc_util qjump_qdisc_util = {
	.id		= "qjump",
	.parse_qopt	= qjump_parse,
	.print_qopt	= show,
	.print_xstats	= show_levels,
};
