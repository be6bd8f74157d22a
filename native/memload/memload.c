/* SPDX-License-Identifier: GPL-2.0-or-later */
/* memload: a load on a memcached server, every request of which is logged. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "load.h"
#include "request.h"

/* A day, so that times never overflow */
#define NS_MAX (86400 * NS_PER_S)
/* Half of memcached's longest item by default; longer ones are cut into chunks there */
#define VALUE_MAX (512 << 10)
/* memcached's limit */
#define KEY_MAX 250

const char program[] = "memload";

static const char help[] =
	"usage: memload --server ADDRESS:PORT (--rate REQUESTS_PER_S | --closed) --duration NS [OPTION]...\n"
	"       memload --server ADDRESS:PORT --store [OPTION]...\n"
	"Ask a memcached server for values and store values, and log every request.\n"
	"\n"
	"  --server ADDRESS:PORT  IPv4\n"
	"  --rate R               open loop: R requests/s in total, a Poisson process\n"
	"  --closed               closed loop: a connection's next request follows its answer\n"
	"  --think NS             closed loop: after so long (0)\n"
	"  --connections N        (1)\n"
	"  --get-fraction F       the others store (0.9)\n"
	"  --key-bytes N          8 to 250 (64)\n"
	"  --value-bytes N        (1024)\n"
	"  --keys N               how many, all stored before the run (1000)\n"
	"  --store                store them, and end\n"
	"  --stored               they are stored\n"
	"  --warmup NS            load before the measured time (0)\n"
	"  --duration NS          the measured time\n"
	"  --linger NS            how long to wait for the last answers (1000000000)\n"
	"  --requests N           how many the log can hold, the warm-up's included (1000000)\n"
	"  --seed N               of arrivals, operations and keys (1)\n"
	"  --output FILE          (stdout)\n"
	"  --help                 this text\n"
	"\n"
	"Exit code: 0 done or ended by SIGTERM or SIGINT, 1 failed, 2 wrong command line. Columns: memload(1).\n";

struct command {
	struct settings settings;
	const char *server; /* as it was given */
	const char *output;
};

