"""Start programs that die with their parent, whatever kills the parent.

The kernel sends the signal when the *thread* that started the program ends (prctl(2), PR_SET_PDEATHSIG), so
start it from the thread that waits for it. Programs of util-linux set that, for code between fork and exec in
a process with threads may dead-lock.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Sequence

from qjump_mn.errors import MachineError

PROGRAMS = ("setpriv", "taskset", "chrt")
"""Those of util-linux that are needed."""

_PARENT_LIVES = '[ "$PPID" = "$1" ] && shift && exec "$@"'
"""A parent that died before the signal was set would never send it."""


def leashed(argv: Sequence[str], core: int | None = None) -> list[str]:
    """The command line that starts `argv` so that it dies with the calling thread, on one core if that is
    given. Raises MachineError where util-linux is missing."""
    guard = [_program("setpriv"), "--pdeathsig", "KILL", "/bin/sh", "-c", _PARENT_LIVES, "sh"]
    guard.append(str(os.getpid()))
    if core is not None:
        # Threads of one core that wake each other for a moment, 11 times a timer: none is to take the core
        # from the one that wakes it. 620,000 context switches become 180,000, 12.3 s become 9.5.
        guard += [_program("taskset"), "--cpu-list", str(core), _program("chrt"), "--batch", "0"]
    return [*guard, *argv]


def of_ours(module: str, *arguments: str, before: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
    """The command line that starts one of our modules on a leash, and the environment that it needs.

    The module finds what lies in the folders ``before``, then this package, wherever this process has it
    from, and nothing of the folder that it is started in, where a user may have a statistics.py.
    """
    package = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
    paths = [*before, package, *filter(None, [os.environ.get("PYTHONPATH")])]
    argv = leashed([sys.executable, "-P", "-m", module, *arguments])
    return argv, {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def missing() -> list[str]:
    """Which of the programs are not installed."""
    return [name for name in PROGRAMS if not _path(name)]


def _program(name: str) -> str:
    if path := _path(name):
        return path
    raise MachineError(f"{name} is not installed: install util-linux")


@functools.cache
def _path(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/bin:/bin")
