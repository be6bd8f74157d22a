"""Give each guest a processor core of its own, and queue the guests that wait for one.

A guest's kernel and programs take turns on one core, and two guests on it would slow each other
down. Guests of all processes and threads of a user are served in order of arrival, except that a
long guest lets short ones pass that arrive within ten minutes. Somebody waits at a terminal for an
interactive guest: if no core is free it takes a place beside one, and they share it. There are as
many places as cores.

A folder holds a file for each core and for each place beside one, which its holder locks. It also
holds a file for each waiting thread, which that thread locks. The file's name is the thread's time
of arrival since boot (which no change of the clock affects), plus ten minutes for a long guest. The
kernel drops the locks of a process that dies, and the next process that looks removes its files.
Nothing ever blocks on a lock, so a process that is stopped stops no other.
"""

from __future__ import annotations

import fcntl
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from qjump_mn.errors import LostError, MachineError
from qjump_mn.process.processes import stat

Progress = Callable[[str], None]

WAITS = "waits for a core"
"""The prefix of every progress line about waiting."""

YIELDS_S = 600
"""How long a waiting long guest lets short ones pass."""

_POLL_S = 0.05
_SILENT_S = 1.0
_NAME = "qjump-mn-cores"
_BESIDE = "beside-"
_TRIES = 100
_RUNTIME = Path("/run")


class StoppedError(LostError):
    """The guest was not started, because the run was ended first."""


class BusyError(MachineError):
    """Other processes held all cores for longer than the caller was willing to wait."""


@contextmanager
def core(
    progress: Progress = lambda line: None,
    stop: threading.Event | None = None,
    *,
    patience_s: float = math.inf,
    long: bool = False,
    interactive: bool = False,
) -> Iterator[int | None]:
    """Wait for a free core, and hold it within the block; yields the core's number.

    The core is free again after the block, or when this process ends for any reason. A ``long``
    guest lets short ones pass for a while. An ``interactive`` one may get None instead of a core's
    number: a place beside one, where Linux chooses. After a second of waiting, and whenever it
    changes, ``progress`` gets a line with the other processes that hold the cores, and the number
    of their threads ahead in the queue. Raises :class:`BusyError` after ``patience_s``, and
    :class:`StoppedError` once ``stop`` is set.
    """
    folder = _folder()
    with _ticket(folder, YIELDS_S * 10**9 if long else 0) as ticket:
        stop = stop or threading.Event()
        number, slot = _wait(folder, ticket, progress, stop, patience_s, interactive)
    try:
        yield number
    finally:
        os.ftruncate(slot, 0)
        os.close(slot)


def _wait(
    folder: Path,
    ticket: str,
    progress: Progress,
    stop: threading.Event,
    patience_s: float,
    interactive: bool,
) -> tuple[int | None, int]:
    """Return the number of a free core, or None, and the file descriptor that holds its lock."""
    start = time.monotonic()
    reported, line, line_s = "", "", start
    while not stop.is_set():
        cores, ahead = os.sched_getaffinity(0), _threads_ahead(folder, ticket)
        # Leave the cores that a thread ahead of us may use to that thread.
        for number in sorted(cores.difference(*ahead.values())):
            if (slot := _take(folder / str(number))) is not None:
                return number, slot
        for number in sorted(cores) if interactive else ():
            if (slot := _take(folder / f"{_BESIDE}{number}")) is not None:
                return None, slot
        now = time.monotonic()
        if now - start > patience_s:
            raise BusyError(_busy_sentence(_holders(folder, cores)))
        if (current := _waiting_line(_holders(folder, cores), ahead)) != line:
            line, line_s = current, now
        # A core that is free for a moment, before the next guest takes it, is not worth a line.
        if line != reported and now - line_s > _SILENT_S:
            progress(line)
            reported = line
        stop.wait(_POLL_S)
    raise StoppedError("the run was ended while it waited for a core")


