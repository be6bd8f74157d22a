/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "message.h"

const char program[] = "q2pc";
const char *const transports[] = { [TCP] = "tcp", [UDP] = "udp", [BROADCAST] = "broadcast", NULL };

int main(int argc, char **argv)
{
	static const struct role roles[] = {
		{ "coordinate", q2pc_coordinate },
		{ "serve", q2pc_serve },
		{ NULL, NULL },
	};

	return run_role(argc, argv, roles);
}
