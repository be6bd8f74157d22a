"""native/barrier as the tests here use it: built in the toolbox, its processes on this host's
loopback."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.native_programs import Log, Running

PORT = 2101


@dataclass(frozen=True)
class Program:
    """A built barrier, and how to start it."""

    argv: list[str]

    def started(self, line: str) -> Running:
        return Running([*self.argv, *line.split()])

    @contextmanager
    def processes(self, hosts: str, line: str) -> Iterator[list[Running]]:
        """A process for every host, whose number stands for {} in the line."""
        with ExitStack() as stack:
            yield [
                stack.enter_context(
                    self.started(f"--hosts {hosts} --process {process} {line.format(process)}")
                )
                for process in range(hosts.count(",") + 1)
            ]


def hosts_of(count: int) -> str:
    """Loopback addresses of this process's own, so that tests may run side by side."""
    pid = os.getpid()
    network = f"127.{1 + pid // 250 % 250}.{1 + pid % 250}"
    return ",".join(f"{network}.{1 + index}:{PORT}" for index in range(count))


def ended(processes: Sequence[Running]) -> list[tuple[int, str]]:
    """Status and standard error of each, when all have ended."""
    results = [process.result() for process in processes]
    return [(result.returncode, result.stderr) for result in results]


def logs(folder: Path, count: int) -> list[Log]:
    """The logs 0, 1, ... in a folder."""
    return [Log.read((folder / str(number)).read_text()) for number in range(count)]


def rows(log: Log) -> list[tuple[int, int]]:
    """When each barrier began and ended, in nanoseconds."""
    return [(row["start_ns"], row["end_ns"]) for row in log.rows]


def switches(pid: int) -> int:
    """How often a process's threads have waited: it grows with the barriers that it has passed."""
    texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0]) for text in texts)