def _waiting_line(holders: Mapping[int, float], ahead: Iterable[int]) -> str:
    """Return a line such as "waits for a core: pid 12 since 18:02, 34 since 18:05; 2 ahead"."""
    times = {pid: time.strftime("%H:%M", time.localtime(at)) for pid, at in holders.items()}
    others = len(set(ahead).difference(thread.native_id for thread in threading.enumerate()))
    parts = (
        [f"pid {', '.join(f'{pid} since {at}' for pid, at in times.items())}"] if holders else []
    )
    parts += [f"{others} ahead"] if others else []
    return ": ".join([WAITS, "; ".join(parts)] if parts else [WAITS])


def _busy_sentence(holders: Collection[int]) -> str:
    pids = (
        f" (pid{'s' if len(holders) > 1 else ''} {', '.join(map(str, holders))})" if holders else ""
    )
    return f"all cores are taken{pids}"


@contextmanager
def _ticket(folder: Path, delay_ns: int) -> Iterator[str]:
    """Queue this thread, as if it had arrived ``delay_ns`` later; yields its locked file's name."""
    while True:
        path = folder / f"wait-{_since_boot_ns() + delay_ns:020d}-{threading.get_native_id()}"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        # Until we hold the lock, another process may think that our file is stale and remove it.
        if _lock(handle) and os.fstat(handle).st_nlink:
            break
        os.close(handle)
    try:
        yield path.name
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _threads_ahead(folder: Path, ticket: str) -> dict[int, set[int]]:
    """Return the cores that each waiting thread ahead of us may use; remove stale files."""
    waiting = {}
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
                        # A thread stopped by Ctrl-Z keeps its place, but others may pass it.
                        if stat(thread)[:1] != ["T"]:
                            waiting[thread] = os.sched_getaffinity(thread)
            finally:
                os.close(handle)
    return waiting


def _take(slot: Path) -> int | None:
    """Lock a core's file and return its descriptor; None if another guest holds it."""
    handle = os.open(slot, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _lock(handle):
        os.close(handle)
        return None
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()} {_since_boot_ns()}".encode(), 0)
    return handle


def _holders(folder: Path, cores: set[int]) -> dict[int, float]:
    """Return the other processes that hold these cores, by pid, with the Unix time of their start.

    The longest holder comes first.
    """
    starts: dict[int, float] = {}
    for number in cores:
        with suppress(FileNotFoundError, ValueError):  # the core is free, or just being taken
            pid, start_ns = map(int, (folder / str(number)).read_text().split()[:2])
            start = time.time() - (_since_boot_ns() - start_ns) / 1e9
            starts[pid] = min(start, starts.get(pid, math.inf))
    starts.pop(os.getpid(), None)
    return dict(sorted(starts.items(), key=lambda holder: holder[1]))


def _since_boot_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _folder() -> Path:
    """Return the folder of locks, the same for all of a user's sessions on this machine.

    ``TMPDIR`` comes first, if it is set. Else it is in ``/run`` (for root) or ``/run/user/UID``,
    where no other user can create a folder. In ``/tmp`` any user can, and could so block this
    user's runs; so the first name there that is free, or the user's own, is taken.
    """
    user, temporary = os.getuid(), Path(tempfile.gettempdir())
    runtime = _RUNTIME / "user" / str(user) if user else _RUNTIME
    candidates = [runtime / _NAME] * ("TMPDIR" not in os.environ and _is_ours(runtime))
    suffixes = ("", *map(str, range(1, _TRIES)))
    candidates += [temporary / f"{_NAME}-{user}{suffix}" for suffix in suffixes]
    for folder in candidates:
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
        if _is_ours(folder):
            return folder
    raise MachineError(
        f"no folder to lock cores in: {temporary}/{_NAME}-{user} and {_TRIES - 1} more belong to "
        "other users: remove them"
    )


def _is_ours(folder: Path) -> bool:
    """Whether ``folder`` belongs to this user, and no other user can write to it."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    is_folder = folder.is_dir() and not folder.is_symlink()
    return is_folder and status.st_uid == os.getuid() and not status.st_mode & 0o022
