"""One core for each guest: main loop and processor of a QEMU that records take turns, and handing over
between cores costs more.

Measured with wire links, which set 7,700 timers a virtual second: a guest that may use both cores of a
machine takes 20 to 25 % longer than one that is kept on one, and two at once take twice as long.

Who asks first is served first, among all processes and threads of a user. A folder holds a file for each
core, which its holder locks, and a file for each thread that waits, which that thread locks and whose name is
the time since boot (no change of the clock matters). The kernel drops the locks of whoever dies; a file of
the dead is removed by the next who looks. No lock is ever waited for, so that a process that is stopped stops
nobody else.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from qjump_mn.errors import LostError, MachineError
from qjump_mn.processes import stat

Progress = Callable[[str], None]

WAITS = "waits for a core"
"""Every line about waiting begins so."""

_POLL_S = 0.05
_SILENT_S = 1.0
_AGAIN_S = 30.0


class StoppedError(LostError):
    """It was not started: the run was ended before."""


@contextmanager
def core(progress: Progress = lambda line: None, stop: threading.Event | None = None) -> Iterator[int]:
    """Take a core that no other guest of this user has, waiting until there is one; its number.

    It is free again with the block, or when this process ends, whatever ends it. Who waits longer than a
    second hears for whom, again when that changes, and every 30 s. Raises :class:`StoppedError` once ``stop``
    is set.
    """
    folder = _folder()
    with _ticket(folder) as ticket:
        number, slot = _wait(folder, ticket, progress, stop or threading.Event())
    try:
        yield number
    finally:
        os.ftruncate(slot, 0)
        os.close(slot)


def _wait(folder: Path, ticket: str, progress: Progress, stop: threading.Event) -> tuple[int, int]:
    """The core's number and the handle that holds it."""
    began, last, last_s = time.monotonic(), "", 0.0
    while not stop.is_set():
        cores, before = os.sched_getaffinity(0), _before(folder, ticket)
        # A core that somebody before us may use is left to them.
        for number in sorted(cores.difference(*before)):
            if (slot := _take(folder / str(number))) is not None:
                return number, slot
        now = time.monotonic()
        if now - began > _SILENT_S:
            many = ("", ", 1 waits before", f", {len(before)} wait before")[min(len(before), 2)]
            line = _holders(folder, cores) + many
            if line != last or now - last_s > _AGAIN_S:
                progress(f"{WAITS}: {line}")
                last, last_s = line, now
        stop.wait(_POLL_S)
    raise StoppedError("it was ended while it waited for a core")


@contextmanager
def _ticket(folder: Path) -> Iterator[str]:
    """The name of a locked file that stands in the queue for this thread."""
    while True:
        path = folder / f"wait-{_since_boot_ns():020d}-{threading.get_native_id()}"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        # Before we have the lock, another may take the file for one of the dead and remove it.
        if _lock(handle) and os.fstat(handle).st_nlink:
            break
        os.close(handle)
    try:
        yield path.name
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _before(folder: Path, ticket: str) -> list[set[int]]:
    """For each who asked before and still waits: the cores that it may use. Files of the dead are removed."""
    waiting = []
    for path in sorted(folder.glob("wait-*")):
        if path.name == ticket:
            continue
        with suppress(FileNotFoundError):
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                if _lock(handle):
                    path.unlink()
                elif path.name < ticket:
                    thread = int(path.name.rpartition("-")[2])
                    with suppress(ProcessLookupError):
                        if stat(thread)[:1] != ["T"]:  # Ctrl-Z: it keeps its place and nobody waits for it
                            waiting.append(os.sched_getaffinity(thread))
            finally:
                os.close(handle)
    return waiting


def _take(slot: Path) -> int | None:
    """A handle that holds the core; None while another has it."""
    handle = os.open(slot, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _lock(handle):
        os.close(handle)
        return None
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()} {_since_boot_ns()} {_command()}".encode(), 0)
    return handle


def _holders(folder: Path, cores: set[int]) -> str:
    """Who has the cores, and since when: "pid 12 (qjump-mn run fig5) has it since 18:02"."""
    which, holders = "it" if len(cores) == 1 else "one", []
    for number in sorted(cores):
        with suppress(FileNotFoundError, ValueError):  # it is free, or being taken right now
            pid, since_ns, command = (folder / str(number)).read_text(errors="replace").split(" ", 2)
            began = time.time() - (_since_boot_ns() - int(since_ns)) / 1e9
            clock = time.strftime("%H:%M", time.localtime(began))
            holders.append(f"pid {pid} ({command}) has {which} since {clock}")
    return ", ".join(dict.fromkeys(holders)) or f"another run has {which}"


def _command() -> str:
    name = Path(sys.argv[0]).name
    return " ".join(["qjump-mn" if name == "run.py" else name, *sys.argv[1:]])[:60]


def _since_boot_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"qjump-mn-cores-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not folder.is_dir() or folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise MachineError(f"{folder} is not this user's alone: remove it")
    return folder
