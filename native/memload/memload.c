/* SPDX-License-Identifier: GPL-2.0-or-later */
/* memload: load a memcached server and log every request. */
#include <stdlib.h>

#include "../common/common.h"
#include "load.h"
#include "request.h"

/* Half of memcached's default item size; it splits larger items into chunks. */
#define VALUE_MAX (512 << 10)
/* The limit of memcached. */
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

enum {
	SERVER, RATE, CLOSED, THINK, CONNECTIONS, GET_FRACTION, KEY_BYTES, VALUE_BYTES, KEYS, STORE,
	    STORED, WARMUP,
	DURATION, LINGER, REQUESTS, SEED, OUTPUT,
};

static struct sockaddr_in server;

static struct setting settings[] = {
	[SERVER] = { "server", SETTING_ADDRESSES, .max = 1, .addresses = &server, .required = true },
	[RATE] = { "rate", SETTING_REAL, .real = { 0, 0.001, 1e7 } },
	[CLOSED] = { "closed", SETTING_FLAG },
	[THINK] = { "think", SETTING_NUMBER, 0, 0, MAX_NS },
	[CONNECTIONS] = { "connections", SETTING_NUMBER, 1, 1, 10000 },
	[GET_FRACTION] = { "get-fraction", SETTING_REAL, .real = { 0.9, 0, 1 } },
	[KEY_BYTES] = { "key-bytes", SETTING_NUMBER, 64, KEY_DIGITS, KEY_MAX },
	[VALUE_BYTES] = { "value-bytes", SETTING_NUMBER, 1024, 0, VALUE_MAX },
	[KEYS] = { "keys", SETTING_NUMBER, 1000, 1, 100000000 },
	[STORE] = { "store", SETTING_FLAG },
	[STORED] = { "stored", SETTING_FLAG },
	[WARMUP] = { "warmup", SETTING_NUMBER, 0, 0, MAX_NS },
	[DURATION] = { "duration", SETTING_NUMBER, 0, 1, MAX_NS },
	[LINGER] = { "linger", SETTING_NUMBER, NS_PER_S, 0, MAX_NS },
	[REQUESTS] = { "requests", SETTING_NUMBER, 1000000, 1, 1000000000 },
	[SEED] = { "seed", SETTING_NUMBER, 1, 0, INT64_MAX },
	[OUTPUT] = { "output", SETTING_OUTPUT },
	{ .kind = SETTING_END },
};

static void check_settings(void)
{
	static const int not_with_store[] =
	    { RATE, CLOSED, THINK, GET_FRACTION, STORED, WARMUP, DURATION, LINGER };

	if (settings[STORE].number) {
		for (size_t i = 0; i < sizeof(not_with_store) / sizeof(not_with_store[0]); i++)
			if (settings[not_with_store[i]].text)
				refuse("--store excludes --%s", settings[not_with_store[i]].name);
		return;
	}
	if (!settings[CLOSED].number == !settings[RATE].text)
		refuse("give either --rate (open loop) or --closed");
	if (settings[THINK].text && !settings[CLOSED].number)
		refuse("--think needs --closed");
	if (!settings[DURATION].text)
		refuse("--duration is required");
}

static struct settings load_settings(void)
{
	return (struct settings){
		.server = server,
		.connections = (uint32_t)settings[CONNECTIONS].number,
		.rate = settings[RATE].real.value,
		.think = settings[THINK].number,
		.get_fraction = settings[GET_FRACTION].real.value,
		.key_bytes = (uint32_t)settings[KEY_BYTES].number,
		.value_bytes = (uint32_t)settings[VALUE_BYTES].number,
		.keys = (uint32_t)settings[KEYS].number,
		.store_only = settings[STORE].number,
		.stored = settings[STORED].number,
		.warmup = settings[WARMUP].number,
		.duration = settings[DURATION].number,
		.linger = settings[LINGER].number,
		.seed = (uint64_t)settings[SEED].number,
		.requests = (size_t)settings[REQUESTS].number,
	};
}

static void write_log(const struct result *result)
{
	int64_t rows = 0, sent = 0, gets = 0, outcomes[STATUS_BROKEN + 1] = { 0 };

	write_start(NULL, settings, "due_ns sent_ns done_ns op connection status");
	for (size_t i = 0; i < result->count; i++) {
		const struct request *request = &result->log[i];
		const int64_t row[] = { request->due, request->sent,	   request->done,
					request->op,  request->connection, request->status };

		if (request->due < result->from)
			continue;
		write_row(row, 6);
		rows++;
		sent += request->sent != 0;
		gets += request->op == OP_GET;
		outcomes[request->status]++;
	}
	write_end((size_t)rows, result->early,
		  (const struct total[]){ { "from_ns", result->from },
					  { "to_ns", result->to },
					  { "sent", sent },
					  { "answered", rows - outcomes[STATUS_NONE] - outcomes[STATUS_BROKEN] },
					  { "gets", gets },
					  { "misses", outcomes[STATUS_MISS] },
					  { "errors", outcomes[STATUS_ERROR] },
					  { NULL, 0 } });
}

int main(int argc, char **argv)
{
	struct settings load;
	struct result result;

	read_options(argc, argv, settings, help);
	check_settings();
	open_output(settings[OUTPUT].text);
	load = load_settings();
	result = run_load(&load);
	write_log(&result);
	return EXIT_SUCCESS;
}
