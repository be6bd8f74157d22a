/* SPDX-License-Identifier: GPL-2.0-or-later */
/* shuffle: generate the traffic of a MapReduce job, between a master and workers. */
#include <stdlib.h>
#include <string.h>

#include "shuffle.h"

const char program[] = "shuffle";

static const char worker_help[] =
	"usage: shuffle worker --listen PORT\n"
	"  --listen PORT          where it waits for a master and for other workers\n"
	"  --help                 this text\n"
	"Ends on SIGTERM. See shuffle(1).\n";

static struct setting worker_settings[] = {
	{ "listen", SETTING_NUMBER, 0, 1, UINT16_MAX, .required = true },
	{ .kind = SETTING_END },
};

static const char master_help[] =
	"usage: shuffle master --workers ADDRESS:PORT,... (--rounds N | --duration NS) [OPTION]...\n"
	"Make the traffic of a MapReduce job, in rounds: the master distributes data to the workers, they compute, "
	"shuffle data among\n"
	"them, compute, and give results back to the master. Every copy is logged, by the master.\n"
	"\n"
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

enum {
	WORKERS, ROUNDS, DURATION, DISTRIBUTE, SHUFFLE, AGGREGATE, PARALLEL, MAP, JITTER, TRANSFERS, SEED,
	    OUTPUT,
};

static struct sockaddr_in addresses[WORKERS_MAX];

static struct setting settings[] = {
	[WORKERS] = { "workers", SETTING_ADDRESSES, .max = WORKERS_MAX, .addresses = addresses,
	    .required = true },
	[ROUNDS] = { "rounds", SETTING_NUMBER, 0, 1, 1000000000 },
	[DURATION] = { "duration", SETTING_NUMBER, 0, 1, MAX_NS },
	[DISTRIBUTE] = { "distribute", SETTING_NUMBER, 0, 0, BYTES_MAX },
	[SHUFFLE] = { "shuffle", SETTING_NUMBER, 0, 0, BYTES_MAX },
	[AGGREGATE] = { "aggregate", SETTING_NUMBER, 0, 0, BYTES_MAX },
	[PARALLEL] = { "parallel", SETTING_NUMBER, 5, 1, WORKERS_MAX },
	[MAP] = { "map", SETTING_NUMBER, 0, 0, MAX_NS },
	[JITTER] = { "jitter", SETTING_REAL, .real = { 0, 0, 1 } },
	[TRANSFERS] = { "transfers", SETTING_NUMBER, 100000, 1, 100000000 },
	[SEED] = { "seed", SETTING_NUMBER, 1, 0, INT64_MAX },
	[OUTPUT] = { "output", SETTING_OUTPUT },
	{ .kind = SETTING_END },
};

static struct settings job_settings(void)
{
	struct settings job = {
		.count = (uint32_t)settings[WORKERS].number,
		.rounds = settings[ROUNDS].number,
		.duration = settings[DURATION].number,
		.distribute = settings[DISTRIBUTE].number,
		.shuffle = settings[SHUFFLE].number,
		.aggregate = settings[AGGREGATE].number,
		.parallel = (uint32_t)settings[PARALLEL].number,
		.compute = settings[MAP].number,
		.jitter = settings[JITTER].real.value,
		.seed = (uint64_t)settings[SEED].number,
		.transfers = (size_t)settings[TRANSFERS].number,
	};

	memcpy(job.workers, addresses, sizeof(addresses));
	return job;
}

static void check(const struct settings *job)
{
	if (!job->rounds && !job->duration)
		refuse("give --rounds, --duration or both");
	if (!job->distribute && !job->aggregate && (!job->shuffle || job->count == 1))
		refuse("there is nothing to copy, give --distribute, --shuffle or --aggregate");
	if (!job->duration && job->rounds * rows_per_round(job) > (int64_t)job->transfers)
		refuse("--transfers is %zu, too few for %lld rounds, give %lld", job->transfers,
		    (long long)job->rounds,
		       (long long)(job->rounds * rows_per_round(job)));
}

static void write_log(const struct result *result)
{
	int64_t bytes = 0;

	write_start("master", settings, "round step source destination bytes start_ns end_ns");
	for (size_t i = 0; i < result->count; i++) {
		const struct transfer *transfer = &result->log[i];
		const int64_t row[] = { transfer->round, transfer->step,  transfer->source, transfer->destination,
					transfer->bytes, transfer->start, transfer->end };

		write_row(row, 7);
		if (transfer->step != STEP_ROUND)
			bytes += transfer->bytes;
	}
	write_end(result->count, result->early,
		  (const struct total[]){ { "from_ns", result->from },
					  { "to_ns", result->to },
					  { "rounds", result->rounds },
					  { "bytes", bytes },
					  { NULL, 0 } });
}

static int worker(int argc, char **argv)
{
	read_options(argc, argv, worker_settings, worker_help);
	run_worker((uint16_t)worker_settings[0].number);
	return EXIT_SUCCESS;
}

static int master(int argc, char **argv)
{
	struct settings job;
	struct result result;

	read_options(argc, argv, settings, master_help);
	job = job_settings();
	check(&job);
	open_output(settings[OUTPUT].text);
	result = run_master(&job);
	write_log(&result);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static const struct role roles[] = { { "worker", worker }, { "master", master }, { NULL, NULL } };

	return run_role(argc, argv, roles);
}
