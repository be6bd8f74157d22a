#!/usr/bin/env python3
"""Show that with `-icount shift=0,sleep=off` a halted vCPU may wake late: run a guest that measures
it, with a monitor that is asked for the machine's status all the time.

    reproduce.py [--runs 10] [--wakes 40000] [--busy 0] [--write README.md] NAME=COMMAND...

Each COMMAND starts a qemu-system-x86_64; it is run without and with rr=record, in turn. NAME is
what the table calls it. `--busy` is the number of loops that compete with QEMU for the host's
processors. `--write` replaces the table between the two marks in that file. Needs as and ld for
x86. Exit with 1 if a wake was late.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).with_name("warp.s")
SPINS, OWN = 16384, 5
"""Between its timer and its halt, wake n of the guest executes 2 * (n % SPINS + 1) + OWN
instructions."""

RECORD = ",rr=record,rrfile=/dev/null"
EXIT_STATUS = 1
"""With which isa-debug-exit ends QEMU when 0 is written to it."""

ASKED = 512
"""Commands that the monitor is given at once: its answers keep the main loop turning."""

BEGIN, END = "<!-- reproduce begin -->", "<!-- reproduce end -->"


@dataclass
class Way:
    """A QEMU with or without rr=record, and its results."""

    name: str
    command: list[str]
    record: bool
    late: list[dict[int, int]] = field(default_factory=list)
    """For each run: by how many ns which wake was late."""

    seconds: list[float] = field(default_factory=list)

    @property
    def row(self) -> list[object]:
        """Return its row of the table."""
        wakes = [(wake, ns) for run in self.late for wake, ns in run.items()]
        exact = sum(ns == uncounted(wake) for wake, ns in wakes)
        return [
            self.name,
            "yes" if self.record else "no",
            len(self.late),
            sum(bool(run) for run in self.late),
            len(wakes),
            f"{exact} of {len(wakes)}" if wakes else "",
            max((ns for _, ns in wakes), default=""),
            f"{statistics.median(self.seconds):.1f}",
        ]


HEAD = [
    "QEMU",
    "rr=record",
    "runs",
    "runs with a late wake",
    "late wakes",
    "late by what was not counted",
    "latest, ns",
    "processor s",
]


def main() -> None:
    """Run all ways in turn, print the table, and exit with 1 if a wake was late."""
    options = arguments()
    ways = [
        Way(name, command, record) for name, command in options.qemus for record in (False, True)
    ]
    with tempfile.TemporaryDirectory() as scratch, busy(options.busy):
        firmware = assemble(Path(scratch), options.wakes)
        for number in range(options.runs):
            for way in ways:
                late = once(way, firmware)
                print(
                    f"run {number + 1}, {way.name}{RECORD * way.record}: {len(late)} late",
                    flush=True,
                )
    text = table(ways, options.wakes)
    print(text)
    if options.write:
        write(options.write, text)
    sys.exit(any(any(way.late) for way in ways))


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="show that a halted vCPU may wake late")
    parser.add_argument("qemus", nargs="+", metavar="NAME=COMMAND", help="a qemu-system-x86_64")
    parser.add_argument(
        "--runs", type=int, default=10, help="of each QEMU, with and without rr=record"
    )
    parser.add_argument("--wakes", type=int, default=40000, help="of a run")
    parser.add_argument("--busy", type=int, default=0, help="loops that compete with QEMU")
    parser.add_argument("--write", type=Path, help="a file with the marks of the table")
    options = parser.parse_args()
    if options.runs < 1 or options.wakes < 1:
        parser.error("--runs and --wakes are at least 1")
    pairs = [one.partition("=") for one in options.qemus]
    for name, _, command in pairs:
        if not name or not command:
            parser.error(f"{name or '='}: a QEMU is given as NAME=COMMAND")
        if not shutil.which(shlex.split(command)[0]):
            parser.error(f"{command}: there is no such program")
    options.qemus = [(name, shlex.split(command)) for name, _, command in pairs]
    if options.write and not _has_marks(options.write):
        parser.error(f"{options.write} has not {BEGIN} and {END}")
    return options


def assemble(folder: Path, wakes: int) -> Path:
    """Assemble the guest as firmware."""
    for tool in ("as", "ld"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is not installed: it is in binutils")
    whole, firmware = folder / "warp.o", folder / "warp.bin"
    subprocess.run(["as", "--32", "--defsym", f"WAKES={wakes}", "-o", whole, SOURCE], check=True)
    subprocess.run(
        ["ld", "-m", "elf_i386", "-Ttext=0xf0000", "--oformat=binary", "-o", firmware, whole],
        check=True,
    )
    return firmware


def once(way: Way, firmware: Path) -> dict[int, int]:
    """Run once; return the lateness in ns of each late wake."""
    console = firmware.with_name("console")
    ours, theirs = socket.socketpair()
    argv = [
        *way.command,
        *("-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35", "-m", "16M"),
        *("-accel", "tcg", "-icount", f"shift=0,sleep=off{RECORD * way.record}"),
        *("-bios", str(firmware), "-debugcon", f"file:{console}", "-device", "isa-debug-exit"),
        *("-chardev", f"socket,id=qmp,fd={theirs.fileno()}", "-mon", "chardev=qmp,mode=control"),
    ]
    before = busy_s()
    with ours, theirs, subprocess.Popen(argv, pass_fds=[theirs.fileno()]) as qemu:
        theirs.close()
        ask(ours)
    if qemu.returncode != EXIT_STATUS:
        sys.exit(f"{way.name} ended with {qemu.returncode} before its guest did")
    way.seconds.append(busy_s() - before)
    first, *others = (
        [int(word, 16) for word in line.split()] for line in console.read_text().splitlines()
    )
    way.late.append({wake: ns - first[1] for wake, ns in others})
    return way.late[-1]


def ask(qmp: socket.socket) -> None:
    """Ask the monitor for the machine's status until it is gone."""
    try:
        with qmp.makefile("rwb") as stream:
            stream.readline()
            stream.write(b'{"execute": "qmp_capabilities"}\n')
            stream.flush()
            while stream.readline():
                stream.write(b'{"execute": "query-status"}\n' * ASKED)
                stream.flush()
                for _ in range(ASKED - 1):
                    stream.readline()
    except OSError:
        pass


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Start loops that compete with QEMU for the host's processors."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def busy_s() -> float:
    """Return the processor time of this process's ended children, in s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def uncounted(wake: int) -> int:
    """Return the instructions that this wake of the guest executes between its timer and its
    halt."""
    return 2 * (wake % SPINS + 1) + OWN


def table(ways: list[Way], wakes: int) -> str:
    """Return the results as a Markdown table."""
    rows: list[list[object]] = [[*HEAD], ["---"] * len(HEAD), *(way.row for way in ways)]
    lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
    host = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    when = time.strftime("%Y-%m-%d", time.gmtime())
    names = {way.name: version(way.command) for way in ways}
    programs = "; ".join(f"{name}: {words}" for name, words in names.items())
    return f"{when}, {host}, {wakes} wakes a run. {programs}.\n\n" + "\n".join(lines)


def version(command: list[str]) -> str:
    """Return the version that a QEMU prints."""
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def _has_marks(path: Path) -> bool:
    return path.exists() and path.read_text().count(BEGIN) == path.read_text().count(END) == 1


def write(path: Path, text: str) -> None:
    """Replace the table between the marks of the file."""
    before, _, rest = path.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
