// SPDX-License-Identifier: GPL-2.0
/*
 * tc's side of the qjump qdisc. Levels are named by 802.1Q priority, 7 is the
 * most urgent. A bare "qjump" stands for the module's parameters.
 */
#include "plugin.h"
#include "units.h"
#include "pkt_sched_qjump.h"

static const char *const modes[] = { "delay", "drop" };
static const char *const epoch_kinds[] = { "rolling", "first-packet", "aligned" };

static void explain(void)
{
	fprintf(stderr,
		"Usage: ... qjump [ epoch TIME ] [ level P BYTES|unlimited ]...\n"
		"           [ mode delay|drop ] [ epochs rolling|first-packet|aligned ] [ base TIME ]\n"
		"           [ limit BYTES|auto ] [ packets N ] [ priomap P0 .. P15 ]\n"
		"           [ overhead BYTES ] [ mpu BYTES ]\n");
}

static int parse_level(const char *arg, uint32_t *level)
{
	if (get_u32(level, arg, 10) || *level >= TC_QJUMP_LEVELS) {
		fprintf(stderr, "\"%s\" is not a level; levels are 0 to 7, 7 is the most urgent\n", arg);
		return -1;
	}
	return 0;
}

static int parse(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
		 const char *dev)
{
	uint32_t budget[TC_QJUMP_LEVELS] = {}, chosen = 0, level, size;
	uint8_t priomap[TC_QJUMP_PRIOS];
	struct rtattr *nest;
	uint64_t time;
	int i;

	if (!argc)
		return 0;
	nest = options_start(n);
	while (argc-- > 0) {
		const char *option = *argv++;

		if (!strcmp(option, "help")) {
			explain();
			return -1;
		}
		if (argc < 1)
			return missing(option);
		if (!strcmp(option, "epoch") || !strcmp(option, "base")) {
			if (parse_time(option, *argv, &time))
				return -1;
			put_u64(n, *option == 'e' ? TCA_QJUMP_EPOCH : TCA_QJUMP_BASE, time);
		} else if (!strcmp(option, "level")) {
			if (argc < 2)
				return missing(option);
			if (parse_level(*argv, &level))
				return -1;
			argc--, argv++;
			budget[level] = 0;
			if (strcmp(*argv, "unlimited") &&
			    parse_size(option, *argv, &budget[level]))
				return -1;
			chosen |= 1u << level;
		} else if (!strcmp(option, "mode")) {
			i = choose(option, modes, 2, *argv);
			if (i < 0)
				return -1;
			put_u32(n, TCA_QJUMP_MODE, i);
		} else if (!strcmp(option, "epochs")) {
			i = choose(option, epoch_kinds, 3, *argv);
			if (i < 0)
				return -1;
			put_u32(n, TCA_QJUMP_EPOCHS, i);
		} else if (!strcmp(option, "limit")) {
			size = 0;
			if (strcmp(*argv, "auto") && parse_size(option, *argv, &size))
				return -1;
			put_u32(n, TCA_QJUMP_LIMIT, size);
		} else if (!strcmp(option, "packets")) {
			if (get_u32(&size, *argv, 10)) {
				fprintf(stderr, "\"packets\" cannot be \"%s\"\n", *argv);
				return -1;
			}
			put_u32(n, TCA_QJUMP_PACKETS, size);
		} else if (!strcmp(option, "priomap")) {
			if (argc < TC_QJUMP_PRIOS)
				return missing(option);
			for (i = 0; i < TC_QJUMP_PRIOS; i++) {
				if (parse_level(argv[i], &level))
					return -1;
				priomap[i] = level;
			}
			addattr_l(n, MSG_MAX, TCA_QJUMP_PRIOMAP, priomap, sizeof(priomap));
			argc -= TC_QJUMP_PRIOS - 1;
			argv += TC_QJUMP_PRIOS - 1;
		} else if (!strcmp(option, "overhead") || !strcmp(option, "mpu")) {
			if (parse_size(option, *argv, &size))
				return -1;
			put_u32(n, *option == 'o' ? TCA_QJUMP_OVERHEAD : TCA_QJUMP_MPU, size);
		} else {
			fprintf(stderr, "qjump has no option \"%s\"\n", option);
			explain();
			return -1;
		}
		argc--, argv++;
	}
	if (chosen) {
		addattr_l(n, MSG_MAX, TCA_QJUMP_BUDGETS, budget, sizeof(budget));
		put_u32(n, TCA_QJUMP_CHOSEN, chosen);
	}
	addattr_nest_end(n, nest);
	return 0;
}

