"""How a step reaches a node: a network namespace of this machine, which ``ip netns`` knows. For nodes that
are reached in another way, such as by ssh, a subclass would override these two methods."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .steps import MACHINE


class Process(subprocess.Popen[bytes]):
    """A process that is waited for without looking whether it has ended, as Popen does where there is a
    timeout: every 50 ms, which is half a measurement at 10 Gb/s."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status; raise subprocess.TimeoutExpired where it has none in time."""
        if timeout is not None and self.poll() is None:
            descriptor = os.pidfd_open(self.pid)
            try:
                ended = select.poll()
                ended.register(descriptor, select.POLLIN)
                if not ended.poll(max(0.0, timeout) * 1e3):
                    raise subprocess.TimeoutExpired(self.args, timeout)
            finally:
                os.close(descriptor)
        return super().wait()


class Shell:
    """Runs commands on nodes, by the nodes' names."""

    def run(
        self,
        node: str,
        argv: Sequence[str],
        *,
        stdin: str = "",
        folder: Path | None = None,
        deadline_s: float,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; raise subprocess.TimeoutExpired if that takes longer."""
        pipe = subprocess.PIPE
        with Process(inside(node, argv), stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder) as process:
            try:
                texts = process.communicate(stdin.encode(), deadline_s)
            except BaseException:
                process.kill()
                raise
        out, errors = (text.decode(errors="replace") for text in texts)
        return subprocess.CompletedProcess(process.args, process.returncode, out, errors)

    def start(self, node: str, argv: Sequence[str], *, stdout: Path, stderr: Path, folder: Path) -> Process:
        """Start a program in ``folder``; what it prints goes to the two files, its standard input is
        empty."""
        with stdout.open("wb") as out, stderr.open("wb") as errors:
            return Process(
                inside(node, argv), stdin=subprocess.DEVNULL, stdout=out, stderr=errors, cwd=folder
            )


def inside(node: str, argv: Sequence[str]) -> list[str]:
    """The command line that runs ``argv`` on a node, from the machine itself."""
    return list(argv) if node == MACHINE else ["ip", "netns", "exec", node, *argv]
