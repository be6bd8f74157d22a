/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "measure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define NUMBER_BYTES 21 /* -9223372036854775808 and what follows it */
#define MOST_COLUMNS 8

static FILE *output;
static const char *output_name;

void table_allocate(struct table *table, size_t columns, size_t capacity)
{
	const size_t bytes = columns * capacity * sizeof(*table->cells);

	/* MAP_POPULATE: no page fault falls into what is measured. */
	table->cells = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (table->cells == MAP_FAILED)
		fail("no memory for a log of %zu rows (%s); ask for fewer", capacity, strerror(errno));
	table->columns = columns;
	table->capacity = capacity;
	table->rows = 0;
}

void table_full(const struct table *table)
{
	fail("the log of %zu rows is full; ask for more", table->capacity);
}

void open_output(const char *path)
{
	output = path ? fopen(path, "we") : stdout;
	output_name = path ? path : "standard output";
	if (!output)
		refuse("--output '%s' cannot be written (%s); name a file in a folder that is there", path, strerror(errno));
}

void write_start(const char *program, const char *role, const struct setting *settings)
{
	fprintf(output, "# %s 1 role=%s", program, role);
	for (; settings->kind != SETTING_END; settings++)
		if (settings->kind == SETTING_NUMBER || settings->kind == SETTING_FLAG)
			fprintf(output, " %s=%lld", settings->name, (long long)settings->number);
		else if (settings->text)
			fprintf(output, " %s=%s", settings->name, settings->text);
	fputc('\n', output);
}

/* The number in decimal, ending before end; returns where it starts. Other hosts may still measure: cheaper than printf. */
static char *put_number(char *end, int64_t number)
{
	uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;

	do
		*--end = (char)('0' + rest % 10);
	while ((rest /= 10) != 0);
	if (number < 0)
		*--end = '-';
	return end;
}

void write_table(const struct table *table, const char *columns)
{
	const int64_t *cell = table->cells;
	char line[MOST_COLUMNS * NUMBER_BYTES];

	fprintf(output, "# columns %s\n", columns);
	for (size_t row = 0; row < table->rows; row++, cell += table->columns) {
		char *start = line + sizeof(line);

		for (size_t column = table->columns; column-- > 0;) {
			*--start = column + 1 == table->columns ? '\n' : ' ';
			start = put_number(start, cell[column]);
		}
		fwrite(start, 1, (size_t)(line + sizeof(line) - start), output);
	}
}

void write_end(const struct table *table, const char *format, ...)
{
	va_list arguments;

	fprintf(output, "# end rows=%zu ", table->rows);
	va_start(arguments, format);
	vfprintf(output, format, arguments);
	va_end(arguments);
	fputc('\n', output);
	if (ferror(output) || fflush(output) != 0)
		fail("%s cannot be written (%s); make room and run it again", output_name, strerror(errno));
}
