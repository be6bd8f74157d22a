// SPDX-License-Identifier: GPL-2.0
/*
 * tc support for the qjump2015 qdisc. A level without a budget drops every packet; a
 * bare "qjump2015" uses the module parameters.
 */
#include "plugin.h"
#include "units.h"
#include "pkt_sched_qjump2015.h"

static int explain(void)
{
	fprintf(stderr,
		"Usage: ... qjump2015 [ epoch TIME ] [ level P BYTES|unlimited ]...\n");
	return -1;
}

/* Parse "P BYTES|unlimited"; return the number of words used, or -1. */
static int parse_level(int argc, char **argv, uint32_t *budget, bool *named)
{
	uint32_t p;

	if (argc < 2)
		return missing("level");
	if (get_u32(&p, argv[0], 10) || p >= TC_QJUMP2015_LEVELS) {
		fprintf(stderr,
			"\"%s\" is not a level; levels are 0 to 7, 7 is the most urgent\n",
			argv[0]);
		return -1;
	}
	if (named[p]) {
		fprintf(stderr, "level %u is given twice\n", p);
		return -1;
	}
	named[p] = true;
	budget[p] = TC_QJUMP2015_UNLIMITED;
	if (strcmp(argv[1], "unlimited") && parse_size("level", argv[1], &budget[p]))
		return -1;
	return 2;
}

static int parse(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
		 const char *dev)
{
	uint32_t budget[TC_QJUMP2015_LEVELS] = {};
	bool named[TC_QJUMP2015_LEVELS] = {}, has_epoch = false, has_levels = false;
	struct rtattr *nest;
	uint64_t epoch;

	if (!argc)
		return 0;
	nest = nest_start(n, TCA_OPTIONS);
	for (; argc; argc--, argv++) {
		if (!strcmp(*argv, "help"))
			return explain();
		if (!strcmp(*argv, "epoch")) {
			if (has_epoch) {
				fprintf(stderr, "\"epoch\" is given twice\n");
				return -1;
			}
			if (argc < 2)
				return missing("epoch");
			if (parse_time("epoch", argv[1], &epoch))
				return -1;
			put_u64(n, TCA_QJUMP2015_EPOCH, epoch);
			has_epoch = true;
			argc--;
			argv++;
		} else if (!strcmp(*argv, "level")) {
			if (parse_level(argc - 1, argv + 1, budget, named) < 0)
				return -1;
			has_levels = true;
			argc -= 2;
			argv += 2;
		} else {
			fprintf(stderr,
				"qjump2015 has no option \"%s\"; see \"qjump2015 help\"\n",
				*argv);
			return -1;
		}
	}
	if (has_levels)
		addattr_l(n, MSG_MAX, TCA_QJUMP2015_BUDGETS, budget, sizeof(budget));
	addattr_nest_end(n, nest);
	return 0;
}

static int show(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	static const uint8_t size[TCA_QJUMP2015_MAX + 1] = {
		[TCA_QJUMP2015_EPOCH] = 8,
		[TCA_QJUMP2015_BUDGETS] = 4 * TC_QJUMP2015_LEVELS,
	};
	struct rtattr *tb[TCA_QJUMP2015_MAX + 1];
	uint32_t budget[TC_QJUMP2015_LEVELS];
	char text[64], time[40];
	int p;

	if (!opt)
		return 0;
	parse_options(tb, size, TCA_QJUMP2015_MAX, opt);
	if (!tb[TCA_QJUMP2015_EPOCH] || !tb[TCA_QJUMP2015_BUDGETS])
		return 0;
	show_json("epoch_ns", attr_u64(tb[TCA_QJUMP2015_EPOCH]));
	snprintf(text, sizeof(text), "epoch %s ",
		 format_time(time, attr_u64(tb[TCA_QJUMP2015_EPOCH])));
	show_text(text);
	memcpy(budget, RTA_DATA(tb[TCA_QJUMP2015_BUDGETS]), sizeof(budget));
	open_json_array(PRINT_JSON, "budgets");
	for (p = 0; p < TC_QJUMP2015_LEVELS; p++)
		show_json(NULL, budget[p]);
	close_json_array(PRINT_JSON, NULL);
	for (p = TC_QJUMP2015_LEVELS - 1; p >= 0; p--) {
		if (budget[p] == TC_QJUMP2015_UNLIMITED)
			snprintf(text, sizeof(text), "level %d unlimited ", p);
		else
			snprintf(text, sizeof(text), "level %d %ub ", p, budget[p]);
		show_text(text);
	}
	return 0;
}

static int show_levels(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	struct tc_qjump2015_xstats st;
	char text[256];
	int p;

	if (!xstats || RTA_PAYLOAD(xstats) < sizeof(st))
		return 0;
	memcpy(&st, RTA_DATA(xstats), sizeof(st));
	open_json_array(PRINT_JSON, "levels");
	for (p = TC_QJUMP2015_LEVELS - 1; p >= 0; p--) {
		const struct tc_qjump2015_level *l = &st.level[p];

		open_json_object(NULL);
		show_json("level", p);
		show_json("packets", l->packets);
		show_json("bytes", l->bytes);
		show_json("drops", l->drops);
		show_json("oversize", l->oversize);
		show_json("qlen", l->qlen);
		show_json("backlog", l->backlog);
		close_json_object();
		snprintf(text, sizeof(text),
			 "%s level %d: sent %llu bytes %llu pkt (dropped %llu, oversize %llu) backlog %ub %up",
			 p == TC_QJUMP2015_LEVELS - 1 ? "" : "\n", p,
			 (unsigned long long)l->bytes, (unsigned long long)l->packets,
			 (unsigned long long)l->drops, (unsigned long long)l->oversize,
			 l->backlog, l->qlen);
		show_text(text);
	}
	close_json_array(PRINT_JSON, NULL);
	return 0;
}

struct qdisc_util qjump2015_qdisc_util = {
	.id		= "qjump2015",
	.parse_qopt	= parse,
	.print_qopt	= show,
	.print_xstats	= show_levels,
};
