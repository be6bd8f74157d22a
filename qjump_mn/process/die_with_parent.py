"""Start programs that die with their parent, whatever kills the parent.

The kernel sends the signal when the *thread* that started the program ends (prctl(2),
PR_SET_PDEATHSIG), so start it from the thread that waits for it. util-linux programs ask for the
signal: Python code that runs between fork and exec may deadlock in a process with threads.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Sequence

from qjump_mn.errors import MachineError

PROGRAMS = ("setpriv", "taskset", "chrt")
"""The util-linux programs that are needed."""

_PARENT_LIVES = '[ "$PPID" = "$1" ] && shift && exec "$@"'
"""Start nothing if the parent died before the signal was set: it would never be sent."""


def wrap_command(argv: Sequence[str], core: int | None = None) -> list[str]:
    """Return the command line that starts `argv` so that it dies with the calling thread.

    The program stays on `core`, if that is given. Raises MachineError if util-linux is missing.
    """
    guard = [_program("setpriv"), "--pdeathsig", "KILL", "/bin/sh", "-c", _PARENT_LIVES, "sh"]
    guard.append(str(os.getpid()))
    if core is not None:
        # The threads on this core wake each other 11 times a timer. With SCHED_BATCH a woken thread
        # does not preempt its waker: 180,000 context switches instead of 620,000, 9.5 s instead of
        # 12.3 s.
        guard += [_program("taskset"), "--cpu-list", str(core), _program("chrt"), "--batch", "0"]
    return [*guard, *argv]


def wrap_module(
    module: str, *arguments: str, before: Sequence[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment that start one of our modules in the same way.

    The module imports from the folders ``before``, then from where this process has this package.
    It imports nothing from the current folder, where a user may have a statistics.py.
    """
    package = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
    paths = [*before, package, *filter(None, [os.environ.get("PYTHONPATH")])]
    argv = wrap_command([sys.executable, "-P", "-m", module, *arguments])
    return argv, {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def missing() -> list[str]:
    """Return the names of the programs that are not installed."""
    return [name for name in PROGRAMS if not _path(name)]


def _program(name: str) -> str:
    if path := _path(name):
        return path
    raise MachineError(f"{name} is not installed: install util-linux")


@functools.cache
def _path(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/bin:/bin")
