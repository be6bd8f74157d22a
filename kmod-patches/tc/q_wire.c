// SPDX-License-Identifier: GPL-2.0
/* tc support for the wire qdisc. */
#include "plugin.h"
#include "units.h"
#include "pkt_sched_wire.h"

static const char *const classifiers[] = { "pcp", "priority", "fifo" };

static void explain(void)
{
	fprintf(stderr,
		"Usage: ... wire rate RATE [ limit BYTES ] [ classify pcp|priority|fifo ]\n"
		"           [ overhead BYTES ] [ delay TIME ] [ orphan|noorphan ]\n"
		"           [ pause XOFF XON [ pfc LEVEL,...|none ] ] [ jitter PERCENT:TIME,...|none [ seed N ] ]\n");
}

static int parse_quantile(const char *text, struct tc_wire_quantile *quantile)
{
	long double percent;
	uint64_t ns;
	char *end;

	percent = strtold(text, &end);
	if (end == text || *end != ':' || !(percent >= 0 && percent <= 100)) {
		fprintf(stderr,
			"\"%s\" is not a quantile; give PERCENT:TIME, as in 50:85us\n", text);
		return -1;
	}
	if (unit_parse("jitter", time_units, UINT32_MAX, end + 1, &ns))
		return -1;
	*quantile = (struct tc_wire_quantile) { llroundl(percent / 100 * UINT32_MAX), ns };
	return 0;
}

static int put_jitter(struct nlmsghdr *n, const char *arg)
{
	struct tc_wire_quantile quantile[TC_WIRE_QUANTILES];
	char text[1024], *word, *at = text;
	int count = 0;

	if (!strcmp(arg, "none")) {
		addattr_l(n, MSG_MAX, TCA_WIRE_JITTER, NULL, 0);
		return 0;
	}
	snprintf(text, sizeof(text), "%s", arg);
	while ((word = strsep(&at, ","))) {
		if (count == TC_WIRE_QUANTILES) {
			fprintf(stderr, "\"jitter\" takes %d quantiles at most\n",
				TC_WIRE_QUANTILES);
			return -1;
		}
		if (parse_quantile(word, &quantile[count++]))
			return -1;
	}
	addattr_l(n, MSG_MAX, TCA_WIRE_JITTER, quantile, count * sizeof(*quantile));
	return 0;
}

static int put_levels(struct nlmsghdr *n, const char *arg)
{
	const char *at = arg;
	uint32_t levels = 0;

	if (strcmp(arg, "none")) {
		do {
			if (*at < '0' || *at >= '0' + TC_WIRE_LEVELS || (at[1] && at[1] != ',')) {
				fprintf(stderr,
					"invalid value \"%s\" for \"pfc\": give levels from 0 to 7, as in 0,1,2, or none\n",
					arg);
				return -1;
			}
			levels |= 1U << (*at - '0');
			at += 2;
		} while (at[-1]);
	}
	put_u32(n, TCA_WIRE_PFC, levels);
	return 0;
}

static int put_size(struct nlmsghdr *n, int type, const char *option, const char *arg)
{
	uint32_t bytes;

	if (parse_size(option, arg, &bytes))
		return -1;
	put_u32(n, type, bytes);
	return 0;
}

static int put_classify(struct nlmsghdr *n, const char *arg)
{
	int i = choose("classify", classifiers, 3, arg);

	if (i < 0)
		return -1;
	put_u32(n, TCA_WIRE_CLASSIFY, i);
	return 0;
}

static int put_number(struct nlmsghdr *n, int type, const char *option, const char *arg,
		      int (*parse_one)(const char *option, const char *arg, uint64_t *value))
{
	uint64_t value;

	if (parse_one(option, arg, &value))
		return -1;
	put_u64(n, type, value);
	return 0;
}

