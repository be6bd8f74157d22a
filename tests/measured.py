"""The programs of native/ that measure, built and run on this host's loopback, and the logs they write."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pytest

NATIVE = Path(__file__).resolve().parents[1] / "native"
PATIENCE_S = 60
"""After this long without a sign of life a test has failed; none passes because of it."""

BUILDS = {"plain": "-O2 -g", "sanitized": "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"}


def build(name: str, kind: str, folder: Path) -> Path:
    """Compile native/NAME as one of BUILDS into a folder; returns the program."""
    if kind == "sanitized" and not has_sanitizers():
        pytest.skip("the compiler has no sanitizers here: libasan and libubsan are missing")
    source = NATIVE / name
    before = sorted(NATIVE.rglob("*"))
    result = subprocess.run(["make", "-C", source, f"BUILD={folder}", f"CFLAGS={BUILDS[kind]}"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(NATIVE.rglob("*")) == before, "an out-of-tree build leaves the sources alone"
    return folder / name


def has_sanitizers() -> bool:
    compiler = shutil.which("cc")
    argv = [str(compiler), "-fsanitize=address,undefined", "-x", "c", "-", "-o", "/dev/null"]
    return subprocess.run(argv, input="int main(void) { return 0; }", text=True, capture_output=True, check=False).returncode == 0


@dataclass(frozen=True)
class Log:
    """What a program wrote: parameters, rows by the names of the columns, and the totals of the last line."""

    parameters: dict[str, str]
    rows: list[dict[str, int]]
    end: dict[str, str]

    def column(self, name: str) -> list[int]:
        return [row[name] for row in self.rows]


def parse(text: str) -> Log:
    """Read a log. Fails if it is not whole or not in the form that the manual page describes."""
    first, columns, *lines, last = text.removesuffix("\n").split("\n")
    assert text.endswith("\n") and first.startswith("# ") and columns.startswith("# columns ") and last.startswith("# end ")
    names = columns.split()[2:]
    rows = [dict(zip(names, map(int, line.split(" ")), strict=True)) for line in lines]
    end = dict(word.split("=", 1) for word in last.split()[2:])
    assert list(end)[:2] == ["rows", "early"] and int(end["rows"]) == len(rows)
    program, version, *parameters = first.split()[1:]
    assert version == "1"
    return Log({"program": program, **dict(word.split("=", 1) for word in parameters)}, rows, end)


class Running:
    """A program that was started; ended with the test, whatever happens."""

    def __init__(self, argv: Sequence[str | Path], prefix: Sequence[str] = ()) -> None:
        self.process = subprocess.Popen([*prefix, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()

    def until(self, what: str, happened: bool) -> bool:
        """For `while not it.until("...", condition): pass`: waits a little; fails if the program ended."""
        if not happened:
            assert self.process.poll() is None, f"it ended before {what}: {self.process.communicate()}"
            time.sleep(0.002)
        return happened

    def prefix_beside(self) -> list[str]:
        """A prefix that runs a program in this one's network namespace."""
        rights = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", f"--target={self.process.pid}", *rights, "--net"]

    def wait_for_port(self, protocol: str, port: int) -> None:
        """Until a socket of this very program listens; others may share the port."""
        while not self.until("it listened", bool(self._sockets() & inodes_of_port(f"/proc/{self.process.pid}/net/{protocol}", port))):
            pass

    def _sockets(self) -> set[str]:
        inodes = set()
        for path in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                inodes.add(os.readlink(path).removeprefix("socket:[").removesuffix("]"))
        return inodes

    def wait_until_it_can_be_ended(self) -> None:
        """SIGTERM is blocked from when it is waited for."""
        status, bit = Path(f"/proc/{self.process.pid}/status"), 1 << (signal.SIGTERM - 1)
        while not self.until("it waited for signals", int(status.read_text().split("SigBlk:")[1].split()[0], 16) & bit != 0):
            pass

    def end(self) -> Log:
        self.process.send_signal(signal.SIGTERM)
        return self.log()

    def log(self) -> Log:
        """Of a program that ends by itself and well."""
        output, errors = self.process.communicate(timeout=PATIENCE_S)
        assert (self.process.returncode, errors) == (0, "")
        return parse(output)

    def sentence(self) -> str:
        """What a program that failed says: one line, and no log."""
        output, errors = self.process.communicate(timeout=PATIENCE_S)
        assert (self.process.returncode, output) == (1, "")
        assert errors.count("\n") == 1
        return errors


def inodes_of_port(table: str, port: int) -> set[str]:
    lines = [line.split() for line in Path(table).read_text().splitlines()[1:]]
    return {words[9] for words in lines if words[1].endswith(f":{port:04X}")}


def run(*argv: str | Path) -> Log:
    with Running(argv) as program:
        return program.log()


def check_refused(argv: Sequence[str | Path], words: str) -> None:
    result = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{Path(argv[0]).name}: ") and result.stderr.count("\n") == 1
    assert words in result.stderr


def free_port(kind: socket.SocketKind = socket.SOCK_DGRAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def network_of_its_own(*setup: str) -> list[str]:
    """A prefix that runs a program in a new network namespace whose loopback was set up by these commands; skips where that is not allowed."""
    script = " && ".join(["ip link set lo up", *setup, 'exec "$@"'])
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    prefix = ["unshare", *rights, "--net", "sh", "-ec", script, "sh"]
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no network namespace with {setup} here: {tried.stderr.strip()}")
    return prefix
