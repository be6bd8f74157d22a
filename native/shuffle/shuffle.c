/* SPDX-License-Identifier: GPL-2.0-or-later */
/* shuffle: the traffic of a MapReduce job, between a master and workers. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "shuffle.h"

#define NS_MAX (86400 * NS_PER_S) /* a day, so that times never overflow */
#define BYTES_MAX (1ULL << 40)

const char program[] = "shuffle";

static const char help[] =
	"usage: shuffle worker --listen PORT\n"
	"       shuffle master --workers ADDRESS:PORT,... (--rounds N | --duration NS) [OPTION]...\n"
	"Make the traffic of a MapReduce job, in rounds: the master distributes data to the workers, they compute, "
	"shuffle data among\n"
	"them, compute, and give results back to the master. Every copy is logged, by the master.\n"
	"\n"
	"  --listen PORT          where a worker waits for a master and for other workers\n"
	"  --workers A:P,...      the workers, IPv4; they are nodes 1, 2, ... and the master is 0\n"
	"  --rounds N             end after so many rounds\n"
	"  --duration NS          begin no round later than this; with both, what is first\n"
	"  --distribute BYTES     master to each worker (0: nothing)\n"
	"  --shuffle BYTES        each worker to each other worker (0)\n"
	"  --aggregate BYTES      each worker to the master (0)\n"
	"  --parallel N           copies at a time that a worker makes (5)\n"
	"  --map NS               time that a worker computes, before and after the shuffle (0)\n"
	"  --jitter F             by which fraction of itself that is longer or shorter at most (0)\n"
	"  --transfers N          how many rows the log can hold (100000)\n"
	"  --seed N               of jitter and the copies' order (1)\n"
	"  --output FILE          (stdout)\n"
	"  --help                 this text\n"
	"\n"
	"Exit code: 0 done or ended by SIGTERM or SIGINT, 1 failed, 2 wrong command line. Columns: shuffle(1).\n";

struct command {
	bool worker;
	uint16_t listen;
	struct settings settings;
	const char *workers; /* as they were given */
	const char *output;
};

static void parse_workers(struct settings *settings, const char *text)
{
	char *copy = strdup(text), *word, *rest = copy;

	if (!copy)
		fail(EXIT_FAILED, "no memory left");
	settings->count = 0;
	while ((word = strsep(&rest, ","))) {
		if (settings->count == WORKERS_MAX)
			fail(EXIT_USAGE, "--workers has more than %d workers, give fewer", WORKERS_MAX);
		settings->workers[settings->count++] = address_option("workers", word);
	}
	free(copy);
}

static void check(const struct command *command, uint64_t asked)
{
	const struct settings *settings = &command->settings;
	bool master = asked & ~1ULL; /* an option of the master's was given */

	if (command->worker && master)
		fail(EXIT_USAGE, "a worker takes --listen only, give the rest to the master");
	if (command->worker && !command->listen)
		fail(EXIT_USAGE, "there is no port to listen on, give --listen PORT");
	if (command->worker)
		return;
	if (command->listen)
		fail(EXIT_USAGE, "--listen belongs to a worker, leave it out");
	if (!settings->count)
		fail(EXIT_USAGE, "there are no workers, give --workers ADDRESS:PORT,...");
	if (!settings->rounds && !settings->duration)
		fail(EXIT_USAGE, "there is no end, give --rounds, --duration or both");
	if (!settings->distribute && !settings->aggregate && (!settings->shuffle || settings->count == 1))
		fail(EXIT_USAGE, "there is nothing to copy, give --distribute, --shuffle or --aggregate");
	if (!settings->duration && settings->rounds * rows_per_round(settings) > settings->transfers)
		fail(EXIT_USAGE, "--transfers is %zu, too few for %llu rounds, give %llu", settings->transfers,
		     (unsigned long long)settings->rounds,
		     (unsigned long long)(settings->rounds * rows_per_round(settings)));
}

static struct command parse(int argc, char **argv)
{
	enum {
		LISTEN = 256, WORKERS, ROUNDS, DURATION, DISTRIBUTE, SHUFFLE, AGGREGATE, PARALLEL, MAP, JITTER,
		TRANSFERS, SEED, OUTPUT, HELP,
	};
	static const struct option options[] = {
		{ "listen", required_argument, NULL, LISTEN },
		{ "workers", required_argument, NULL, WORKERS },
		{ "rounds", required_argument, NULL, ROUNDS },
		{ "duration", required_argument, NULL, DURATION },
		{ "distribute", required_argument, NULL, DISTRIBUTE },
		{ "shuffle", required_argument, NULL, SHUFFLE },
		{ "aggregate", required_argument, NULL, AGGREGATE },
		{ "parallel", required_argument, NULL, PARALLEL },
		{ "map", required_argument, NULL, MAP },
		{ "jitter", required_argument, NULL, JITTER },
		{ "transfers", required_argument, NULL, TRANSFERS },
		{ "seed", required_argument, NULL, SEED },
		{ "output", required_argument, NULL, OUTPUT },
		{ "help", no_argument, NULL, HELP },
		{ NULL, 0, NULL, 0 },
	};
	struct command command = { .settings = { .parallel = 5, .transfers = 100000, .seed = 1 } };
	struct settings *settings = &command.settings;
	const char *role = argc > 1 ? argv[1] : "";
	uint64_t asked = 0;
	int option;

