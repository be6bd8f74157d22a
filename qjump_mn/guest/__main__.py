"""`python -m qjump_mn.guest build` builds all that the guest needs, `… lock` renews packages.lock from the mirror, `… debug-kernel`
builds a guest whose kernel looks for errors (docs/debug-kernel.md); all as root."""

from __future__ import annotations

import sys

from qjump_mn.errors import QJumpError
from qjump_mn.guest import debug, prepare
from qjump_mn.guest.toolbox import renew_lock


def main(arguments: list[str]) -> int:
    """Do it; returns the exit code."""
    try:
        if arguments == ["lock"]:
            renew_lock(print)
        elif arguments == ["build"]:
            print("\n".join(prepare(print).differences))
        elif arguments == ["debug-kernel"]:
            print(prepare(print, kernel_suite=debug.SUITE).kernel)
        else:
            print("usage: python -m qjump_mn.guest build | lock | debug-kernel", file=sys.stderr)
            return 2
    except QJumpError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
