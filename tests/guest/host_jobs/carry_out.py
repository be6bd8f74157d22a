"""Runs in the guest: the trials of the plans, on the guest's own kernel by the host backend, in a
process of its own, as a user's command does."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import packaging.version  # noqa: F401  # Mininet needs it, and the project's environment has one of its own

from qjump_mn.backends import host_needs
from qjump_mn.backends.host import HostBackend
from qjump_mn.errors import QJumpError
from qjump_mn.model.plan import Plan
from qjump_mn.programs import registry


def main() -> int:
    """Arguments: the folder for what the trials leave, and the files of plans."""
    out, *files = map(Path, sys.argv[1:])
    try:
        for file in files:
            plan = msgspec.json.decode(file.read_bytes(), type=Plan, dec_hook=registry.decode)
            with HostBackend() as backend:
                backend.check(plan, say)
                backend.prepare(plan, say)
                for trial in plan.trials():
                    ended = backend.run(trial, out / file.stem / trial.name, say)
                    if ended.exit_code:
                        say(ended.message)
                        return ended.exit_code
    except QJumpError as error:
        say(str(error))
        return error.exit_code
    return 0


def say(line: str) -> None:
    """What is done now."""
    print(line, flush=True)


if __name__ == "__main__":
    # As in an environment that sees no packages of the system.
    sys.path.remove(host_needs.DEBIAN_PACKAGES)
    sys.exit(main())
