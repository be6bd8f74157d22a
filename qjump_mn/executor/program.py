"""The programs of a trial: started, waited for, ended; and which of several that failed is rather the
cause."""

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
"""Others hear that a process is gone before its parent does; this is long enough for both."""

FIRST_NAP_S, LONGEST_NAP_S = 0.005, 0.1
"""Between two tries of a condition, each of which starts a program."""


class Program:
    """A running program; its output lies in the folder ``raw``, verbatim, where it also runs."""

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
        """How it ended, if it has and should not have, or not so; else empty."""
        status = self.process.poll()
        if status is None or self._finished or (self.step.itself and status in self.step.good):
            return ""
        return self.ending(f"with status {status}{'' if self.step.itself else ' while it was needed'}")

    def ending(self, how: str) -> str:
        """The sentence for a program that ended like this."""
        return f"{self.step.shown} ended {how}: {self.last_words()}"

    def finish(self, deadline_s: float, *, terminate: bool = False) -> None:
        """Wait for the end, or bring it about; raise :class:`LostError` if it is not there in time or its
        status is not a good one."""
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
                f"{self.step.shown} did not end within {deadline_s:.0f} s: {self.last_words()}"
            ) from None
        if status not in good:
            raise LostError(self.ending(f"with status {status}"))
        self._finished = True
        if not self.files[0].stat().st_size:
            self.files[0].unlink()

    def kill(self) -> None:
        """End the program if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def last_words(self) -> str:
        """The last lines that it printed, in one."""
        texts = [path.read_text(errors="replace").strip() for path in self.files if path.exists()]
        words = " | ".join(
            " / ".join(" ".join(line.split()) for line in text.splitlines()[-3:]) for text in texts if text
        )
        return words[-400:] or "it said nothing"


class Programs(ExitStack):
    """Programs by their output, killed, whatever happens, when the trial ends."""

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
        """End all that run."""
        for program in list(self._programs.values()):
            program.kill()

    def wait(self, step: Wait) -> None:
        """Wait for a condition; raise :class:`LostError` if it takes too long, or its program ends before."""
        program = self._programs[step.program] if step.program else None
        end_s, nap_s = time.monotonic() + step.deadline_s, FIRST_NAP_S
        folder = self._raw if self._raw.is_dir() else None
        while self._shell.run(step.node, step.argv, folder=folder, deadline_s=step.deadline_s).returncode:
            if program is not None and program.process.poll() is not None:
                raise LostError(
                    program.ending(f"with status {program.process.returncode} before it was ready")
                )
            if time.monotonic() > end_s:
                words = f": {program.last_words()}" if program is not None else ""
                raise LostError(f"{step.lacks} after {step.deadline_s:.0f} s{words}")
            time.sleep(nap_s)
            nap_s = min(1.5 * nap_s, LONGEST_NAP_S)

    def end(self, step: Finish | Stop) -> None:
        """Wait for a program's end, or bring it about; if others have failed too, the error is about the one
        that is rather the cause."""
        program = self._programs[step.program]
        try:
            program.finish(step.deadline_s, terminate=isinstance(step, Stop))
        except LostError:
            time.sleep(SETTLE_S)
            failed = [other for other in self._programs.values() if other is not program and other.failure]
            cause = min([program, *failed], key=_rank)
            if cause is program:
                raise
            raise LostError(cause.failure) from None


def _rank(program: Program) -> tuple[int, bool]:
    """The lower, the less likely a failure is another's consequence: a program is killed by no peer's end, a
    server by no client's; one that hangs waits for somebody."""
    status = program.process.returncode
    return (2 if status is None else 0 if status < 0 else 1, program.step.itself)
