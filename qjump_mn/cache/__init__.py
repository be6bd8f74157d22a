"""Keep built files outside the checkout, as read-only folders, each under the hash of its inputs.

Layout: `<root>/<kind>/<hash>/` is an artefact. It is always complete, because it is built in
`<hash>.tmp-*` beside it and then renamed, while its builder holds a lock on `<hash>.lock`. The root
is $QJUMP_MN_CACHE, else /var/cache/qjump-mn, else ~/.cache/qjump-mn. Everybody uses what root has
built in /var/cache; users who may not write there build missing artefacts in their own home. A user
without a home must set $QJUMP_MN_CACHE to build anything. A root that every user may write to is
not used.

An artefact is not checked before use. `machine verify` compares its files with its SHA256SUMS
(sums.py) and removes damaged artefacts.

The standard library only: install/environment.py needs this before there is anything else.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from qjump_mn import syntax
from qjump_mn.cache import holds, sums
from qjump_mn.cache.sums import hash_of_file as hash_of_file
from qjump_mn.errors import MachineError, is_full, reason_of
from qjump_mn.process import variables

SHARED = Path("/var/cache/qjump-mn")
"""The root of artefacts that all users of a machine may take."""
SCRATCH = "tmp"
"""A folder of a root for files that last as long as a process."""

_MEBI = 1 << 20
_FORBIDDEN = (errno.EACCES, errno.EROFS, errno.EPERM)
_READ_ONLY = ContextVar("cache_read_only", default=False)

VERIFY = "run `qjump-mn machine verify`"
"""What to do where a file of the cache may be damaged."""


class NotBuiltError(MachineError):
    """An artefact is missing, and must not be built now."""


@dataclass(frozen=True)
class Entry:
    """An artefact in a listing: `size_bytes` on disk, `used_s` when it was last used, in Unix
    time."""

    kind: str
    hash: str
    path: Path
    size_bytes: int
    used_s: float


def roots() -> list[Path]:
    """Return the roots in search order; the first writable one takes new artefacts."""
    chosen = os.environ.get("QJUMP_MN_CACHE")
    if chosen:
        return [Path(chosen).absolute()]
    return [SHARED, Path(variables.user_cache()) / "qjump-mn"]


def writable_root() -> Path:
    """Return the root for new artefacts. Raises MachineError if none is writable."""
    reasons = []
    for root in roots():
        try:
            root.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            reasons.append(f"{root} ({(error.strerror or 'cannot be made').lower()})")
            continue
        if _is_exposed(root):
            reasons.append(f"{root} (every user may write there)")
        elif os.access(root, os.W_OK | os.X_OK):
            return root
        else:
            reasons.append(f"{root} (not writable)")
    raise MachineError(
        f"no folder for built files: {', '.join(reasons)}; set QJUMP_MN_CACHE to a folder that you "
        "may write"
    )


def hash_of(*parts: bytes | str) -> str:
    """Return a hash of the parts in their order.

    The length of each part counts, so two lists cannot collide by concatenation.
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:32]


def hash_of_code(path: Path) -> str:
    """Return a hash of a source file without comments, docstrings and formatting (syntax.py)."""
    return hash_of(syntax.reduced(path))


def find(kind: str, inputs_hash: str) -> Path | None:
    """Return the artefact's folder, or None. Nobody can remove it until this process ends."""
    for root in roots():
        path = root / kind / inputs_hash
        with contextlib.suppress(PermissionError):
            if path.is_dir() and not _is_exposed(root):
                return _used(path)
    return None