static struct command parse(int argc, char **argv)
{
	enum {
		SERVER = 256, RATE, CLOSED, THINK, CONNECTIONS, GET_FRACTION, KEY_BYTES, VALUE_BYTES, KEYS, STORE, STORED,
		WARMUP, DURATION, LINGER, REQUESTS, SEED, OUTPUT, HELP,
	};
	static const struct option options[] = {
		{ "server", required_argument, NULL, SERVER },
		{ "rate", required_argument, NULL, RATE },
		{ "closed", no_argument, NULL, CLOSED },
		{ "think", required_argument, NULL, THINK },
		{ "connections", required_argument, NULL, CONNECTIONS },
		{ "get-fraction", required_argument, NULL, GET_FRACTION },
		{ "key-bytes", required_argument, NULL, KEY_BYTES },
		{ "value-bytes", required_argument, NULL, VALUE_BYTES },
		{ "keys", required_argument, NULL, KEYS },
		{ "store", no_argument, NULL, STORE },
		{ "stored", no_argument, NULL, STORED },
		{ "warmup", required_argument, NULL, WARMUP },
		{ "duration", required_argument, NULL, DURATION },
		{ "linger", required_argument, NULL, LINGER },
		{ "requests", required_argument, NULL, REQUESTS },
		{ "seed", required_argument, NULL, SEED },
		{ "output", required_argument, NULL, OUTPUT },
		{ "help", no_argument, NULL, HELP },
		{ NULL, 0, NULL, 0 },
	};
	struct command command = {
		.settings = {
			.connections = 1,
			.get_fraction = 0.9,
			.key_bytes = 64,
			.value_bytes = 1024,
			.keys = 1000,
			.linger = NS_PER_S,
			.requests = 1000000,
			.seed = 1,
		},
	};
	struct settings *settings = &command.settings;
	bool closed = false, thinks = false;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		switch (option) {
		case SERVER:
			settings->server = address_option("server", optarg);
			command.server = optarg;
			break;
		case RATE:
			settings->rate = number_option("rate", optarg, 0.001, 1e7);
			break;
		case CLOSED:
			closed = true;
			break;
		case THINK:
			settings->think = count_option("think", optarg, 0, NS_MAX);
			thinks = true;
			break;
		case CONNECTIONS:
			settings->connections = (uint32_t)count_option("connections", optarg, 1, 10000);
			break;
		case GET_FRACTION:
			settings->get_fraction = number_option("get-fraction", optarg, 0, 1);
			break;
		case KEY_BYTES:
			settings->key_bytes = (uint32_t)count_option("key-bytes", optarg, KEY_DIGITS, KEY_MAX);
			break;
		case VALUE_BYTES:
			settings->value_bytes = (uint32_t)count_option("value-bytes", optarg, 0, VALUE_MAX);
			break;
		case KEYS:
			settings->keys = (uint32_t)count_option("keys", optarg, 1, 100000000);
			break;
		case STORE:
			settings->store_only = true;
			break;
		case STORED:
			settings->stored = true;
			break;
		case WARMUP:
			settings->warmup = count_option("warmup", optarg, 0, NS_MAX);
			break;
		case DURATION:
			settings->duration = count_option("duration", optarg, 1, NS_MAX);
			break;
		case LINGER:
			settings->linger = count_option("linger", optarg, 0, NS_MAX);
			break;
		case REQUESTS:
			settings->requests = count_option("requests", optarg, 1, 1000000000);
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
		fail(EXIT_USAGE, "'%s' is no option, see memload --help", argv[optind]);
	if (!command.server)
		fail(EXIT_USAGE, "there is no server, give --server ADDRESS:PORT");
	if (settings->store_only) {
		if (closed || settings->rate > 0 || settings->duration || settings->stored)
			fail(EXIT_USAGE, "--store is all that is done, leave out --stored, the loop and its duration");
		return command;
	}
	if (closed == (settings->rate > 0))
		fail(EXIT_USAGE, "there are an open and a closed loop, give one of --rate and --closed");
	if (thinks && !closed)
		fail(EXIT_USAGE, "--think belongs to the closed loop, leave it out or give --closed");
	if (!settings->duration)
		fail(EXIT_USAGE, "there is no duration, give --duration in nanoseconds");
	return command;
}

static void write_log(FILE *file, const struct command *command, const struct result *result)
{
	const struct settings *settings = &command->settings;
	uint64_t rows = 0, sent = 0, gets = 0, outcomes[STATUS_NONE + 1] = { 0 };

	fprintf(file,
		"# memload 1 server=%s loop=%s rate=%.12g think=%llu connections=%u get_fraction=%.12g key_bytes=%u "
		"value_bytes=%u keys=%u",
		command->server, settings->rate > 0 ? "open" : "closed", settings->rate,
		(unsigned long long)settings->think, settings->connections, settings->get_fraction, settings->key_bytes,
		settings->value_bytes, settings->keys);
	fprintf(file, " warmup=%llu duration=%llu linger=%llu requests=%zu seed=%llu\n",
		(unsigned long long)settings->warmup, (unsigned long long)settings->duration,
		(unsigned long long)settings->linger, settings->requests, (unsigned long long)settings->seed);
	fprintf(file, "# columns due_ns sent_ns done_ns op connection status\n");
	for (size_t i = 0; i < result->count; i++) {
		const struct request *request = &result->log[i];
		const uint64_t row[] = { request->due, request->sent,	    request->done,
					 request->op,  request->connection, request->status };

		if (request->due < result->from)
			continue;
		write_row(file, row, 6);
		rows++;
		sent += request->sent != 0;
		gets += request->op == OP_GET;
		outcomes[request->status]++;
	}
	fprintf(file,
		"# end rows=%llu early=%d from_ns=%llu to_ns=%llu sent=%llu answered=%llu gets=%llu misses=%llu "
		"errors=%llu\n",
		(unsigned long long)rows, result->early, (unsigned long long)result->from,
		(unsigned long long)result->to, (unsigned long long)sent,
		(unsigned long long)(rows - outcomes[STATUS_NONE]), (unsigned long long)gets,
		(unsigned long long)outcomes[STATUS_MISS], (unsigned long long)outcomes[STATUS_ERROR]);
}

int main(int argc, char **argv)
{
	struct command command = parse(argc, argv);
	FILE *output = open_output(command.output);
	struct result result = run_load(&command.settings);

	write_log(output, &command, &result);
	close_output(output, command.output);
	return EXIT_SUCCESS;
}
