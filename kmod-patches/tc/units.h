/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parse and print numbers with units without loss: tc's own helpers round rates
 * to whole bytes per second, and differ between versions of tc. The mantissa of
 * a long double has at least 64 bits (x86, arm64), enough for the largest value;
 * 19 digits distinguish every ns in 292 years.
 */
#ifndef UNITS_H
#define UNITS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

struct unit {
	const char *name;
	double	factor;
};

static const struct unit time_units[] = {	/* ns; a unit is required */
	{ "s", 1e9 }, { "sec", 1e9 }, { "ms", 1e6 }, { "msec", 1e6 },
	{ "us", 1e3 }, { "usec", 1e3 }, { "ns", 1 }, { "nsec", 1 }, { NULL, 0 }
};

static const struct unit rate_units[] = {	/* bit/s */
	{ "", 1 }, { "bit", 1 }, { "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 },
	{ "tbit", 1e12 }, { NULL, 0 }
};

static const struct unit size_units[] = {	/* bytes; as in tc, k is 1024 */
	{ "", 1 }, { "b", 1 }, { "k", 1024 }, { "kb", 1024 },
	{ "m", 1048576 }, { "mb", 1048576 }, { NULL, 0 }
};

static inline int unit_parse(const char *option, const struct unit *units, long double max,
			     const char *arg, uint64_t *value)
{
	long double x;
	const struct unit *u;
	char *end;

	x = strtold(arg, &end);
	for (u = units; u->name; u++) {
		if (end == arg || strcasecmp(end, u->name))
			continue;
		x *= u->factor;
		if (!(x >= 0 && x <= max))
			break;
		*value = llroundl(x);
		return 0;
	}
	fprintf(stderr, "invalid value \"%s\" for \"%s\"", arg, option);
	for (u = units; u->name; u++)
		fprintf(stderr, "%s%s", u == units ? ": give a number of " : " ",
			*u->name ? u->name : "(no unit)");
	fprintf(stderr, ", at most %.19Lg\n", max);
	return -1;
}

static inline int parse_time(const char *option, const char *arg, uint64_t *ns)
{
	return unit_parse(option, time_units, INT64_MAX, arg, ns);
}

static inline int parse_rate(const char *option, const char *arg, uint64_t *bps)
{
	return unit_parse(option, rate_units, INT64_MAX, arg, bps);
}

static inline int parse_size(const char *option, const char *arg, uint32_t *bytes)
{
	uint64_t value;
	int err = unit_parse(option, size_units, UINT32_MAX, arg, &value);

	if (!err)
		*bytes = value;
	return err;
}

static inline int parse_number(const char *option, const char *arg, uint64_t *number)
{
	static const struct unit none[] = { { "", 1 }, { NULL, 0 } };

	return unit_parse(option, none, INT64_MAX, arg, number);
}

static inline const char *format_time(char buf[40], uint64_t ns)
{
	if (ns >= 1000000000)
		snprintf(buf, 40, "%.19Lgs", ns / 1e9L);
	else if (ns >= 1000000)
		snprintf(buf, 40, "%.19Lgms", ns / 1e6L);
	else if (ns >= 1000)
		snprintf(buf, 40, "%.19Lgus", ns / 1e3L);
	else
		snprintf(buf, 40, "%gns", (double)ns);
	return buf;
}

static inline const char *format_rate(char buf[40], uint64_t bps)
{
	if (bps >= 1000000000)
		snprintf(buf, 40, "%.19LgGbit", bps / 1e9L);
	else if (bps >= 1000000)
		snprintf(buf, 40, "%.19LgMbit", bps / 1e6L);
	else if (bps >= 1000)
		snprintf(buf, 40, "%.19LgKbit", bps / 1e3L);
	else
		snprintf(buf, 40, "%gbit", (double)bps);
	return buf;
}

#endif
