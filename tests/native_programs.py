"""The load programs of native/ as the tests use them: built in a temporary folder, run on loopback; their logs, checked while they are read."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parent.parent / "native"
WAIT_S = 60
"""How long a test waits for what takes milliseconds, before it gives up."""

SANITIZE = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
Words = list[str]


class Program:
    """One of native/'s programs, built from its sources."""

    def __init__(self, name: str, folder: Path, flags: str = "") -> None:
        self.name, self.source, self.folder = name, NATIVE / name, folder
        self.path = folder / name
        before = sorted(self.source.rglob("*"))
        argv = ["make", "-C", str(self.source), f"BUILD={folder}", *([f"CFLAGS={flags}"] if flags else [])]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert sorted(self.source.rglob("*")) == before, "an out-of-tree build leaves the sources alone"

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run([self.path, *words], capture_output=True, text=True, timeout=WAIT_S, check=False)

    def log(self, *words: str) -> Log:
        """What a run that must end well writes to stdout."""
        done = self.run(*words)
        assert (done.returncode, done.stderr) == (0, "")
        return Log.read(done.stdout)

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """It, running; it is killed if the test has not ended it."""
        process = subprocess.Popen([self.path, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def check_refused(self, done: subprocess.CompletedProcess[str], status: int, words: str) -> None:
        """It ended with this status and one sentence that has these words."""
        assert done.returncode == status, done.stderr
        assert re.fullmatch(rf"{self.name}: .*\n", done.stderr) and words in done.stderr
        assert done.stdout == "", "no log that could be taken for a complete one"


def built(name: str, folder: Path, kind: str) -> Program:
    """The program, built as it is (`plain`) or with gcc's sanitizers (`sanitized`)."""
    if kind == "plain":
        return Program(name, folder)
    probe = subprocess.run(["gcc", *SANITIZE.split(), "-x", "c", "-", "-o", folder / "probe"], input="int main(void) { return 0; }",
                           capture_output=True, text=True, check=False)  # fmt: skip
    if probe.returncode:
        pytest.skip(f"gcc has no address and undefined behaviour sanitizers here: {probe.stderr.strip()}")
    return Program(name, folder, SANITIZE)


@dataclass(frozen=True)
class Log:
    """A log: the parameters of its first line, rows by the names of their columns, and the totals of its last line."""

    parameters: dict[str, str]
    rows: list[dict[str, int]]
    end: dict[str, int]

    @classmethod
    def read(cls, text: str) -> Log:
        """Read a complete log, or fail."""
        first, second, *middle, last = text.splitlines()
        assert text.endswith("\n") and re.match(r"# \w+ 1 ", first) and second.startswith("# columns ") and last.startswith("# end rows=")
        columns = second.split()[2:]
        rows = [dict(zip(columns, map(int, line.split(" ")), strict=True)) for line in middle]
        end = {name: int(value) for name, value in (word.split("=") for word in last.split()[2:])}
        assert end["rows"] == len(rows)
        return cls(dict(word.split("=") for word in first.split()[3:]), rows, end)


def free_port() -> int:
    """A TCP port of loopback that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def check_installed(program: Program, target: Path) -> None:
    """`make install` puts the program and its manual page where they belong, and nothing else."""
    argv = ["make", "-C", str(program.source), f"BUILD={program.folder}", f"DESTDIR={target}", "PREFIX=/opt/q", "install"]
    subprocess.run(argv, capture_output=True, check=True)
    files = {str(path.relative_to(target)): path.stat().st_mode & 0o777 for path in target.rglob("*") if path.is_file()}
    assert files == {f"opt/q/bin/{program.name}": 0o755, f"opt/q/share/man/man1/{program.name}.1": 0o644}


def check_manual(program: Program, columns: str) -> None:
    """Summary and manual page name the same options; the page names the columns and is well formed."""
    done = program.run("--help")
    page = (program.source / f"{program.name}.1").read_text()
    assert (done.returncode, done.stderr) == (0, "")
    assert set(re.findall(r"^  --([\w-]+)", done.stdout, re.M)) == set(re.findall(r"^\.It Fl -([\w-]+)", page, re.M))
    assert all(re.search(rf"\.It Va .*\b{column}\b", page) for column in columns.split())
    if shutil.which("mandoc"):
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=page, capture_output=True, text=True, check=False)
        assert (lint.returncode, lint.stdout) == (0, "")


def check_self_contained(program: Program, folder: Path) -> None:
    """The program is built from a copy of its folder alone, as for the guest."""
    shutil.copytree(program.source, folder / "copy")
    subprocess.run(["make", "-C", folder / "copy"], capture_output=True, check=True)
    assert (folder / "copy/build" / program.name).is_file()
