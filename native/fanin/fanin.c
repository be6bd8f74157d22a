/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fanin.h"

#include "../common/common.h"

const char program[] = "fanin";

int main(int argc, char **argv)
{
	static const struct role roles[] =
	    { { "send", fanin_send }, { "receive", fanin_receive }, { NULL, NULL } };

	return run_role(argc, argv, roles);
}
