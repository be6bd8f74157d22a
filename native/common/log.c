/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common.h"

#define NUMBER_BYTES 21 /* up to 18446744073709551615, which a peer may send, and a separator */
#define MAX_COLUMNS 8

static FILE *output;
static const char *output_path;

__attribute__((noreturn)) static void fail_output(void)
{
	fail("cannot write %s%s (%s), make room or name another file",
	    output_path ? "--output " : "standard output",
	     output_path ? output_path : "", strerror(errno));
}

void open_output(const char *path)
{
	output = path ? fopen(path, "we") : stdout;
	output_path = path;
	if (!output)
		fail_output();
}

void write_start(const char *role, const struct setting *settings, const char *columns)
{
	fprintf(output, "# %s 1", program);
	if (role)
		fprintf(output, " role=%s", role);
	for (; settings->kind != SETTING_END; settings++)
		if (settings->kind == SETTING_NUMBER || settings->kind == SETTING_FLAG)
			fprintf(output, " %s=%lld", settings->name, (long long)settings->number);
		else if (settings->kind == SETTING_REAL)
			fprintf(output, " %s=%.12g", settings->name, settings->real.value);
		else if (settings->text && settings->kind != SETTING_OUTPUT)
			fprintf(output, " %s=%s", settings->name, settings->text);
	fprintf(output, "\n# columns %s\n", columns);
}

/* Write number in decimal so that it ends before end; return its start. */
static char *put_number(char *end, int64_t number)
{
	uint64_t rest = (uint64_t)number;

	do
		*--end = (char)('0' + rest % 10);
	while ((rest /= 10) != 0);
	return end;
}

void write_row(const int64_t *cells, size_t count)
{
	char line[MAX_COLUMNS * NUMBER_BYTES], *start = line + sizeof(line);

	for (size_t i = count; i-- > 0;) {
		*--start = i + 1 == count ? '\n' : ' ';
		start = put_number(start, cells[i]);
	}
	fwrite_unlocked(start, 1, (size_t)(line + sizeof(line) - start), output);
}

void write_end(size_t rows, bool early, const struct total *totals)
{
	bool bad;

	fprintf(output, "# end rows=%zu early=%d", rows, early);
	for (; totals->name; totals++)
		fprintf(output, " %s=%lld", totals->name, (long long)totals->value);
	fputc('\n', output);
	bad = ferror(output);
	if (fclose(output) || bad)
		fail_output();
}

void table_allocate(struct table *table, size_t columns, size_t capacity)
{
	*table = (struct table){ allocate(capacity, columns * sizeof(*table->cells)), columns, capacity, 0 };
}

int64_t *table_row(struct table *table, const char *option)
{
	if (table->rows == table->capacity)
		fail("the log of %zu rows is full; increase it with --%s", table->capacity, option);
	return table->cells + table->columns * table->rows++;
}

void write_table(const struct table *table)
{
	for (size_t row = 0; row < table->rows; row++)
		write_row(table->cells + row * table->columns, table->columns);
}

void *allocate(size_t count, size_t size)
{
	size_t bytes;
	void *memory = MAP_FAILED;

	errno = ENOMEM;
	if (!__builtin_mul_overflow(count, size, &bytes) && bytes < SIZE_MAX / 2)
		memory = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		    -1,
			      0);
	if (memory == MAP_FAILED)
		fail("cannot allocate %zu times %zu bytes (%s), ask for less", count, size, strerror(errno));
	return memory;
}