/* Parse an option with its value; "pause" has two values. */
static int put_option(struct nlmsghdr *n, const char *option, char **argv)
{
	if (!strcmp(option, "rate"))
		return put_number(n, TCA_WIRE_RATE, option, *argv, parse_rate);
	if (!strcmp(option, "delay"))
		return put_number(n, TCA_WIRE_DELAY, option, *argv, parse_time);
	if (!strcmp(option, "seed"))
		return put_number(n, TCA_WIRE_SEED, option, *argv, parse_number);
	if (!strcmp(option, "limit"))
		return put_size(n, TCA_WIRE_LIMIT, option, *argv);
	if (!strcmp(option, "overhead"))
		return put_size(n, TCA_WIRE_OVERHEAD, option, *argv);
	if (!strcmp(option, "pause"))
		return put_size(n, TCA_WIRE_XOFF, option, argv[0]) ?:
		       put_size(n, TCA_WIRE_XON, option, argv[1]);
	if (!strcmp(option, "pfc"))
		return put_levels(n, *argv);
	if (!strcmp(option, "jitter"))
		return put_jitter(n, *argv);
	if (!strcmp(option, "classify"))
		return put_classify(n, *argv);
	fprintf(stderr, "wire has no option \"%s\"; see \"wire help\"\n", option);
	return -1;
}

static int parse(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
		 const char *dev)
{
	struct rtattr *nest = nest_start(n, TCA_OPTIONS);

	while (argc-- > 0) {
		const char *option = *argv++;
		int words = strcmp(option, "pause") ? 1 : 2;

		if (!strcmp(option, "help")) {
			explain();
			return -1;
		}
		if (!strcmp(option, "orphan") || !strcmp(option, "noorphan")) {
			put_u32(n, TCA_WIRE_ORPHAN, *option == 'o');
			continue;
		}
		if (argc < words)
			return missing(option);
		if (put_option(n, option, argv))
			return -1;
		argc -= words;
		argv += words;
	}
	addattr_nest_end(n, nest);
	return 0;
}

static void show_jitter(const struct rtattr *jitter, uint64_t seed)
{
	const struct tc_wire_quantile *quantile = RTA_DATA(jitter);
	int i, count = RTA_PAYLOAD(jitter) / sizeof(*quantile);
	char text[80], value[40];

	if (!count)
		return;
	open_json_array(PRINT_JSON, "jitter");
	for (i = 0; i < count; i++) {
		open_json_object(NULL);
		show_json("share", quantile[i].share);
		show_json("ns", quantile[i].ns);
		close_json_object();
		snprintf(text, sizeof(text), "%s%.9Lg:%s", i ? "," : "jitter ",
			 quantile[i].share * 100.0L / UINT32_MAX,
			 format_time(value, quantile[i].ns));
		show_text(text);
	}
	close_json_array(PRINT_JSON, NULL);
	show_json("seed", seed);
	snprintf(text, sizeof(text), " seed %llu ", (unsigned long long)seed);
	show_text(text);
}

static void show_pfc(uint32_t levels)
{
	const char *before = "pfc ";
	char text[16];
	int p;

	if (!levels)
		return;
	open_json_array(PRINT_JSON, "pfc");
	for (p = 0; p < TC_WIRE_LEVELS; p++) {
		if (!(levels & 1U << p))
			continue;
		show_json(NULL, p);
		snprintf(text, sizeof(text), "%s%d", before, p);
		show_text(text);
		before = ",";
	}
	close_json_array(PRINT_JSON, NULL);
	show_text(" ");
}

