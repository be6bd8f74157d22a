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
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from qjump_mn.errors import LostError
from qjump_mn.guest import starter
from qjump_mn.leash import leashed
from qjump_mn.processes import Used, wait

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
    "quiet",
)
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/"}
_TAIL_LINES = 15
_PANIC = "Kernel panic - not syncing: "


class Outcome(msgspec.Struct, frozen=True):
    """What an instance left: the bytes that it wrote, its console, and what it took of the host."""

    out: bytes
    log: str
    wall_s: float
    used: Used | None


def run(
    kernel: Path,
    initrd: Path,
    data: bytes,
    folder: Path,
    *,
    memory_mb: int = 1024,
    wall_deadline_s: float = 900.0,
    words: Sequence[str] = (),
) -> Outcome:
    """Run one to its end in an empty ``folder``, which keeps `out` and `log`; ``words`` are added to the
    kernel's command line.

    Raises LostError, with the last lines of the console, for a panic, where it ends otherwise than by
    powering off, and after the deadline.
    """
    (folder / "in").write_bytes(data)
    out, log = folder / "out", folder / "log"
    began = time.monotonic()
    with (
        (folder / "in").open("rb") as into,
        initrd.open("rb") as image,
        out.open("wb") as result,
        log.open("ab") as console,  # the kernel's messages and a program's may come at once
    ):
        given = [file.fileno() for file in (into, image, result, console)]
        into_fd, image_fd, out_fd, log_fd = range(starter.FIRST, starter.FIRST + len(given))
        # The same numbers in each run, for the command line goes into the pool of random numbers.
        files = f"host_files=in:{into_fd},out:{out_fd},log:{log_fd}"
        argv = [str(kernel), f"mem={memory_mb}M", f"initrd=fd:{image_fd}", files, *_WORDS, *words]
        fenced = [sys.executable, "-I", "-S", str(starter.__file__), ",".join(map(str, given)), *argv]
        process = subprocess.Popen(
            leashed(fenced),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            env=_ENVIRONMENT,
            pass_fds=given,
            start_new_session=True,
        )
        try:
            used = wait(process, wall_deadline_s)
        except subprocess.TimeoutExpired:
            raise _lost(f"the guest took more than {wall_deadline_s:g} s", log) from None
        finally:
            _end(process)
    if process.returncode:
        raise _lost(f"the guest ended with status {process.returncode}", log)
    return Outcome(out.read_bytes(), log.read_text(errors="replace"), time.monotonic() - began, used)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of it: programs of the guest are processes of its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _lost(what: str, log: Path) -> LostError:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    panics = [line.partition(_PANIC)[2] for line in lines if _PANIC in line]
    return LostError(
        "\n".join([f"the guest's kernel panicked: {panics[0]}" if panics else what, *lines[-_TAIL_LINES:]])
    )
