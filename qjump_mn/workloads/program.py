"""A program that runs on a host of the network under test: started with its level, watched, ended."""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from qjump_mn.errors import LostError
from qjump_mn.network import commands
from qjump_mn.programs.base import WorkloadPlan
from qjump_mn.programs.launch import TERMINATED, Launch

if TYPE_CHECKING:
    from qjump_mn.network.testbed import Testbed

# The states of a socket that has been bound and waits, as /proc/net/{tcp,udp} write them: TCP_LISTEN, and TCP_CLOSE for UDP.
_WAITING = {"tcp": "0A", "udp": "07"}

SETTLE_S = 0.1
"""Others hear that a process is gone before its parent does; this is long enough for both."""


class Program:
    """A running program; its output goes to files in ``raw``, verbatim, where it also runs."""

    def __init__(self, testbed: Testbed, launch: Launch, plan: WorkloadPlan, raw: Path) -> None:
        self.launch = launch
        self.output = raw / launch.output
        self.stderr = self.output.with_name(self.output.name + ".stderr")
        argv = [*commands.qjau(plan.level, plan.window_bytes, launch.preload), *launch.argv]
        with self.output.open("wb") as stdout, self.stderr.open("wb") as stderr:
            self.process = testbed.popen(launch.host, argv, stdout=stdout, stderr=stderr, folder=raw)
        self.started = time.monotonic()
        self._finished = False

    @property
    def name(self) -> str:
        """What it is and where, for messages."""
        return f"{self.launch.program} on {self.launch.host}"

    @property
    def failure(self) -> str:
        """How it ended, if it has and should not have, or not so; else empty."""
        status = self.process.poll()
        if status is None or self._finished or (self.launch.itself and status in self.launch.good):
            return ""
        return f"{self.name} ended with status {status}{'' if self.launch.itself else ' while it was needed'}: {self._last_words()}"

    def wait_ready(self) -> None:
        """Wait until it does what its launch says makes it ready; raise :class:`LostError` if it ends before, or takes too long."""
        launch = self.launch
        end = self.started + launch.ready_s
        if not launch.listens and not launch.says:
            self.finish(launch.ready_s)
        while not self._is_ready():
            if self.process.poll() is not None:
                raise LostError(f"{self.name} ended with status {self.process.returncode} before it was ready: {self._last_words()}")
            if time.monotonic() > end:
                missing = f"does not listen on {launch.listens[0]} port {launch.listens[1]}" if launch.listens else f"has not said {launch.says!r}"
                raise LostError(f"{self.name} {missing} after {launch.ready_s:.0f} s: {self._last_words()}")
            time.sleep(0.005)

    def finish(self, margin_s: float) -> None:
        """Wait for the end, or bring it about; raise :class:`LostError` if it is not there in time or its status is not a good one."""
        launch = self.launch
        good = launch.good
        if not launch.itself:
            if self.failure:
                raise LostError(self.failure)
            self.process.send_signal(signal.SIGTERM)
            good = (*good, TERMINATED)
        try:
            status = self.process.wait(max(0.0, self.started + launch.longest_s - time.monotonic()) + margin_s)
        except subprocess.TimeoutExpired:
            raise LostError(f"{self.name} did not end within {launch.longest_s + margin_s:.0f} s: {self._last_words()}") from None
        if status not in good:
            raise LostError(f"{self.name} ended with status {status}: {self._last_words()}")
        self._finished = True
        if self.stderr.exists() and not self.stderr.stat().st_size:
            self.stderr.unlink()

    def kill(self) -> None:
        """End the program if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def _is_ready(self) -> bool:
        launch = self.launch
        if launch.listens:
            protocol, port = launch.listens
            tables = (Path(f"/proc/{self.process.pid}/net/{protocol}{family}") for family in ("", "6"))
            return any(listens(table.read_text(), protocol, port) for table in tables if table.exists())
        return not launch.says or any(launch.says in path.read_text(errors="replace") for path in (self.output, self.stderr))

    def _last_words(self) -> str:
        texts = [path.read_text(errors="replace").strip() for path in (self.stderr, self.output) if path.exists()]
        words = " | ".join(" / ".join(" ".join(line.split()) for line in text.splitlines()[-3:]) for text in texts if text)
        return words[-400:] or "it said nothing"


def listens(table: str, protocol: str, port: int) -> bool:
    """Whether the text of /proc/net/``protocol`` has a socket that waits on ``port``."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[3] == _WAITING[protocol] and int(fields[1].rsplit(":", 1)[1], 16) == port:
            return True
    return False


class Programs(ExitStack):
    """Programs that are killed, whatever happens, when the trial ends."""

    def __init__(self) -> None:
        super().__init__()
        self._all: list[Program] = []

    def start(self, testbed: Testbed, launch: Launch, plan: WorkloadPlan, raw: Path) -> Program:
        """Start a program of workload ``plan``."""
        program = Program(testbed, launch, plan, raw)
        self.callback(program.kill)
        self._all.append(program)
        return program

    def finish(self, program: Program, margin_s: float) -> None:
        """As :meth:`Program.finish`, but if others have failed too, the error is about the one that is rather the cause."""
        try:
            program.finish(margin_s)
        except LostError:
            time.sleep(SETTLE_S)
            failed = [other for other in self._all if other is not program and other.failure]
            first = min([program, *failed], key=_follows)
            if first is program:
                raise
            raise LostError(first.failure) from None


def _follows(program: Program) -> tuple[int, bool]:
    """How likely a failure is another's consequence: a program is killed by no peer's end, a server by no client's; one that hangs waits for somebody."""
    status = program.process.returncode
    return (2 if status is None else 0 if status < 0 else 1, program.launch.itself)
