/*
 * The settings that qjau passes to libqjau.so: three environment variables, inherited across fork
 * and exec.
 */
#ifndef QJAU_SETTINGS_H
#define QJAU_SETTINGS_H

#include <limits.h>
#include <stdbool.h>

#define QJAU_LIBRARY "libqjau.so"
#define QJAU_PRIORITY "QJAU_PRIORITY" /* 0 to 7, decimal */
#define QJAU_WINDOW "QJAU_WINDOW"     /* bytes, decimal; absent: keep the kernel's buffers */
#define QJAU_VERBOSE "QJAU_VERBOSE"   /* present: one line per socket on stderr */

#define QJAU_PRIORITY_MAX 7
#define QJAU_WINDOW_MAX (INT_MAX / 2) /* the kernel doubles it, as an int */

/* Parse a decimal number from min to max, without sign or blanks; no locale, no errno. */
static inline bool parse_number(const char *text, int min, int max, int *number)
{
	int value = 0;

	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		int digit = *text - '0';

		if (digit < 0 || digit > 9 || value > (max - digit) / 10)
			return false;
		value = 10 * value + digit;
	}
	if (value < min || value > max)
		return false;
	*number = value;
	return true;
}

#endif