def artefact(
    kind: str,
    inputs_hash: str,
    build: Callable[[Path], None],
    *,
    needs_bytes: int = 0,
    progress: Callable[[str], None] = lambda line: None,
) -> Path:
    """Return the folder of an artefact, and build it if it is missing.

    `build` fills the empty folder that it is given, which is removed again if it raises. Two
    callers at once, in threads or processes, build once. `needs_bytes` is the room that a build
    takes. Raises MachineError when no root can be written or there is no room, NotBuiltError within
    :func:`read_only`, and whatever `build` raises.
    """
    if existing := find(kind, inputs_hash):
        return existing
    if _READ_ONLY.get():
        raise NotBuiltError(f"the {kind} is missing")
    root = writable_root()
    final = root / kind / inputs_hash
    try:
        final.parent.mkdir(mode=0o755, exist_ok=True)
        _give_back(final.parent, root)
        with _locked(final, progress):
            if not final.is_dir():  # else the process that held the lock has built it
                _sweep(final)
                if shutil.disk_usage(root).free < needs_bytes:
                    raise MachineError(_no_room(root, kind, needs_bytes))
                _build(final, build)
            return _used(final)
    except OSError as error:
        if is_full(error):
            raise MachineError(_no_room(root, kind, needs_bytes)) from error
        if error.errno in _FORBIDDEN and _is_within(error.filename, root):
            raise MachineError(
                f"{error.filename} cannot be written: make {root} yours or set QJUMP_MN_CACHE"
            ) from error
        raise


@contextlib.contextmanager
def read_only() -> Iterator[None]:
    """Within the block, :func:`artefact` builds nothing in this thread but raises NotBuiltError."""
    token = _READ_ONLY.set(True)
    try:
        yield
    finally:
        _READ_ONLY.reset(token)


def folders() -> list[Path]:
    """Return every artefact in every readable root."""
    found = (
        path for root in roots() for path in sorted(root.glob("*/*")) if path.parent.name != SCRATCH
    )
    return [path for path in found if path.is_dir() and ".tmp-" not in path.name]


def entries() -> list[Entry]:
    """Return an entry for every artefact in every readable root, the longest unused first."""
    artefacts = []
    for path in folders():
        with contextlib.suppress(FileNotFoundError):  # another process removes it now
            used_s = path.stat().st_mtime
            artefacts.append(Entry(path.parent.name, path.name, path, _size(path), used_s))
    return sorted(artefacts, key=lambda entry: entry.used_s)


def remove(path: Path) -> None:
    """Remove an artefact; it disappears at once and whole. Raises MachineError if it belongs to
    another user, or a process uses it."""
    try:
        with (
            contextlib.suppress(FileNotFoundError),
            _locked(path, lambda line: None),
            holds.alone(path),
        ):
            path.chmod(0o755)
            gone = Path(tempfile.mkdtemp(prefix=f"{path.name}.tmp-", dir=path.parent))
            path.rename(gone / "gone")
            shutil.rmtree(gone)
    except OSError as error:
        if error.errno not in _FORBIDDEN:
            raise
        raise MachineError(f"{path} belongs to another user: remove it as root") from error


def recorded_hash(path: Path) -> str:
    """Return a file's sha256 in hexadecimal, from its artefact's SHA256SUMS if it is in one.

    Raises MachineError if that list is damaged.
    """
    folder = _artefact_of(path)
    if folder is None or not (folder / sums.NAME).exists():
        return hash_of_file(path)
    try:
        return sums.read(folder)[str(path.relative_to(folder))]
    except (OSError, ValueError, KeyError) as error:
        raise MachineError(f"{folder} is damaged: {VERIFY}") from error


def check(*paths: Path) -> None:
    """Raise MachineError if one of these files is not what its artefact's SHA256SUMS says."""
    for path in paths:
        with sentences():
            if hash_of_file(path) != recorded_hash(path):
                raise MachineError(f"{path} is damaged: {VERIFY}")


@contextlib.contextmanager
def sentences() -> Iterator[None]:
    """Turn a system error about a file of the cache into a MachineError."""
    try:
        yield
    except OSError as error:
        if not any(_is_within(error.filename, root) for root in roots()):
            raise
        raise MachineError(
            f"{error.filename} cannot be used ({reason_of(error)}): {VERIFY}"
        ) from error