static int show(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	static const uint8_t size[TCA_WIRE_MAX + 1] = {
		[TCA_WIRE_RATE] = 8, [TCA_WIRE_LIMIT] = 4, [TCA_WIRE_CLASSIFY] = 4,
		[TCA_WIRE_OVERHEAD] = 4, [TCA_WIRE_DELAY] = 8, [TCA_WIRE_ORPHAN] = 4,
		[TCA_WIRE_XOFF] = 4, [TCA_WIRE_XON] = 4, [TCA_WIRE_SEED] = 8, [TCA_WIRE_PFC] = 4,
		[TCA_WIRE_JITTER] = sizeof(struct tc_wire_quantile),
	};
	struct rtattr *tb[TCA_WIRE_MAX + 1];
	char text[80], value[40];
	int type;

	if (!opt)
		return 0;
	parse_options(tb, size, TCA_WIRE_MAX, opt);
	for (type = 1; type <= TCA_WIRE_MAX; type++)
		if (size[type] && !tb[type] && type != TCA_WIRE_JITTER)	/* absent: no jitter */
			return 0;
	show_json("rate_bps", attr_u64(tb[TCA_WIRE_RATE]));
	show_json("limit", attr_u32(tb[TCA_WIRE_LIMIT]));
	snprintf(text, sizeof(text), "rate %s limit %ub ",
		 format_rate(value, attr_u64(tb[TCA_WIRE_RATE])), attr_u32(tb[TCA_WIRE_LIMIT]));
	show_text(text);
	if (attr_u32(tb[TCA_WIRE_CLASSIFY]) < 3)
		show_name("classify", classifiers[attr_u32(tb[TCA_WIRE_CLASSIFY])]);
	show_json("overhead", attr_u32(tb[TCA_WIRE_OVERHEAD]));
	show_json("delay_ns", attr_u64(tb[TCA_WIRE_DELAY]));
	print_color_bool(PRINT_JSON, COLOR_NONE, "orphan", NULL, attr_u32(tb[TCA_WIRE_ORPHAN]));
	snprintf(text, sizeof(text), "overhead %ub delay %s %s ",
		 attr_u32(tb[TCA_WIRE_OVERHEAD]),
		 format_time(value, attr_u64(tb[TCA_WIRE_DELAY])),
		 attr_u32(tb[TCA_WIRE_ORPHAN]) ? "orphan" : "noorphan");
	show_text(text);
	if (attr_u32(tb[TCA_WIRE_XOFF])) {
		show_json("xoff", attr_u32(tb[TCA_WIRE_XOFF]));
		show_json("xon", attr_u32(tb[TCA_WIRE_XON]));
		snprintf(text, sizeof(text), "pause %ub %ub ", attr_u32(tb[TCA_WIRE_XOFF]),
			 attr_u32(tb[TCA_WIRE_XON]));
		show_text(text);
		show_pfc(attr_u32(tb[TCA_WIRE_PFC]));
	}
	if (tb[TCA_WIRE_JITTER])
		show_jitter(tb[TCA_WIRE_JITTER], attr_u64(tb[TCA_WIRE_SEED]));
	return 0;
}

static void show_pause(struct rtattr *xstats)
{
	enum { SENT, RECEIVED, PAUSED, INGRESS, MAX_INGRESS, VALUES };
	static const struct figure figures[VALUES] = {
		{ TCA_WIRE_STATS_PAUSE_SENT, 8, "sent" },
		{ TCA_WIRE_STATS_PAUSE_RECEIVED, 8, "received" },
		{ TCA_WIRE_STATS_PAUSED, 8, "paused_ns" },
		{ TCA_WIRE_STATS_INGRESS, 8, "ingress" },
		{ TCA_WIRE_STATS_MAX_INGRESS, 8, "max_ingress" },
	};
	uint8_t size[TCA_WIRE_STATS_MAX + 1] = { [TCA_WIRE_STATS_PAUSE_ON] = 4 };
	struct rtattr *tb[TCA_WIRE_STATS_MAX + 1];
	unsigned long long value[VALUES];
	char text[256], time[40];
	int i;

	for (i = 0; i < VALUES; i++)
		size[figures[i].type] = figures[i].size;
	parse_options(tb, size, TCA_WIRE_STATS_MAX, xstats);
	for (i = 0; i < VALUES; i++)
		if (!tb[figures[i].type])
			return;
	if (!(tb[TCA_WIRE_STATS_PAUSE_ON] && attr_u32(tb[TCA_WIRE_STATS_PAUSE_ON])) &&
	    !attr_u64(tb[TCA_WIRE_STATS_PAUSE_SENT]) &&
	    !attr_u64(tb[TCA_WIRE_STATS_PAUSE_RECEIVED]))
		return;
	open_json_object("pause");
	show_figures(tb, figures, VALUES, value);
	close_json_object();
	snprintf(text, sizeof(text),
		 "\n pause: sent %llu received %llu paused %s ingress %llub max %llub",
		 value[SENT], value[RECEIVED], format_time(time, value[PAUSED]), value[INGRESS],
		 value[MAX_INGRESS]);
	show_text(text);
}

