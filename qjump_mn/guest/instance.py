"""One instance of Linux as a program, whose clock stands still while anything runs: what goes in and out of
it are files that are opened here.

It is started as a process group of its own, with a clean environment, behind a fence (starter.py), and sees
its kernel, an initramfs and two files: bytes that it reads as /dev/host-in, and what it writes to
/dev/host-out. /dev/host-log, which has the kernel's messages too, is the console. It ends when it powers
off, or panics.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from qjump_mn.errors import LostError
from qjump_mn.guest import starter
from qjump_mn.guest.cores import StoppedError
from qjump_mn.process.leash import leashed
from qjump_mn.process.processes import Used, wait

BEGAN_NS = 1_767_225_600_000_000_000
"""What the clock says when an instance starts: 2026-01-01, as everywhere in the project."""

_WORDS = (
    "time-travel=inf-cpu",
    f"time-travel-start={BEGAN_NS}",
    "seccomp=on",  # programs are processes of the host's, which trap their system calls
    "uml_dir=",  # no folder of the host's
    "console=ttynull",
    "rdinit=/init",
    "norandmaps",
    "random.trust_bootloader=on",  # its seed is the same in each run, see kernel/
    "panic=-1",
    "oops=panic",
    "noreboot",
    "ifb.numifbs=0",  # by itself it makes two that nobody asked for
    "quiet",
)
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/"}
_POLL_S = 0.1
_TAIL_LINES = 15
_PANIC = "Kernel panic - not syncing: "
_NO_MEMORY = "panic_on_oom"


MEMORY_MB = 1024


class Outcome(msgspec.Struct, frozen=True):
    """What an instance left: the files of what it wrote and of its console, and what it took of the host."""

    out: Path
    log: Path
    used: Used | None


class Stop:
    """Ends all instances that were started under it, now and for good; used from several threads."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    def now(self) -> None:
        """Kill what runs: whoever waits for it gets a LostError. A later start raises StoppedError."""
        with self._lock:  # so that none is between its start and its entry
            self.event.set()
            for process in self._running:
                process.kill()

    @contextlib.contextmanager
    def running(self, start: Callable[[], subprocess.Popen[bytes]]) -> Iterator[subprocess.Popen[bytes]]:
        """The process that ``start`` starts, killed with the block, and all of its session."""
        with self._lock:
            if self.event.is_set():
                raise StoppedError("it was ended before its guest had started")
            process = start()
            self._running.add(process)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # programs of the guest are processes, too
            process.wait()
            with self._lock:
                self._running.discard(process)


def run(
    kernel: Path,
    initrd: Path,
    data: bytes,
    folder: Path,
    *,
    memory_mb: int = MEMORY_MB,
    wall_deadline_s: float = 900.0,
    words: Sequence[str] = (),
    line: Callable[[str], None] = lambda line: None,
    core: int | None = None,
    stop: Stop | None = None,
) -> Outcome:
    """Run one to its end in an empty ``folder``, which keeps `out` and `log`; ``words`` are added to the
    kernel's command line. ``line`` is called with each line of the console, ``core`` is the one that it is
    kept on.

    Raises LostError, with the last lines of the console, for a panic, where it ends otherwise than by
    powering off, and after the deadline; StoppedError where ``stop`` does not let it start.
    """
    (folder / "in").write_bytes(data)
    out, log = folder / "out", folder / "log"
    with (
        (folder / "in").open("rb") as into,
        initrd.open("rb") as image,
        out.open("wb") as result,
        log.open("ab") as console,  # the kernel's messages and a program's may come at once
    ):
        given = [file.fileno() for file in (into, image, result, console)]
        argv = [str(kernel), *command_line(memory_mb, words)]
        fenced = [sys.executable, "-I", "-S", str(starter.__file__), ",".join(map(str, given)), *argv]
        begin = partial(start, fenced, core, console, _ENVIRONMENT, given)
        status, used = followed(begin, log, wall_deadline_s, line, stop)
    if status:
        raise lost(f"the guest ended with status {status}", log.read_text(errors="replace"))
    return Outcome(out, log, used)


def command_line(memory_mb: int, words: Sequence[str] = ()) -> list[str]:
    """What the kernel is told, with the same descriptors in each run, for it goes into the pool of random
    numbers: from the first on, what it reads, its initramfs, what it writes, and its console."""
    into, image, out, log = range(starter.FIRST, starter.FIRST + 4)
    files = f"host_files=in:{into},out:{out},log:{log}"
    return [f"mem={memory_mb}M", f"initrd=fd:{image}", files, *_WORDS, *words]


def followed(
    begin: Callable[[], subprocess.Popen[bytes]],
    log: Path,
    wall_deadline_s: float,
    line: Callable[[str], None],
    stop: Stop | None,
) -> tuple[int, Used | None]:
    """Wait for the end of what ``begin`` starts, whose console is ``log``: its status, and what it used.
    Raises LostError after the deadline."""
    began, partly, used = time.monotonic(), b"", None
    with log.open("rb") as said, (stop or Stop()).running(begin) as process:
        while process.returncode is None:
            try:
                used = wait(process, _POLL_S)
            except subprocess.TimeoutExpired:
                if time.monotonic() - began > wall_deadline_s:
                    what = f"the guest overran its deadline of {wall_deadline_s:g} s"
                    raise lost(what, log.read_text(errors="replace")) from None
            for one in said:
                partly += one
                if partly.endswith(b"\n"):
                    line(partly.decode(errors="replace").rstrip("\n"))
                    partly = b""
        return process.returncode, used


def start(
    argv: Sequence[str],
    core: int | None,
    output: BinaryIO,
    environment: Mapping[str, str],
    given: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program on a leash (process/leash.py), in a session of its own: on that core, with nothing to
    read but the descriptors ``given``; what it prints goes to ``output``."""
    return subprocess.Popen(
        leashed(argv, core),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=environment,
        pass_fds=given,
        start_new_session=True,
    )


def lost(what: str, log: str) -> LostError:
    """The error for a guest that did not get through: ``what``, or the reason that its console gives, and the
    console's last lines."""
    lines = [line for line in log.splitlines() if line.strip()]
    panics = [line.partition(_PANIC)[2] for line in lines if _PANIC in line]
    if panics:
        what = f"the guest's kernel panicked: {panics[0]}"
    if any(_NO_MEMORY in line for line in lines):
        what = "the guest ran out of memory"
    tail = "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])
    return LostError(f"{what}; the end of its console:\n{tail}")
