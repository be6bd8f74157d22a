/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fanin.h"

#include <string.h>

#include "../measure/measure.h"

int main(int argc, char **argv)
{
	const char *role = argc > 1 ? argv[1] : "";

	if (strcmp(role, "send") == 0)
		return fanin_send(argc - 1, argv + 1);
	if (strcmp(role, "receive") == 0)
		return fanin_receive(argc - 1, argv + 1);
	refuse("the first word is '%s'; make it send or receive, and give --help after it", role);
}
