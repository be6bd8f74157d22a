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

if TYPE_CHECKING:
    from qjump_mn.network.testbed import Testbed

_LISTEN = "0A"  # TCP_LISTEN, as /proc/net/tcp writes it


class Program:
    """A running program; its output goes to files in the trial's ``raw`` folder, verbatim."""

    def __init__(self, testbed: Testbed, host: str, argv: list[str], output: Path, *, level: int, window_bytes: int | None, preload: str | None = None) -> None:
        self.host, self.argv, self.output = host, argv, output
        self.stderr = output.with_name(output.name + ".stderr")
        with output.open("wb") as stdout, self.stderr.open("wb") as stderr:
            self.process = testbed.popen(host, [*commands.qjau(level, window_bytes, preload), *argv], stdout=stdout, stderr=stderr)

    @property
    def name(self) -> str:
        """What it is and where, for messages."""
        return f"{self.argv[0]} on {self.host}"

    def finish(self, deadline_s: float, *, good: tuple[int, ...] = (0,)) -> None:
        """Wait for the end; raise :class:`LostError` if it takes longer than ``deadline_s`` or its exit status is not in ``good``."""
        try:
            status = self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise LostError(f"{self.name} did not end within {deadline_s:.0f} s: {self._last_words()}") from None
        if status not in good:
            raise LostError(f"{self.name} ended with status {status}: {self._last_words()}")
        if not self.stderr.stat().st_size:
            self.stderr.unlink()

    def wait_listening(self, port: int, deadline_s: float = 20.0) -> None:
        """Wait until the program's host listens on TCP ``port``."""
        end = time.monotonic() + deadline_s
        table = Path(f"/proc/{self.process.pid}/net")
        while True:
            if self.process.poll() is not None:
                raise LostError(f"{self.name} ended with status {self.process.returncode} before it listened: {self._last_words()}")
            if any(listens(path.read_text(), port) for path in (table / "tcp", table / "tcp6") if path.exists()):
                return
            if time.monotonic() > end:
                raise LostError(f"{self.name} does not listen on port {port} after {deadline_s:.0f} s: {self._last_words()}")
            time.sleep(0.005)

    def kill(self) -> None:
        """End the program if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def _last_words(self) -> str:
        texts = [path.read_text(errors="replace").strip() for path in (self.stderr, self.output) if path.exists()]
        words = " | ".join(" / ".join(text.splitlines()[-3:]) for text in texts if text)
        return words[-400:] or "it said nothing"


def listens(table: str, port: int) -> bool:
    """Whether /proc/net/tcp's text has a listener on ``port``."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[3] == _LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == port:
            return True
    return False


class Programs(ExitStack):
    """Programs that are killed, whatever happens, when the trial ends."""

    def start(self, testbed: Testbed, host: str, argv: list[str], output: Path, *, level: int, window_bytes: int | None, preload: str | None = None) -> Program:
        """Start a program; see :class:`Program`."""
        program = Program(testbed, host, argv, output, level=level, window_bytes=window_bytes, preload=preload)
        self.callback(program.kill)
        return program
