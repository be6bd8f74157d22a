"""Run the analysis in a process of its own, without root's rights.

The analysis needs libraries that nothing under sudo imports, and it reads programs' output, even a
stranger's.
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

from qjump_mn.cache import scratch
from qjump_mn.errors import BEGINS, LostError, MachineError, command, error_of
from qjump_mn.process import temp_dirs, unprivileged
from qjump_mn.process.die_with_parent import wrap_module
from qjump_mn.results import directory, outcome


def judge(run: Path, *options: str, verbose: bool = False) -> int:
    """Analyse the run directory, and print its summary; return the exit code of its verdicts.

    ``options`` are more options of ``python3 -m qjump_mn.analysis``. With ``verbose`` it prints
    everything. Raises the errors of :meth:`Judge.judge`.
    """
    with Judge(run, *options, verbose=verbose) as judge:
        return judge.judge()


class Judge:
    """A context manager that analyses a run directory like :func:`judge`.

    Call :meth:`call_in` while the last trials run: then its libraries are loaded when they end.
    """

    def __init__(self, run: Path, *options: str, verbose: bool = False) -> None:
        self._run = run
        more = ["--verbose"] * verbose + ["--debug"] * ("--debug" in sys.argv)
        self._words = [*options, *more]
        self._exits = ExitStack()
        self._waits: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._exits.__exit__(*error)

    def call_in(self) -> None:
        """Start the process once, without reading the run. If it cannot start, :meth:`judge`
        raises."""
        if self._waits is None:
            with suppress(MachineError, OSError):
                self._waits = self._start("--wait", stdin=subprocess.PIPE)

    def judge(self) -> int:
        """Analyse the run; return the exit code of its verdicts.

        Raises :class:`MachineError` if the user cannot read this checkout, :class:`LostError` if
        the process died early, and otherwise the error that ended it.
        """
        before = _written(self._run)
        process = self._waits or self._start()
        printed, errors = process.communicate(_START if self._waits else None)
        return _ended(self._run, process.returncode, before, printed, errors)

    def _start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        if owner := directory.owner_of(self._run):
            unprivileged.check_checkout(owner)
        # A notebook, or a test, has another sys.stdout than the descriptor that a child inherits.
        options |= {"stdout": None if _is_descriptor_1(sys.stdout) else subprocess.PIPE}
        process = judging(self._run, *words, *self._words, stderr=subprocess.PIPE, **options)
        return self._exits.enter_context(process)


_START = b"\n"
"""A process that was started with --wait begins when it reads this."""


def _ended(
    run: Path,
    status: int,
    before: tuple[int, int] | None,
    printed: bytes | None,
    error_output: bytes,
) -> int:
    """Pass on the process's output; return its exit status if its verdicts have the same."""
    if printed and sys.stdout:
        sys.stdout.write(printed.decode(errors="replace"))
    errors = error_output.decode(errors="replace")
    last = re.search(rf"^{BEGINS}(.*)\Z", errors, re.MULTILINE | re.DOTALL)
    sys.stderr.write(errors[: last.start()] if last else errors)
    if status < 0:
        raise LostError(
            f"{run}: its analysis was ended by {signal.Signals(-status).name}, perhaps for want of "
            f"memory: run  {command('report', run)}"
        )
    if last:
        raise error_of(status)(last[1].strip())
    # A library may end the process by itself: OpenBLAS does, with 1, if it gets no memory.
    if _written(run) == before or outcome.read(run).exit_code != status:
        raise LostError(
            f"{run}: its analysis ended with exit status {status} and without a verdict, perhaps "
            f"for want of memory: run  {command('report', run)}"
        )
    return status


def _written(run: Path) -> tuple[int, int] | None:
    """Return what identifies a version of the verdicts' file; None if there is none."""
    try:
        status = (run / outcome.NAME).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _is_descriptor_1(stream: TextIO) -> bool:
    try:
        return stream.fileno() == 1
    except (AttributeError, OSError, ValueError):  # it has none, or it is closed
        return False


@contextmanager
def judging(run: Path, *words: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start the process that analyses the run directory, with more ``words`` and Popen's
    ``options``.

    It runs as sudo's caller, or as the run's owner if root analyses it. It ends with this process,
    and does not receive Ctrl-C.
    """
    argv, environment = wrap_module("qjump_mn.analysis", str(run), *words)
    with ExitStack() as stack:
        # A notebook sets a backend that only the notebook's Python has.
        environment |= {"MPLBACKEND": "agg", **scratch.for_matplotlib(stack)}
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