	command.worker = strcmp(role, "worker") == 0;
	if (strcmp(role, "--help") != 0) {
		if (!command.worker && strcmp(role, "master") != 0)
			fail(EXIT_USAGE, "'%s' is no role, give worker or master first", role);
		argc--;
		argv++;
	}
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (option >= LISTEN)
			asked |= 1ULL << (option - LISTEN);
		switch (option) {
		case LISTEN:
			command.listen = (uint16_t)count_option("listen", optarg, 1, UINT16_MAX);
			break;
		case WORKERS:
			parse_workers(settings, optarg);
			command.workers = optarg;
			break;
		case ROUNDS:
			settings->rounds = count_option("rounds", optarg, 1, 1000000000);
			break;
		case DURATION:
			settings->duration = count_option("duration", optarg, 1, NS_MAX);
			break;
		case DISTRIBUTE:
			settings->distribute = count_option("distribute", optarg, 0, BYTES_MAX);
			break;
		case SHUFFLE:
			settings->shuffle = count_option("shuffle", optarg, 0, BYTES_MAX);
			break;
		case AGGREGATE:
			settings->aggregate = count_option("aggregate", optarg, 0, BYTES_MAX);
			break;
		case PARALLEL:
			settings->parallel = (uint32_t)count_option("parallel", optarg, 1, WORKERS_MAX);
			break;
		case MAP:
			settings->compute = count_option("map", optarg, 0, NS_MAX);
			break;
		case JITTER:
			settings->jitter = number_option("jitter", optarg, 0, 1);
			break;
		case TRANSFERS:
			settings->transfers = count_option("transfers", optarg, 1, 100000000);
			break;
		case SEED:
			settings->seed = count_option("seed", optarg, 0, UINT64_MAX);
			break;
		case OUTPUT:
			command.output = optarg;
			break;
		case HELP:
			fputs(help, stdout);
			close_output(stdout, NULL);
			exit(EXIT_SUCCESS);
		default:
			refuse_option(option, argv, optind, optopt);
		}
	}
	if (optind < argc)
		fail(EXIT_USAGE, "'%s' is no option, see shuffle --help", argv[optind]);
	check(&command, asked);
	return command;
}

static void write_log(FILE *file, const struct command *command, const struct result *result)
{
	const struct settings *settings = &command->settings;
	uint64_t bytes = 0;

	fprintf(file,
		"# shuffle 1 workers=%s rounds=%llu duration=%llu distribute=%llu shuffle=%llu aggregate=%llu "
		"parallel=%u",
		command->workers, (unsigned long long)settings->rounds, (unsigned long long)settings->duration,
		(unsigned long long)settings->distribute, (unsigned long long)settings->shuffle,
		(unsigned long long)settings->aggregate, settings->parallel);
	fprintf(file, " map=%llu jitter=%.12g transfers=%zu seed=%llu\n", (unsigned long long)settings->compute,
		settings->jitter, settings->transfers, (unsigned long long)settings->seed);
	fprintf(file, "# columns round step source destination bytes start_ns end_ns\n");
	for (size_t i = 0; i < result->count; i++) {
		const struct transfer *transfer = &result->log[i];
		const uint64_t row[] = { transfer->round, transfer->step,  transfer->source, transfer->destination,
					 transfer->bytes, transfer->start, transfer->end };

		write_row(file, row, 7);
		if (transfer->step != STEP_ROUND)
			bytes += transfer->bytes;
	}
	fprintf(file, "# end rows=%zu early=%d from_ns=%llu to_ns=%llu rounds=%llu bytes=%llu\n", result->count,
		result->early, (unsigned long long)result->from, (unsigned long long)result->to,
		(unsigned long long)result->rounds, (unsigned long long)bytes);
}

int main(int argc, char **argv)
{
	struct command command = parse(argc, argv);
	FILE *output;
	struct result result;

	if (command.worker) {
		run_worker(command.listen);
		return EXIT_SUCCESS;
	}
	output = open_output(command.output);
	result = run_master(&command.settings);
	write_log(output, &command, &result);
	close_output(output, command.output);
	return EXIT_SUCCESS;
}
