"""Start, await and end a trial's programs; if several fail, report the likely cause."""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from .errors import LostError
from .shell import Shell
from .steps import Finish, Start, Stop, Wait

TERMINATED = -signal.SIGTERM
SETTLE_S = 0.1
"""How long to wait after a failure for other programs to fail because of it, or before it.

A process's peers notice its end before its parent does.
"""

FIRST_NAP_S, LONGEST_NAP_S = 0.005, 0.1
"""Pauses between two checks of a condition, each of which starts a program."""


class Program:
    """A running program; it runs in the folder ``raw``, which keeps its output verbatim."""

    def __init__(self, shell: Shell, step: Start, raw: Path) -> None:
        self.step = step
        self.files = (raw / f"{step.output}.stderr", raw / step.output)
        self.process = shell.start(
            step.node, step.argv, stdout=self.files[1], stderr=self.files[0], folder=raw
        )
        self.started_s = time.monotonic()
        self._finished = False

    @property
    def failure(self) -> str:
        """How the program ended, if it ended too early or with a bad status; else empty."""
        status = self.process.poll()
        if status is None or self._finished or (self.step.itself and status in self.step.good):
            return ""
        return self.sentence(status, "" if self.step.itself else " while it was needed")

    def sentence(self, status: int, circumstance: str = "") -> str:
        """Return the sentence about a program that ended with a bad status or too early."""
        return f"{self.step.shown} ended with status {status}{circumstance}: {self.last_output()}"

    def finish(self, deadline_s: float, *, terminate: bool = False) -> None:
        """Wait for the program's end, or terminate it.

        Raises :class:`LostError` if it does not end in time, or with a bad status.
        """
        good = self.step.good
        if terminate:
            if self.failure:
                raise LostError(self.failure)
            self.process.terminate()
            good = (*good, TERMINATED)
        passed_s = 0.0 if terminate else time.monotonic() - self.started_s
        try:
            status = self.process.wait(max(0.0, deadline_s - passed_s))
        except subprocess.TimeoutExpired:
            raise LostError(
                f"{self.step.shown} did not end within {deadline_s:.0f} s: {self.last_output()}"
            ) from None
        if status not in good:
            raise LostError(self.sentence(status))
        self._finished = True
        if not self.files[0].stat().st_size:
            self.files[0].unlink()

    def kill(self) -> None:
        """Kill the program if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def last_output(self) -> str:
        """Return the last lines of standard error and output, joined into one."""
        texts = [path.read_text(errors="replace").strip() for path in self.files if path.exists()]
        joined = " | ".join(
            " / ".join(" ".join(line.split()) for line in text.splitlines()[-3:])
            for text in texts
            if text
        )
        return joined[-400:] or "it printed nothing"


class Programs(ExitStack):
    """A trial's programs, by their output file; on exit all that still run are killed."""

    def __init__(self, shell: Shell, raw: Path) -> None:
        super().__init__()
        self._shell, self._raw = shell, raw
        self._programs: dict[str, Program] = {}

    def start(self, step: Start) -> Program:
        """Start a program."""
        program = self._programs[step.output] = Program(self._shell, step, self._raw)
        self.callback(program.kill)
        return program

    def kill(self) -> None:
        """Kill all programs that run."""
        for program in list(self._programs.values()):
            program.kill()

    def wait(self, step: Wait) -> None:
        """Wait for a condition.

        Raises :class:`LostError` if it takes too long, or if the program ends before.
        """
        program = self._programs[step.program] if step.program else None
        end_s, nap_s = time.monotonic() + step.deadline_s, FIRST_NAP_S
        folder = self._raw if self._raw.is_dir() else None
        while self._shell.run(
            step.node, step.argv, folder=folder, deadline_s=step.deadline_s
        ).returncode:
            if program is not None and (status := program.process.poll()) is not None:
                raise LostError(program.sentence(status, " before it was ready"))
            if time.monotonic() > end_s:
                output = f": {program.last_output()}" if program is not None else ""
                raise LostError(f"{step.lacks} after {step.deadline_s:.0f} s{output}")
            time.sleep(nap_s)
            nap_s = min(1.5 * nap_s, LONGEST_NAP_S)

    def end(self, step: Finish | Stop) -> None:
        """Wait for a program's end, or terminate it.

        Raises :class:`LostError` if it fails; if others have failed too, about the likely cause.
        """
        program = self._programs[step.program]
        try:
            program.finish(step.deadline_s, terminate=isinstance(step, Stop))
        except LostError:
            time.sleep(SETTLE_S)
            failed = [
                other for other in self._programs.values() if other is not program and other.failure
            ]
            cause = min([program, *failed], key=_rank)
            if cause is program:
                raise
            raise LostError(cause.failure) from None


def _rank(program: Program) -> tuple[int, bool]:
    """Rank a failed program; the lower, the more likely it failed by itself.

    A signal does not come from a peer's end, a server does not fail because its client ends, and a
    program that hangs is probably waiting for another.
    """
    status = program.process.returncode
    return (2 if status is None else 0 if status < 0 else 1, program.step.itself)
