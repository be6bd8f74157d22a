/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QJump by departure times: give packets of limited levels times that an fq below enforces. */
#include "edt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/common.h"

#define MAX_EPOCH_NS (3600 * NS_PER_S)
#define MAX_OVERHEAD 2048
#define MIN_FRAME 60 /* bytes, as the kernel counts them (without FCS) */

const char program[] = "qjump-edt";

static const char help[] =
	"usage: qjump-edt add DEVICE epoch NS level P BYTES ... [slack NS] [limit PACKETS]\n"
	"                 [overhead BYTES] [mpu BYTES] [priomap L0 .. L15]\n"
	"       qjump-edt show DEVICE\n"
	"       qjump-edt del DEVICE\n"
	"\n"
	"Each packet of a level with a budget is given the first time at which no window of\n"
	"an epoch has more than the budget; an fq below DEVICE's egress keeps it until then.\n"
	"qjump-edt(1) has the queueing disciplines that it needs.\n";

/* The rule given on the command line. */
struct rule {
	uint64_t epoch, slack, limit, overhead, mpu, budget[LEVELS];
	uint8_t priomap[PRIORITIES];
};

static uint64_t number(const char *what, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	unsigned long long value;

	if (!text)
		refuse("%s needs a number", what);
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < min || value > max)
		refuse("%s %s: use a number from %" PRIu64 " to %" PRIu64, what, text, min, max);
	return value;
}

/* Parse one option with its values; return the position of the next one. */
static char **option(char **word, struct rule *rule)
{
	const struct {
		const char *name;
		uint64_t *value, min, max;
	} plain[] = {
		{ "epoch", &rule->epoch, 1000, MAX_EPOCH_NS }, { "slack", &rule->slack, 0, MAX_EPOCH_NS },
		{ "limit", &rule->limit, 1, MAX_WAITING },
		           { "overhead", &rule->overhead, 0, MAX_OVERHEAD },
		{ "mpu", &rule->mpu, 0, MAX_OVERHEAD },
	};

	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (!strcmp(*word, plain[i].name)) {
			*plain[i].value = number(*word, word[1], plain[i].min, plain[i].max);
			return word + 2;
		}
	if (!strcmp(*word, "level")) {
		const uint64_t level = number("level", word[1], 0, LEVELS - 1);

		rule->budget[level] = number("a level's budget", word[2], 1, INT32_MAX);
		return word + 3;
	}
	if (!strcmp(*word, "priomap")) {
		for (int i = 0; i < PRIORITIES; i++)
			rule->priomap[i] = (uint8_t)number("a level of priomap", *++word, 0, LEVELS - 1);
		return word + 1;
	}
	refuse("unknown option %s; see qjump-edt --help", *word);
}

static struct rule read_rule(char **words)
{
	struct rule rule = { .limit = 1000 };
	int limited = 0;

	for (int i = 0; i < LEVELS; i++)
		rule.priomap[i] = (uint8_t)i;
	while (*words)
		words = option(words, &rule);
	for (int i = 0; i < LEVELS; i++) {
		const uint64_t frame = MIN_FRAME + rule.overhead, min_cost = frame > rule.mpu ? frame : rule.mpu;

		limited += rule.budget[i] > 0;
		if (rule.budget[i] && rule.budget[i] < min_cost)
			refuse("level %d: the smallest frame costs %" PRIu64 " bytes, more than its budget of %" PRIu64,
			    i,
			       min_cost, rule.budget[i]);
	}
	if (!limited || !rule.epoch)
		refuse("give an epoch and at least one level with a budget");
	return rule;
}

struct layout layout_for(uint64_t limit)
{
	struct layout layout = { .ring = 1 };

	while (layout.ring < limit)
		layout.ring *= 2;
	layout.stride = (uint32_t)(sizeof(struct level) + layout.ring * sizeof(uint64_t));
	layout.size = (uint32_t)(sizeof(struct state) + LEVELS * layout.stride);
	return layout;
}

struct level *level_in(struct state *state, const struct layout *layout, unsigned int number)
{
	return (struct level *)(void *)(state->levels + (size_t)number * layout->stride);
}

static int add(const char *device, char **words)
{
	const struct rule rule = read_rule(words);
	const struct layout layout = layout_for(rule.limit);
	struct state *state = allocate(1, layout.size);

	memcpy(state->priomap, rule.priomap, sizeof(rule.priomap));
	state->epoch = rule.epoch;
	state->slack = rule.slack;
	for (unsigned int i = 0; i < LEVELS; i++) {
		struct level *level = level_in(state, &layout, i);

		level->budget = rule.budget[i];
		level->window = rule.epoch + rule.slack;
		level->quantum = level->window / QUANTA + 1;
		level->limit = rule.limit;
		level->overhead = rule.overhead;
		level->mpu = rule.mpu;
	}
	attach(device, state, &layout);
	return 0;
}

static int show(const char *device)
{
	struct layout layout;
	struct state *state = read_back(device, &layout);
	const struct level *first = level_in(state, &layout, 0);

	printf("{\"epoch_ns\": %" PRIu64 ", \"slack_ns\": %" PRIu64 ", \"overhead\": %" PRIu64 ", \"mpu\": %" PRIu64, state->epoch,
	       state->slack, first->overhead, first->mpu);
	printf(", \"priomap\": [");
	for (int i = 0; i < PRIORITIES; i++)
		printf("%s%d", i ? ", " : "", state->priomap[i]);
	printf("], \"budgets\": [");
	for (unsigned int i = 0; i < LEVELS; i++)
		printf("%s%" PRIu64, i ? ", " : "", level_in(state, &layout, i)->budget);
	printf("], \"limits\": [");
	for (unsigned int i = 0; i < LEVELS; i++)
		printf("%s%" PRIu64, i ? ", " : "", level_in(state, &layout, i)->limit);
	printf("], \"levels\": [");
	for (unsigned int i = 0; i < LEVELS; i++) {
		const struct level *level = level_in(state, &layout, i);

		printf("%s{\"level\": %u, \"packets\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"drops\": %" PRIu64
		       ", \"oversize\": %" PRIu64 ", \"throttled\": %" PRIu64 "}",
		       i ? ", " : "", i, level->packets, level->bytes, level->drops + level->oversize,
		           level->oversize,
		       level->throttled);
	}
	printf("]}\n");
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(help, stdout);
		return 0;
	}
	if (argc > 3 && !strcmp(argv[1], "add"))
		return add(argv[2], argv + 3);
	if (argc == 3 && !strcmp(argv[1], "show"))
		return show(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "del"))
		return detach(argv[2]), 0;
	refuse("give add, show or del and a device; see qjump-edt --help");
}
