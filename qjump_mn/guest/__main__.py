"""`python -m qjump_mn.guest build` builds all that the guest needs, `… lock` renews packages.lock from the
mirror, `… debug-kernel` builds a guest whose kernel looks for errors (docs/debug-kernel.md), `… package
[FOLDER]` puts the Debian package of kmod-patches into the folder; all as root."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from qjump_mn.errors import QJumpError
from qjump_mn.guest import debian, debug, prepare
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
        elif arguments[:1] == ["package"] and len(arguments) <= 2 and "--help" not in arguments:
            print(shutil.copy(debian.package(print), Path(*arguments[1:])))
        else:
            print(
                "usage: python -m qjump_mn.guest build | lock | debug-kernel | package [FOLDER]",
                file=sys.stderr,
            )
            return 2
    except QJumpError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
