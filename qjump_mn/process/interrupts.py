"""Handle Ctrl-C and SIGTERM: end everything once, and say in one sentence how to go on."""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from qjump_mn.process.processes import stat

EXIT_CODE = 130

CLEAN_UP_S = 10.0
"""Ctrl-C again within this time would only cut the clean-up short; later, the clean-up hangs."""

_SENTENCE = "qjump-mn: interrupted; everything that was started has been ended."
_CHILDREN_S = 1.0
_AGAIN_S = 0.001
_PR_SET_CHILD_SUBREAPER = 36


class Interrupted(BaseException):
    """The user interrupted. Not a `KeyboardInterrupt`, because typer turns that into its own
    exit."""

    run: Path | None = None
    """The run directory that can be resumed."""
    repeats = False
    """Whether the same command, repeated, does only what is left."""


@contextmanager
def resumable(run: Path) -> Iterator[None]:
    """Let an interrupt within the block name the run directory that can be resumed."""
    try:
        yield
    except Interrupted as interrupted:
        interrupted.run = run
        raise


@contextmanager
def repeatable() -> Iterator[None]:
    """Let an interrupt within the block say that the same command does what is left."""
    try:
        yield
    except BaseException as error:
        if interrupted := interruption(error):
            interrupted.repeats = True
        raise


def end_at_once() -> None:
    """Until `raise_interrupted`, end at once on a signal: nothing has been started yet."""
    _handle(lambda number, frame: end(Interrupted()))


def raise_interrupted() -> None:
    """From now on a signal raises `Interrupted` in the main thread."""
    # Orphans of a killed program become our children, so that `end` finds them.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    first_s = -CLEAN_UP_S

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal first_s
        if time.monotonic() - first_s > CLEAN_UP_S:
            first_s = time.monotonic()
            raise Interrupted

    def swallowed(error: sys.UnraisableHookArgs) -> None:
        """Raise an interrupt again that Python drops in finalisers and weak-reference callbacks."""
        nonlocal first_s
        if not isinstance(error.exc_value, Interrupted):
            sys.__unraisablehook__(error)
            return
        first_s = -CLEAN_UP_S
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)

    signal.signal(signal.SIGALRM, handler)
    sys.unraisablehook = swallowed
    _handle(handler)


def interruption(error: BaseException | None) -> Interrupted | None:
    """Return the interrupt that caused an error, if any: cleaning up may raise its own errors."""
    while error is not None and not isinstance(error, Interrupted):
        error = error.__cause__ or error.__context__
    return error


def end(interrupted: Interrupted) -> NoReturn:
    """Kill all remaining children, print the sentence, and end this process."""
    _handle(signal.SIG_IGN)
    until = time.monotonic() + _CHILDREN_S
    while (children := _children()) and time.monotonic() < until:
        for pid in children:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    sentence = _SENTENCE
    if interrupted.run is not None:
        path = Path(os.path.relpath(interrupted.run))
        path = interrupted.run if ".." in path.parts else path
        sentence += f" The run is in {path}: `qjump-mn resume {shlex.quote(str(path))}` goes on."
    if interrupted.repeats:
        sentence += " The same command goes on with all experiments."
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    with suppress(OSError):
        os.write(2, f"{sentence}\n".encode())
    os._exit(EXIT_CODE)  # do not wait for a thread that hangs


def _handle(handler: object) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        # A signal that is ignored stays ignored, as Ctrl-C does for a shell's background job.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)  # type: ignore[arg-type]


def _children() -> list[int]:
    """Return the pids of this process's running children, adopted orphans included."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        fields = stat(int(folder.name))
        if fields and int(fields[1]) == os.getpid() and fields[0] not in "ZX":
            pids.append(int(folder.name))
    return pids