static void show_budgets(const uint32_t *budget)
{
	char text[64];
	int p;

	open_json_array(PRINT_JSON, "budgets");
	for (p = 0; p < TC_QJUMP_LEVELS; p++)
		show_json(NULL, budget[p]);
	close_json_array(PRINT_JSON, NULL);
	for (p = TC_QJUMP_LEVELS - 1; p >= 0; p--) {
		if (budget[p])
			snprintf(text, sizeof(text), "level %d %ub ", p, budget[p]);
		else
			snprintf(text, sizeof(text), "level %d unlimited ", p);
		show_text(text);
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

static void show_number(const char *key, const char *unit, uint32_t value)
{
	char text[64];

	show_json(key, value);
	snprintf(text, sizeof(text), "%s %u%s ", key, value, unit);
	show_text(text);
}

static int show(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	static const uint8_t size[TCA_QJUMP_MAX + 1] = {
		[TCA_QJUMP_EPOCH] = 8, [TCA_QJUMP_BASE] = 8, [TCA_QJUMP_MODE] = 4,
		[TCA_QJUMP_EPOCHS] = 4, [TCA_QJUMP_BUDGETS] = 4 * TC_QJUMP_LEVELS,
		[TCA_QJUMP_LIMIT] = 4, [TCA_QJUMP_PACKETS] = 4,
		[TCA_QJUMP_PRIOMAP] = TC_QJUMP_PRIOS, [TCA_QJUMP_OVERHEAD] = 4,
		[TCA_QJUMP_MPU] = 4,
	};
	struct rtattr *tb[TCA_QJUMP_MAX + 1];

	if (!opt)
		return 0;
	parse_options(tb, size, TCA_QJUMP_MAX, opt);
	if (tb[TCA_QJUMP_EPOCH])
		show_time("epoch", "epoch_ns", attr_u64(tb[TCA_QJUMP_EPOCH]));
	if (tb[TCA_QJUMP_BUDGETS])
		show_budgets(RTA_DATA(tb[TCA_QJUMP_BUDGETS]));
	if (tb[TCA_QJUMP_MODE] && attr_u32(tb[TCA_QJUMP_MODE]) < 2)
		show_name("mode", modes[attr_u32(tb[TCA_QJUMP_MODE])]);
	if (tb[TCA_QJUMP_EPOCHS] && attr_u32(tb[TCA_QJUMP_EPOCHS]) < 3)
		show_name("epochs", epoch_kinds[attr_u32(tb[TCA_QJUMP_EPOCHS])]);
	if (tb[TCA_QJUMP_BASE])
		show_time("base", "base_ns", attr_u64(tb[TCA_QJUMP_BASE]));
	if (tb[TCA_QJUMP_LIMIT] && (is_json_context() || attr_u32(tb[TCA_QJUMP_LIMIT])))
		show_number("limit", "b", attr_u32(tb[TCA_QJUMP_LIMIT]));
	else
		show_text("limit auto ");
	if (tb[TCA_QJUMP_PACKETS])
		show_number("packets", "", attr_u32(tb[TCA_QJUMP_PACKETS]));
	if (tb[TCA_QJUMP_PRIOMAP])
		show_priomap(RTA_DATA(tb[TCA_QJUMP_PRIOMAP]));
	if (tb[TCA_QJUMP_OVERHEAD])
		show_number("overhead", "b", attr_u32(tb[TCA_QJUMP_OVERHEAD]));
	if (tb[TCA_QJUMP_MPU])
		show_number("mpu", "b", attr_u32(tb[TCA_QJUMP_MPU]));
	return 0;
}

static int show_levels(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	struct tc_qjump_xstats st;
	char text[256];
	int p;

	if (!xstats || RTA_PAYLOAD(xstats) < sizeof(st))
		return 0;
	memcpy(&st, RTA_DATA(xstats), sizeof(st));
	if (st.version != TC_QJUMP_XSTATS_VERSION)
		return 0;
	open_json_array(PRINT_JSON, "levels");
	for (p = TC_QJUMP_LEVELS - 1; p >= 0; p--) {
		const struct tc_qjump_level_xstats *l = &st.level[p];

		open_json_object(NULL);
		show_json("level", p);
		show_json("packets", l->packets);
		show_json("bytes", l->bytes);
		show_json("drops", l->drops);
		show_json("oversize", l->oversize);
		show_json("throttled", l->throttled);
		show_json("qlen", l->qlen);
		show_json("backlog", l->backlog);
		show_json("limit", l->limit);
		close_json_object();
		snprintf(text, sizeof(text),
			 "%s level %d: sent %llu bytes %llu pkt (dropped %llu, oversize %llu, throttled %llu) backlog %ub %up limit %ub",
			 p == TC_QJUMP_LEVELS - 1 ? "" : "\n", p,
			 (unsigned long long)l->bytes, (unsigned long long)l->packets,
			 (unsigned long long)l->drops, (unsigned long long)l->oversize,
			 (unsigned long long)l->throttled, l->backlog, l->qlen, l->limit);
		show_text(text);
	}
	close_json_array(PRINT_JSON, NULL);
	return 0;
}

struct qdisc_util qjump_qdisc_util = {
	.id		= "qjump",
	.parse_qopt	= parse,
	.print_qopt	= show,
	.print_xstats	= show_levels,
};
