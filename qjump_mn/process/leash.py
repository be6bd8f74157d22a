"""Start a program that dies with its parent, whatever kills the parent: `python -I -S process/leash.py
PARENT-PID CORE PROGRAM ARGUMENT…`.

The kernel sends the signal when the *thread* that started us ends (prctl(2), PR_SET_PDEATHSIG): start a
program from the thread that waits for it. This is a program of its own because code between fork and exec in
a process with threads may dead-lock; it costs 20 ms.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def leashed(argv: Sequence[str], core: int | None = None) -> list[str]:
    """The command line that starts `argv` on a leash held by the calling thread, on one core if that is
    given."""
    return [
        sys.executable,
        "-I",
        "-S",
        os.path.abspath(__file__),
        str(os.getpid()),
        "" if core is None else str(core),
        *argv,
    ]


def of_ours(module: str, *arguments: str, before: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
    """The command line that starts one of our modules on a leash, and the environment that it needs: the
    module finds what lies in the folders ``before``, then this package, wherever this process has it from,
    and nothing of the folder that it is started in, where a user may have a statistics.py."""
    package = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
    paths = [*before, package, *filter(None, [os.environ.get("PYTHONPATH")])]
    argv = leashed([sys.executable, "-P", "-m", module, *arguments])
    return argv, {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _main(parent: int, core: str, argv: list[str]) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:  # it died before the leash was on
        os.kill(os.getpid(), signal.SIGKILL)
    if core:
        os.sched_setaffinity(0, {int(core)})
        # Threads of one core that wake each other for a moment, 11 times a timer: none is to take the core
        # from the one that wakes it. 620,000 context switches become 180,000, 12.3 s become 9.5.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        os.execv(argv[0], argv)
    except OSError as error:
        sys.exit(f"{argv[0]} cannot be started: {(error.strerror or str(error)).lower()}")


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