def prune(kind: str, keep: int) -> list[Entry]:
    """Remove the longest unused artefacts of a kind until `keep` are left; return the removed ones.

    Artefacts in use, or of another user, stay.
    """
    of_kind = [
        entry for entry in entries() if entry.kind == kind and os.access(entry.path.parent, os.W_OK)
    ]
    removed = []
    for entry in of_kind[: max(0, len(of_kind) - keep)]:
        with contextlib.suppress(MachineError):
            remove(entry.path)
            removed.append(entry)
    return removed


def sweep() -> None:
    """Remove what interrupted builds left in writable roots; builds in progress are left alone."""
    for root in roots():
        for lock in root.glob("*/*.lock"):
            with contextlib.suppress(OSError), lock.open("r+b") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _sweep(lock.with_suffix(""))


@contextlib.contextmanager
def _locked(final: Path, progress: Callable[[str], None]) -> Iterator[None]:
    # The lock file is never removed: otherwise two builders could lock two files of the same name.
    # The kernel drops the lock when its holder dies, so no lock outlives a killed build.
    with open(final.parent / f"{final.name}.lock", "ab") as lock:
        _give_back(Path(lock.name), final.parent)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another qjump-mn that builds the same {final.parent.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _give_back(path: Path, folder: Path) -> None:
    """Give a path that root creates in a user's cache, as under sudo, to that user."""
    owner = folder.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _used(path: Path) -> Path:
    with contextlib.suppress(OSError):  # another user's: its owner prunes it by the owner's use
        os.utime(path)
    holds.hold(path)
    return path


def _is_exposed(root: Path) -> bool:
    """Return whether every user may write to the folder, and so replace its content."""
    return bool(root.stat().st_mode & stat.S_IWOTH)


def _artefact_of(path: Path) -> Path | None:
    """Return the artefact that a file belongs to; None if it belongs to none."""
    for root in roots():
        if path.is_relative_to(root) and len(parts := path.relative_to(root).parts) > 2:
            return root / parts[0] / parts[1]
    return None


def _build(final: Path, build: Callable[[Path], None]) -> None:
    temporary = Path(tempfile.mkdtemp(prefix=f"{final.name}.tmp-", dir=final.parent))
    try:
        build(temporary)
        _open_to_readers(temporary)
        sums.write(temporary)
        # Only its own mode: those of its files travel into the guest's image.
        temporary.chmod(0o555)
        temporary.rename(final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _sweep(final: Path) -> None:
    # The caller holds the lock, so no running build uses a folder of this name.
    for left in final.parent.glob(f"{final.name}.tmp-*"):
        shutil.rmtree(left, ignore_errors=True)


def _open_to_readers(folder: Path) -> None:
    """Let everybody read what the owner may read, whatever the builder's umask."""
    for base, folders, files in os.walk(folder):
        for path in (base, *(os.path.join(base, name) for name in (*folders, *files))):
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                continue
            owner = status.st_mode & 0o500
            readable = stat.S_IMODE(status.st_mode) | owner >> 3 | owner >> 6
            if readable != stat.S_IMODE(status.st_mode):
                os.chmod(path, readable)


def _no_room(root: Path, kind: str, needs_bytes: int) -> str:
    free = shutil.disk_usage(root).free // _MEBI
    needs = f" of the {needs_bytes // _MEBI} MiB that it needs" if needs_bytes else ""
    room = f"no room for the {kind}: {root} has {free} MiB{needs}"
    return f"{room}; make room or set QJUMP_MN_CACHE to a folder on another disk"


def _is_within(name: object, root: Path) -> bool:
    return isinstance(name, str) and Path(name).is_relative_to(root)


def _size(folder: Path) -> int:
    total = 0
    for base, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                # Memory images have holes.
                total += os.lstat(os.path.join(base, name)).st_blocks * 512
    return total
