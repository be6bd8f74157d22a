"""Run one instance of Linux as a program, whose clock stands still while code runs.

The instance has a process group of its own, a clean environment, and a fence around it
(fence.py). It sees only its kernel, an initramfs and three files, which are opened here: it reads
its input from /dev/host-in, writes its result to /dev/host-out, and has its console and kernel
messages in /dev/host-log. It ends when it powers off or panics.
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
from qjump_mn.guest import fence
from qjump_mn.guest.cores import StoppedError
from qjump_mn.process.die_with_parent import wrap_command
from qjump_mn.process.processes import Used, wait

BEGAN_NS = 1_767_225_600_000_000_000
"""The guest's clock at the start of an instance: 2026-01-01, as everywhere in the project."""

_PARAMETERS = (
    "time-travel=inf-cpu",
    f"time-travel-start={BEGAN_NS}",
    "seccomp=on",  # the guest's programs are host processes whose system calls are trapped
    "uml_dir=",  # no folder on the host
    "console=ttynull",
    "rdinit=/init",
    "norandmaps",
    "random.trust_bootloader=on",  # its seed is the same in each run, see kernel/
    "panic=-1",
    "oops=panic",
    "noreboot",
    # Drivers that would create devices of their own, some of them in every namespace.
    "ifb.numifbs=0",
    "dummy.numdummies=0",
    "bonding.max_bonds=0",
    "fb_tunnels=none",
    "quiet",
)
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/"}
_POLL_S = 0.1
_TAIL_LINES = 15
_PANIC = "Kernel panic - not syncing: "
_NO_MEMORY = "panic_on_oom"


MEMORY_MB = 1024


class Outcome(msgspec.Struct, frozen=True):
    """An instance's result and console (files), and the host's resources that it used."""

    out: Path
    log: Path
    used: Used | None


class Stop:
    """Ends all instances that were started with it, and prevents new ones; thread-safe."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    def now(self) -> None:
        """Kill all running instances, whose callers get a LostError.

        Later starts raise StoppedError.
        """
        with self._lock:  # no instance is started but not yet in the set
            self.event.set()
            for process in self._running:
                process.kill()

    @contextlib.contextmanager
    def running(
        self, start: Callable[[], subprocess.Popen[bytes]]
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start a process, and kill it and its whole process group at the end of the block."""
        with self._lock:
            if self.event.is_set():
                raise StoppedError("the run was ended before its guest started")
            process = start()
            self._running.add(process)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # the guest's programs are host processes
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
    terminal: int | None = None,
) -> Outcome:
    """Run an instance to its end in an empty ``folder``, which keeps the files `out` and `log`.

    ``data`` is its input, ``words`` are added to the kernel's command line, ``line`` is called with
    each line of the console, and ``core`` is the processor that it is pinned to. ``terminal`` is a
    descriptor that it reads and writes as /dev/host-tty.

    Raises LostError, with the last lines of the console, if it panics, ends in any way but by
    powering off, or overruns the deadline. Raises StoppedError if ``stop`` prevents its start.
    """
    (folder / "in").write_bytes(data)
    out, log = folder / "out", folder / "log"
    with (
        (folder / "in").open("rb") as input_file,
        initrd.open("rb") as image,
        out.open("wb") as output,
        log.open("ab") as console,  # the kernel and programs may write to it at the same time
    ):
        descriptors = [file.fileno() for file in (input_file, image, output, console)]
        descriptors += [] if terminal is None else [terminal]
        numbers = ",".join(map(str, descriptors))
        argv = [str(kernel), *command_line(memory_mb, words, terminal=terminal is not None)]
        fenced = [sys.executable, "-I", "-S", str(fence.__file__), numbers, *argv]
        begin = partial(start, fenced, core, console, _ENVIRONMENT, descriptors)
        status, used = follow(begin, log, wall_deadline_s, line, stop)
    if status:
        raise lost(f"the guest ended with status {status}", log.read_text(errors="replace"))
    return Outcome(out, log, used)


def command_line(memory_mb: int, words: Sequence[str] = (), *, terminal: bool = False) -> list[str]:
    """Return the kernel's command line.

    The kernel adds it to its random pool, so descriptors have the same numbers in each run: input,
    initramfs, output, console and terminal, in this order.
    """
    input_, image, output, log, tty = range(fence.FIRST, fence.FIRST + 5)
    files = f"host_files=in:{input_},out:{output},log:{log}"
    files += f",tty:{tty}" if terminal else ""
    return [f"mem={memory_mb}M", f"initrd=fd:{image}", files, *_PARAMETERS, *words]


def follow(
    begin: Callable[[], subprocess.Popen[bytes]],
    log: Path,
    wall_deadline_s: float,
    line: Callable[[str], None],
    stop: Stop | None,
) -> tuple[int, Used | None]:
    """Start an instance with ``begin`` and wait for its end, passing on the lines of ``log``.

    Returns its exit status and the resources that it used. Raises LostError after the deadline.
    """
    start, partial_line, used = time.monotonic(), b"", None
    with log.open("rb") as console, (stop or Stop()).running(begin) as process:
        while process.returncode is None:
            try:
                used = wait(process, _POLL_S)
            except subprocess.TimeoutExpired:
                if time.monotonic() - start > wall_deadline_s:
                    problem = f"the guest overran its deadline of {wall_deadline_s:g} s"
                    raise lost(problem, log.read_text(errors="replace")) from None
            for text in console:
                partial_line += text
                if partial_line.endswith(b"\n"):
                    line(partial_line.decode(errors="replace").rstrip("\n"))
                    partial_line = b""
        return process.returncode, used


def start(
    argv: Sequence[str],
    core: int | None,
    output: BinaryIO,
    environment: Mapping[str, str],
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program that dies with this process (process/die_with_parent.py), in a session of its
    own.

    It is pinned to ``core``, holds only ``descriptors`` besides the standard ones, has an empty
    standard input, and prints to ``output``.
    """
    return subprocess.Popen(
        wrap_command(argv, core),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=environment,
        pass_fds=descriptors,
        start_new_session=True,
    )


def lost(problem: str, log: str) -> LostError:
    """Return the error for a guest without a result, with the last lines of its console.

    Its reason is a panic or a lack of memory, if the console reports that, else ``problem``.
    """
    lines = [line for line in log.splitlines() if line.strip()]
    panics = [line.partition(_PANIC)[2] for line in lines if _PANIC in line]
    if panics:
        problem = f"the guest's kernel panicked: {panics[0]}"
    if any(_NO_MEMORY in line for line in lines):
        problem = "the guest ran out of memory"
    tail = "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])
    return LostError(f"{problem}; the end of its console:\n{tail}")