static void show_level(struct rtattr *nest)
{
	enum {
		LEVEL, PACKETS, BYTES, DROPS, QLEN, BACKLOG, MAX_BACKLOG, MAX_WAIT, MAX_LATE,
		PAUSED, INGRESS, MAX_INGRESS, VALUES
	};
	static const struct figure figures[VALUES] = {
		{ TCA_WIRE_LEVEL_STATS_INDEX, 4, "level" },
		{ TCA_WIRE_LEVEL_STATS_PACKETS, 8, "packets" },
		{ TCA_WIRE_LEVEL_STATS_BYTES, 8, "bytes" },
		{ TCA_WIRE_LEVEL_STATS_DROPS, 8, "drops" },
		{ TCA_WIRE_LEVEL_STATS_QLEN, 4, "qlen" },
		{ TCA_WIRE_LEVEL_STATS_BACKLOG, 4, "backlog" },
		{ TCA_WIRE_LEVEL_STATS_MAX_BACKLOG, 4, "max_backlog" },
		{ TCA_WIRE_LEVEL_STATS_MAX_WAIT, 8, "max_wait_ns" },
		{ TCA_WIRE_LEVEL_STATS_MAX_LATE, 8, "max_late_ns" },
		{ TCA_WIRE_LEVEL_STATS_PAUSED, 8, "paused_ns" },
		{ TCA_WIRE_LEVEL_STATS_INGRESS, 8, "ingress" },
		{ TCA_WIRE_LEVEL_STATS_MAX_INGRESS, 8, "max_ingress" },
	};
	uint8_t size[TCA_WIRE_LEVEL_STATS_MAX + 1] = {};
	struct rtattr *tb[TCA_WIRE_LEVEL_STATS_MAX + 1];
	char text[256], wait[40], late[40];
	unsigned long long value[VALUES] = {};
	int i;

	for (i = 0; i < VALUES; i++)
		size[figures[i].type] = figures[i].size;
	parse_options(tb, size, TCA_WIRE_LEVEL_STATS_MAX, nest);
	open_json_object(NULL);
	show_figures(tb, figures, tb[TCA_WIRE_LEVEL_STATS_PAUSED] ? VALUES : PAUSED, value);
	close_json_object();
	snprintf(text, sizeof(text),
		 "%s level %llu: sent %llu bytes %llu pkt (dropped %llu) backlog %llub %llup max %llub wait %s late %s",
		 value[LEVEL] == TC_WIRE_LEVELS - 1 ? "" : "\n", value[LEVEL], value[BYTES],
		 value[PACKETS], value[DROPS], value[BACKLOG], value[QLEN], value[MAX_BACKLOG],
		 format_time(wait, value[MAX_WAIT]), format_time(late, value[MAX_LATE]));
	show_text(text);
	if (tb[TCA_WIRE_LEVEL_STATS_PAUSED]) {
		snprintf(text, sizeof(text), " paused %s ingress %llub max %llub",
			 format_time(wait, value[PAUSED]), value[INGRESS], value[MAX_INGRESS]);
		show_text(text);
	}
}

static int show_levels(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	struct rtattr *level[TC_WIRE_LEVELS];
	int p;

	if (!xstats)
		return 0;
	find_levels(xstats, TCA_WIRE_STATS_LEVEL, TCA_WIRE_LEVEL_STATS_INDEX, level,
		    TC_WIRE_LEVELS);
	open_json_array(PRINT_JSON, "levels");
	for (p = TC_WIRE_LEVELS - 1; p >= 0; p--)
		if (level[p])
			show_level(level[p]);
	close_json_array(PRINT_JSON, NULL);
	show_pause(xstats);
	return 0;
}

struct qdisc_util wire_qdisc_util = {
	.id		= "wire",
	.parse_qopt	= parse,
	.print_qopt	= show,
	.print_xstats	= show_levels,
};
