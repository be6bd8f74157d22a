"""The analysis of a run in a process of its own, without root's rights.

It needs libraries that nothing under sudo imports, and reads what programs have left, a stranger's too.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TextIO

from qjump_mn.errors import BEGINS, LostError, MachineError, command, error_of
from qjump_mn.process import temp_dirs, unprivileged
from qjump_mn.process.die_with_parent import wrap_module
from qjump_mn.results import directory, outcome


def judge(run: Path, *, pdf: bool = False, verbose: bool = False) -> int:
    """Judge the run directory and print its summary, with ``verbose`` everything; return the exit code of
    the verdicts. With ``pdf`` a browser prints the report. Raises what :meth:`Judge.judge` raises."""
    with Judge(run, pdf=pdf, verbose=verbose) as judge:
        return judge.judge()


class Judge:
    """Judges a run directory, as :func:`judge` does: a context manager. :meth:`call_in` while the last trials
    run, so that what it needs is loaded by the time that they have ended."""

    def __init__(self, run: Path, *, pdf: bool = False, verbose: bool = False) -> None:
        self._run = run
        self._words = ["--pdf"] * pdf + ["--verbose"] * verbose + ["--debug"] * ("--debug" in sys.argv)
        self._exits = ExitStack()
        self._waits: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._exits.__exit__(*error)

    def call_in(self) -> None:
        """Start the process, unless that was done: it reads nothing of the run yet. What is in the way is an
        error of :meth:`judge`."""
        if self._waits is None:
            with suppress(MachineError, OSError):
                self._waits = self._start("--told", stdin=subprocess.PIPE)

    def judge(self) -> int:
        """The exit code of the verdicts. Raises :class:`MachineError` where its user cannot read this
        checkout, :class:`LostError` if the process died before it had judged the run, and what ended it as an
        error of its kind."""
        before = _written(self._run)
        process = self._waits or self._start()
        printed, said = process.communicate(_TOLD if self._waits else None)
        return _ended(self._run, process.returncode, before, printed, said)

    def _start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        if owner := directory.owner_of(self._run):
            unprivileged.check_checkout(owner)
        # A notebook, or a test, has another sys.stdout than the descriptor that a child inherits.
        options |= {"stdout": None if _is_descriptor_1(sys.stdout) else subprocess.PIPE}
        process = judging(self._run, *words, *self._words, stderr=subprocess.PIPE, **options)
        return self._exits.enter_context(process)


_TOLD = b"\n"
"""A process that was started with --told begins with this."""


def _ended(run: Path, status: int, before: tuple[int, int] | None, printed: bytes | None, said: bytes) -> int:
    """Pass on what the process said; its exit status, if that is its verdicts'."""
    if printed and sys.stdout:
        sys.stdout.write(printed.decode(errors="replace"))
    errors = said.decode(errors="replace")
    last = re.search(rf"^{BEGINS}(.*)\Z", errors, re.MULTILINE | re.DOTALL)
    sys.stderr.write(errors[: last.start()] if last else errors)
    if status < 0:
        raise LostError(
            f"{run}: its analysis was ended by {signal.Signals(-status).name}, perhaps for want of memory: "
            f"run  {command('report', run)}"
        )
    if last:
        raise error_of(status)(last[1].strip())
    # A library may end the process by itself: OpenBLAS does, with 1, if it gets no memory.
    if _written(run) == before or outcome.read(run).exit_code != status:
        raise LostError(
            f"{run}: its analysis ended with exit status {status} and without a verdict, perhaps for want of "
            f"memory: run  {command('report', run)}"
        )
    return status


def _written(run: Path) -> tuple[int, int] | None:
    """What tells one writing of the verdicts from the next; None if there are none."""
    try:
        found = (run / outcome.NAME).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _is_descriptor_1(stream: TextIO) -> bool:
    try:
        return stream.fileno() == 1
    except (AttributeError, OSError, ValueError):  # it has none, or it is closed
        return False


@contextmanager
def judging(run: Path, *words: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The process that judges the run directory, started with more ``words`` on its command line and Popen's
    ``options``. Under sudo it is the caller's, and root's analysis of somebody's run is its owner's. It ends
    with this process, and hears no Ctrl-C itself."""
    argv, environment = wrap_module("qjump_mn.analysis", str(run), *words)
    with ExitStack() as stack:
        # A notebook's backend is a module that the notebook's Python has.
        environment |= {"MPLBACKEND": "agg", **temp_dirs.for_matplotlib(stack)}
        if owner := directory.owner_of(run):
            options |= {"user": owner.user, "group": owner.group, "extra_groups": []}
            # matplotlib wants to write, and root's home is not the owner's.
            home = stack.enter_context(temp_dirs.folder())
            directory.hand_over(Path(home), owner)
            environment |= {"MPLCONFIGDIR": home, "HOME": home}
        process = stack.enter_context(
            subprocess.Popen(argv, start_new_session=True, env=environment, **options)
        )
        try:
            yield process
        except BaseException:
            process.kill()
            raise
