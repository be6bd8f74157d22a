/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "message.h"

enum transport parse_transport(const char *name)
{
	if (strcmp(name, "tcp") == 0)
		return TCP;
	if (strcmp(name, "udp") == 0)
		return UDP;
	if (strcmp(name, "broadcast") == 0)
		return BROADCAST;
	refuse("--transport '%s' is not known; make it tcp, udp or broadcast", name);
}

int main(int argc, char **argv)
{
	const char *role = argc > 1 ? argv[1] : "";

	if (strcmp(role, "coordinate") == 0)
		return q2pc_coordinate(argc - 1, argv + 1);
	if (strcmp(role, "serve") == 0)
		return q2pc_serve(argc - 1, argv + 1);
	refuse("the first word is '%s'; make it coordinate or serve, and give --help after it", role);
}
