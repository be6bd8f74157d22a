"""native/barrier as the tests here use it: built in the toolbox, its processes on this host's
loopback."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PORT = 2101


@dataclass(frozen=True)
class Program:
    """A built barrier, and how to start it."""

    argv: list[str]

    def start(self, hosts: str, process: int, *options: str) -> subprocess.Popen[str]:
        """One process of several."""
        argv = [*self.argv, "--hosts", hosts, "--process", str(process), *options]
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """One process, to its end."""
        return subprocess.run(
            [*self.argv, *options], capture_output=True, text=True, timeout=60, check=False
        )


@dataclass(frozen=True)
class Log:
    """A log: what the first line says, rows of begin and end in nanoseconds, what the last line
    says."""

    first: dict[str, str]
    rows: list[tuple[int, int]]
    last: dict[str, int]


def hosts_of(count: int, group: int = 0) -> str:
    """Loopback addresses of this process's own, so that tests may run side by side."""
    pid = os.getpid()
    return ",".join(
        f"127.{1 + pid // 250 % 250}.{1 + pid % 250}.{1 + 16 * group + index}:{PORT}"
        for index in range(count)
    )


@contextmanager
def together(
    program: Program, hosts: str, *options: str, folder: Path
) -> Iterator[list[subprocess.Popen[str]]]:
    """A process for every host; their logs are the files 0, 1, ... in `folder`."""
    count = hosts.count(",") + 1
    processes = [
        program.start(hosts, process, "--output", str(folder / str(process)), *options)
        for process in range(count)
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def ended(processes: Sequence[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    """Status and standard error of each, when all have ended."""
    return [(process.wait(60), process.communicate()[1]) for process in processes]


def read(path: Path) -> Log:
    """Parse a log; it must be complete."""
    first, columns, *rows, last = path.read_text().splitlines()
    assert (
        first.startswith("# barrier 1 ")
        and columns == "# columns start_ns end_ns"
        and last.startswith("# end ")
    )
    pairs = [tuple(map(int, row.split(" "))) for row in rows]
    log = Log(
        _fields(first[12:]),
        [(start, end) for start, end in pairs],
        {name: int(text) for name, text in _fields(last[6:]).items()},
    )
    assert log.last["rows"] == len(log.rows)
    return log


def _fields(text: str) -> dict[str, str]:
    return dict(field.split("=", 1) for field in text.split(" "))


def switches(pid: int) -> int:
    """How often a process's threads have waited: it grows with the barriers that it has passed."""
    found = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        found += next(
            int(line.split()[1])
            for line in status.read_text().splitlines()
            if line.startswith("voluntary_ctxt_switches")
        )
    return found


def listens(address: str) -> bool:
    """Whether somebody listens at ADDRESS:PORT."""
    host, port = address.split(":")
    wanted = f"{int.from_bytes(bytes(map(int, host.split('.'))), 'little'):08X}:{int(port):04X}"
    return any(
        line.split()[1] == wanted and line.split()[3] == "0A"
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
    )
