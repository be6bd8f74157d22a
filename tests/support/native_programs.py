"""The C programs of native/ as the tests use them: built in a temporary folder, run on loopback;
their logs, checked while they are read."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from qjump_mn.toolbox import build

NATIVE = Path(__file__).resolve().parents[2] / "native"
WAIT_S = 60
"""How long a test waits for what takes milliseconds, before it gives up; none passes because of
it."""

BUILDS = {
    "plain": "-O2 -g",
    "sanitized": "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all",
}
"""Kinds of builds with their flags: as it is, and with gcc's sanitizers."""


class Listener:
    """A server on loopback while it is entered, with a thread for each connection, which `_serve`
    is given."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def connections(self) -> int:
        """How many there have been."""
        return len(self._threads) - 1

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        raise NotImplementedError


class Running(subprocess.Popen[str]):
    """A program that was started; killed with its `with` block, if it has not ended."""

    def __init__(self, argv: Sequence[str | Path]) -> None:
        super().__init__(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.communicate()

    def wait_for(self, what: str, happened: Callable[[], bool]) -> None:
        """Until something happened; fails if the program ends before, or lets too long pass."""
        last_s = time.monotonic() + WAIT_S
        while True:
            # First: /proc has no network of one that ended.
            assert self.poll() is None, f"it ended before {what}: {self.communicate()}"
            if happened():
                return
            assert time.monotonic() < last_s, f"not within {WAIT_S} s: {what}"
            time.sleep(0.002)

    def prefix_beside(self) -> list[str]:
        """A prefix that runs a program in this one's network namespace."""
        rights = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", f"--target={self.pid}", *rights, "--net"]

    def wait_for_port(self, protocol: str, port: int) -> None:
        """Until a socket of this very program has the port: with tcp one that listens. Others may
        share the port."""
        table = f"/proc/{self.pid}/net/{protocol}"
        self.wait_for("it listened", lambda: bool(self._sockets() & _sockets_of_port(table, port)))

    def _sockets(self) -> set[str]:
        inodes = set()
        for path in Path(f"/proc/{self.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                inodes.add(os.readlink(path).removeprefix("socket:[").removesuffix("]"))
        return inodes

    def wait_until_it_can_be_ended(self) -> None:
        """SIGTERM is blocked from when it is waited for."""
        status, bit = Path(f"/proc/{self.pid}/status"), 1 << (signal.SIGTERM - 1)
        self.wait_for(
            "it waited for signals",
            lambda: int(status.read_text().split("SigBlk:")[1].split()[0], 16) & bit != 0,
        )

    def wait_until_it_sleeps(self) -> None:
        """A program that spins never does."""
        state = Path(f"/proc/{self.pid}/stat")
        self.wait_for("it slept", lambda: state.read_text().rsplit(") ", 1)[1].startswith("S"))

    def ended(self, how: signal.Signals = signal.SIGTERM) -> Log:
        """The log after a signal."""
        self.send_signal(how)
        return self.log()

    def log(self) -> Log:
        """The log, when it has ended by itself and well."""
        output, errors = self.communicate(timeout=WAIT_S)
        assert (self.returncode, errors) == (0, "")
        return Log.read(output)

    def result(self) -> subprocess.CompletedProcess[str]:
        """What is left when it has ended, in whatever way."""
        output, errors = self.communicate(timeout=WAIT_S)
        return subprocess.CompletedProcess(self.args, self.returncode, output, errors)


class Program:
    """One of native/'s programs, built from its sources into a folder as one of `BUILDS`."""

    def __init__(self, name: str, kind: str, folder: Path) -> None:
        self.name, self.source, self.path = name, NATIVE / name, folder / name
        if kind == "sanitized" and not _has_sanitizers():
            pytest.skip("the compiler has no sanitizers here: libasan and libubsan are missing")
        before = sorted(NATIVE.rglob("*"))
        argv = ["make", "-C", str(self.source), f"BUILD={folder}", f"CFLAGS={BUILDS[kind]}"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert sorted(NATIVE.rglob("*")) == before, "an out-of-tree build leaves the sources alone"

    def started(self, *words: str, prefix: Sequence[str] = ()) -> Running:
        """It, running; `prefix` is a program that runs it."""
        return Running([*prefix, self.path, *words])

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        with self.started(*words) as process:
            return process.result()

    def log(self, *words: str, prefix: Sequence[str] = ()) -> Log:
        """What a run that must end well writes to stdout."""
        with self.started(*words, prefix=prefix) as process:
            return process.log()

    def check_refused(
        self, done: subprocess.CompletedProcess[str], status: int, words: str
    ) -> None:
        """It ended with this status and one sentence that has these words; ``...`` is any text
        between."""
        pattern = ".*".join(re.escape(part) for part in words.split(" ... "))
        assert done.returncode == status, done.stderr
        assert re.fullmatch(rf"{self.name}: .*\n", done.stderr), done.stderr
        assert re.search(pattern, done.stderr), done.stderr
        assert done.stdout == "", "no log that could be taken for a complete one"


@dataclass(frozen=True)
class Log:
    """A log: the parameters of its first line, rows by the names of their columns, and the totals
    of its last line."""

    parameters: dict[str, str]
    rows: list[dict[str, int]]
    end: dict[str, int]

    @classmethod
    def read(cls, text: str) -> Log:
        """Read a log. Fails if it is not whole or not in the form that the manual pages
        describe."""
        first, second, *middle, last = text.removesuffix("\n").split("\n")
        assert (
            text.endswith("\n") and re.match(r"# \w+ 1 ", first) and second.startswith("# columns ")
        )
        assert re.match(r"# end rows=\d+ early=[01]( |$)", last)
        columns = second.split()[2:]
        rows = [dict(zip(columns, map(int, line.split(" ")), strict=True)) for line in middle]
        end = {name: int(value) for name, value in (word.split("=") for word in last.split()[2:])}
        assert end["rows"] == len(rows)
        return cls(dict(word.split("=") for word in first.split()[3:]), rows, end)

    def column(self, name: str) -> list[int]:
        """One value of each row."""
        return [row[name] for row in self.rows]


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """A port of loopback that nobody has."""
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def network_of_its_own(*setup: str) -> list[str]:
    """A prefix that runs a program in a new network namespace whose loopback was set up by these
    commands; skips where that is not allowed."""
    script = " && ".join(["ip link set lo up", *setup, 'exec "$@"'])
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    prefix = ["unshare", *rights, "--net", "sh", "-ec", script, "sh"]
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no network namespace with {setup} here: {tried.stderr.strip()}")
    return prefix


def check_installed(program: Program, folder: Path) -> None:
    """What is copied for the guest's build suffices; `make install` puts program and manual page
    where they belong, and nothing else."""
    recipe, target = build.program(program.name), folder / "target"
    for path in recipe.sources():
        copy = folder / "copy" / path.relative_to(recipe.source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    assert {path.name for path in (folder / "copy").iterdir()} == {program.name, "common"}
    line = f"make -C {folder}/copy/{program.name} DESTDIR={target} PREFIX=/opt/q install"
    subprocess.run(line.split(), capture_output=True, check=True)
    paths = [path for path in target.rglob("*") if path.is_file()]
    files = {str(path.relative_to(target)): path.stat().st_mode & 0o777 for path in paths}
    assert files == {
        f"opt/q/bin/{program.name}": 0o755,
        f"opt/q/share/man/man1/{program.name}.1": 0o644,
    }


def check_manual(program: Program, columns: str, *roles: str) -> None:
    """Summaries, of each role if it has any, and manual page name the same options; the page names
    the columns and is well formed."""
    page = (program.source / f"{program.name}.1").read_text()
    options: set[str] = set()
    for role in roles or ("",):
        done = program.run(*role.split(), "--help")
        assert (done.returncode, done.stderr) == (0, "")
        options |= set(re.findall(r"^  --([\w-]+)", done.stdout, re.M))
    assert options == set(re.findall(r"^\.It Fl -([\w-]+)", page, re.M))
    assert all(re.search(rf"\.It Va .*\b{column}\b", page) for column in columns.split())


def _has_sanitizers() -> bool:
    argv = "cc -fsanitize=address,undefined -x c - -o /dev/null".split()
    done = subprocess.run(argv, input=b"int main(void) { return 0; }", capture_output=True)
    return done.returncode == 0


def _sockets_of_port(table: str, port: int) -> set[str]:
    lines = [line.split() for line in Path(table).read_text().splitlines()[1:]]
    ours = [words for words in lines if words[1].endswith(f":{port:04X}")]
    return {words[9] for words in ours if words[3] in ("0A", "07")}
