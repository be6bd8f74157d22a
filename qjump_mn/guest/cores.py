"""One core for each guest: its kernel and its programs take turns, and two at once would share what there is.

Who asks first is served first, among all processes and threads of a user; but one that is long lets those
pass that come within ten minutes and are short. A folder holds a file for each core, which its holder locks,
and a file for each thread that waits, which that thread locks and whose name is the time since boot when it
asked, ten minutes later for a long one (no change of the clock matters). The kernel drops the locks of
whoever dies; a file of the dead is removed by the next who looks. No lock is ever waited for, so that a
process that is stopped stops nobody else.
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
"""Every line about waiting begins so."""

YIELDS_S = 600
"""So long a long guest that waits lets short ones pass."""

_POLL_S = 0.05
_SILENT_S = 1.0
_NAME = "qjump-mn-cores"
_TRIES = 100
_RUNTIME = Path("/run")


class StoppedError(LostError):
    """It was not started: the run was ended before."""


class BusyError(MachineError):
    """Other processes had all cores, for longer than the caller wanted to wait."""


@contextmanager
def core(
    progress: Progress = lambda line: None,
    stop: threading.Event | None = None,
    *,
    patience_s: float = math.inf,
    long: bool = False,
) -> Iterator[int]:
    """Take a core that no other guest of this user has, waiting until there is one; its number. A ``long``
    one lets others pass for a while.

    It is free again with the block, or when this process ends, whatever ends it. After a second of waiting,
    ``progress`` is told which other processes have the cores and how many threads of theirs are ahead, and
    again when that has changed. Raises :class:`BusyError` after ``patience_s``, and :class:`StoppedError`
    once ``stop`` is set.
    """
    folder = _folder()
    with _ticket(folder, YIELDS_S * 10**9 if long else 0) as ticket:
        number, slot = _wait(folder, ticket, progress, stop or threading.Event(), patience_s)
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
) -> tuple[int, int]:
    """The core's number and the handle that holds it."""
    began = time.monotonic()
    reported, line, line_s = "", "", began
    while not stop.is_set():
        cores, before = os.sched_getaffinity(0), _before(folder, ticket)
        # A core that somebody before us may use is left to them.
        for number in sorted(cores.difference(*before.values())):
            if (slot := _take(folder / str(number))) is not None:
                return number, slot
        now = time.monotonic()
        if now - began > patience_s:
            raise BusyError(_taken(_holders(folder, cores)))
        if (current := _line(_holders(folder, cores), before)) != line:
            line, line_s = current, now
        # A core is free for a moment before the next one takes it, which is not worth a line.
        if line != reported and now - line_s > _SILENT_S:
            progress(line)
            reported = line
        stop.wait(_POLL_S)
    raise StoppedError("it was ended while it waited for a core")


def _line(holders: Mapping[int, float], before: Iterable[int]) -> str:
    """Such as "waits for a core: pid 12 since 18:02, 34 since 18:05; 2 ahead"."""
    clocks = (f"{pid} since {time.strftime('%H:%M', time.localtime(at))}" for pid, at in holders.items())
    ahead = len(set(before).difference(thread.native_id for thread in threading.enumerate()))
    parts = [f"pid {', '.join(clocks)}"] if holders else []
    parts += [f"{ahead} ahead"] if ahead else []
    return ": ".join([WAITS, "; ".join(parts)] if parts else [WAITS])


def _taken(holders: Collection[int]) -> str:
    pids = f" (pid{'s' if len(holders) > 1 else ''} {', '.join(map(str, holders))})" if holders else ""
    return f"all cores are taken{pids}"


@contextmanager
def _ticket(folder: Path, later_ns: int) -> Iterator[str]:
    """The name of a locked file that stands in the queue for this thread, as if it asked so much later."""
    while True:
        path = folder / f"wait-{_since_boot_ns() + later_ns:020d}-{threading.get_native_id()}"
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


def _before(folder: Path, ticket: str) -> dict[int, set[int]]:
    """For each thread that comes before and still waits: the cores that it may use. Files of the dead are
    removed."""
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
                        if stat(thread)[:1] != ["T"]:  # Ctrl-Z: it keeps its place and nobody waits for it
                            waiting[thread] = os.sched_getaffinity(thread)
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
    os.pwrite(handle, f"{os.getpid()} {_since_boot_ns()}".encode(), 0)
    return handle


def _holders(folder: Path, cores: set[int]) -> dict[int, float]:
    """The other processes that have these cores, by pid: since when each has one, in Unix time, the longest
    first."""
    since: dict[int, float] = {}
    for number in cores:
        with suppress(FileNotFoundError, ValueError):  # it is free, or being taken right now
            pid, since_ns = map(int, (folder / str(number)).read_text().split()[:2])
            began = time.time() - (_since_boot_ns() - since_ns) / 1e9
            since[pid] = min(began, since.get(pid, math.inf))
    since.pop(os.getpid(), None)
    return dict(sorted(since.items(), key=lambda holder: holder[1]))


def _since_boot_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _folder() -> Path:
    """The folder of this user's slots on this machine, the same for all sessions of the user.

    Only the user can make a folder in ``/run`` (as root) or ``/run/user/UID``. In ``/tmp`` anybody can, and
    so stop the user's runs: the first name there that is free or the user's own is taken. ``TMPDIR`` comes
    before them.
    """
    user, temporary = os.getuid(), Path(tempfile.gettempdir())
    runtime = _RUNTIME / "user" / str(user) if user else _RUNTIME
    places = [runtime / _NAME] * ("TMPDIR" not in os.environ and _is_ours(runtime))
    places += [temporary / f"{_NAME}-{user}{suffix}" for suffix in ("", *map(str, range(1, _TRIES)))]
    for folder in places:
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
        if _is_ours(folder):
            return folder
    raise MachineError(
        f"no folder for who has which core: {temporary}/{_NAME}-{user} and {_TRIES - 1} more belong to "
        "others: remove them"
    )


def _is_ours(folder: Path) -> bool:
    """Whether it is a folder of this user that nobody else may write."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    is_folder = folder.is_dir() and not folder.is_symlink()
    return is_folder and status.st_uid == os.getuid() and not status.st_mode & 0o022
