"""Artefacts kept outside the checkout, each under the hash of everything that made it.

Layout: `<root>/<kind>/<hash>/` is an artefact and is always complete, for it appears by a rename;
`<hash>.lock` beside it is what builders hold while they build, `<hash>.tmp-*` what they build in. The root is
$QJUMP_MN_CACHE, else /var/cache/qjump-mn, else ~/.cache/qjump-mn: what root built in /var/cache is used by
everybody, whoever may not write there builds what is missing in a home of their own. A user without a home
must set $QJUMP_MN_CACHE to build anything.

An artefact has a record of its files (cached_files.py). One that is damaged, as far as a glance tells, is not
found, and whoever wants it removes it and builds it again.
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
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from qjump_mn import cache_holds, cache_read_only, cached_files, syntax, variables
from qjump_mn.errors import MachineError, is_full, reason_of

SHARED = Path("/var/cache/qjump-mn")
"""The root of artefacts that all users of a machine may take."""
SCRATCH = "tmp"
"""A folder of a root for files that last as long as a process."""

_MEBI = 1 << 20
_FORBIDDEN = (errno.EACCES, errno.EROFS, errno.EPERM)
_BY_ROOT = "root must remove it, by `qjump-mn machine verify`"

VERIFY = "run `qjump-mn machine verify`"
"""What to do where a file of the cache may be damaged."""

IN_USE_S = 3600.0
"""An artefact may be needed for so long after it was asked for: a trial waits for a core, and then runs."""


class DamagedError(MachineError):
    """An artefact was damaged. It is gone: asked for again, it is built anew."""


@dataclass(frozen=True)
class Entry:
    """One artefact as `clean` shows it: `size_bytes` as the disk counts it, `used_s` when it was last used,
    in Unix time."""

    kind: str
    hash: str
    path: Path
    size_bytes: int
    used_s: float


def roots() -> list[Path]:
    """Where artefacts are looked for, in this order; the first that can be written is where new ones go."""
    chosen = os.environ.get("QJUMP_MN_CACHE")
    if chosen:
        return [Path(chosen).absolute()]
    return [SHARED, Path(variables.user_cache()) / "qjump-mn"]


def writable_root() -> Path:
    """The root that new artefacts go to. Raises MachineError when none can be written."""
    reasons = []
    for root in roots():
        try:
            root.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            reasons.append(f"{root} ({(error.strerror or 'cannot be made').lower()})")
            continue
        if os.access(root, os.W_OK | os.X_OK):
            return root
        reasons.append(f"{root} (not writable)")
    raise MachineError(
        f"no folder for built files: {', '.join(reasons)}; set QJUMP_MN_CACHE to a folder that you may write"
    )


def hash_of(*parts: bytes | str) -> str:
    """A hash of the parts in their order; the length of each counts, so that no two lists collide by
    concatenation."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:32]


def hash_of_file(path: Path) -> str:
    """The sha256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_of_code(path: Path) -> str:
    """A hash of what a source file does: comments, docstrings and formatting do not count (syntax.py)."""
    return hash_of(syntax.reduced(path))


def find(kind: str, inputs_hash: str) -> Path | None:
    """The artefact if it is in any root and a glance finds no damage, else None."""
    for path in _places(kind, inputs_hash):
        if cached_files.glance(path) is None:
            used(path)
            return path
    return None


def damage(kind: str, inputs_hash: str) -> str:
    """In a sentence, why `find` does not find an artefact that is there; empty if it does, or if none is."""
    sentences = []
    for path in _places(kind, inputs_hash):
        damage = cached_files.glance(path)
        if damage is None:
            return ""
        sentences.append(_damaged(path, damage))
    return sentences[0] if sentences else ""


def used(path: Path) -> None:
    """Say that the artefact at ``path`` is in use: it is not pruned for some time."""
    with contextlib.suppress(OSError):  # not ours: its owner prunes by the owner's use
        os.utime(path)
    cache_holds.used(path)


def artefact(
    kind: str,
    inputs_hash: str,
    build: Callable[[Path], None],
    *,
    needs_bytes: int = 0,
    progress: Callable[[str], None] = lambda line: None,
    is_vital: Callable[[str], bool] = lambda name: True,
) -> Path:
    """The folder of an artefact, built now if there is none, or a damaged one.

    `build` fills the empty folder that it is given; the folder is published when it returns and vanishes when
    it raises. Two callers at once, in threads or processes, build once. `needs_bytes` is the room that a
    build takes. `is_vital` is given the names of files in it, and says which are looked at before each use:
    for an artefact of thousands of files. Raises MachineError when no root can be written or there is no
    room, NotBuiltError where the cache is read-only (cache_read_only.py), and whatever `build` raises.
    """
    existing = find(kind, inputs_hash)
    if existing:
        return existing
    cache_read_only.check(damage(kind, inputs_hash) or f"the {kind} is missing")
    root = writable_root()
    final = root / kind / inputs_hash
    for path in _places(kind, inputs_hash):
        if path != final and (defect := cached_files.glance(path)):
            progress(f"{_damaged(path, defect)}: {_BY_ROOT}")
    try:
        final.parent.mkdir(mode=0o755, exist_ok=True)
        _give_back(final.parent, root)
        with _building(final, progress):
            if final.is_dir():
                defect = cached_files.glance(final)
                if defect is None:  # built by the one whom we waited for
                    return final
                progress(f"{_damaged(final, defect)}: it is made again")
                _discard(final)
            _sweep(final)
            _check_room(root, needs_bytes, kind)
            _build(final, build, is_vital)
            used(final)
    except OSError as error:
        if is_full(error):
            raise MachineError(_no_room(root, kind, needs_bytes)) from error
        if error.errno in _FORBIDDEN and _is_within(error.filename, root):
            raise MachineError(
                f"{error.filename} cannot be written: make {root} yours or set QJUMP_MN_CACHE"
            ) from error
        raise
    return final


def folders() -> list[Path]:
    """Every artefact in every root that can be read."""
    found = (path for root in roots() for path in sorted(root.glob("*/*")) if path.parent.name != SCRATCH)
    return [path for path in found if path.is_dir() and ".tmp-" not in path.name]


def entries() -> list[Entry]:
    """Everything in every root that can be read, the longest unused first."""
    artefacts = []
    for path in folders():
        with contextlib.suppress(FileNotFoundError):  # another process removes it now
            used_s = path.stat().st_mtime
            artefacts.append(Entry(path.parent.name, path.name, path, _size(path), used_s))
    return sorted(artefacts, key=lambda entry: entry.used_s)


def remove(entry: Entry) -> None:
    """Remove an artefact; it disappears at once and whole. Raises MachineError when it is not ours to
    remove, or a run uses it."""
    with _ours(entry.path, remedy="remove it as root"), _building(entry.path, lambda line: None):
        if cache_holds.is_held(entry.path):
            raise MachineError(f"{entry.path} stays: a run uses it; remove it when the run has ended")
        _discard(entry.path)


def remove_damaged(path: Path, folder: int, progress: Callable[[str], None] = lambda line: None) -> bool:
    """Remove the artefact at `path`, if it is still the open `folder`; whether it was.

    Another process may have made it anew meanwhile. Raises MachineError when it is not ours to remove.
    """
    with _ours(path), _building(path, progress):
        try:
            is_it = os.path.samestat(os.fstat(folder), path.stat())
        except FileNotFoundError:
            return False
        if is_it:
            _discard(path)
        return is_it


def disown(path: Path) -> None:
    """Make an artefact count as damaged without removing it. Raises MachineError when it is not ours."""
    with _ours(path):
        cached_files.disown(path)


def checked_hash(path: Path) -> str:
    """The sha256 of a file's content, in hexadecimal, compared with the record of the artefact that it is in.

    Raises DamagedError where they differ, MachineError when the artefact is not ours to remove, and
    NotBuiltError where the cache is read-only.
    """
    sha256 = hash_of_file(path)
    for root in roots():
        if path.is_relative_to(root) and len(parts := path.relative_to(root).parts) > 2:
            folder, name = root / parts[0] / parts[1], "/".join(parts[2:])
            if _is_other(folder, name, sha256):
                return _hash_under_lock(folder, name)
    return sha256


@contextlib.contextmanager
def sentences() -> Iterator[None]:
    """Makes a MachineError of the system's error about a file of the cache: it is not there, no program, or
    cannot be read."""
    try:
        yield
    except OSError as error:
        if not any(_is_within(error.filename, root) for root in roots()):
            raise
        raise MachineError(f"{error.filename} cannot be used ({reason_of(error)}): {VERIFY}") from error


def prune(kind: str, keep: int) -> list[Entry]:
    """Remove the longest unused artefacts of a kind until `keep` are left, as far as they are ours; returns
    what was removed.

    What was used within IN_USE_S stays: somebody may be about to start from it.
    """
    of_kind = [entry for entry in entries() if entry.kind == kind and os.access(entry.path.parent, os.W_OK)]
    surplus = [
        entry
        for entry in of_kind[: max(0, len(of_kind) - keep)]
        if entry.used_s < time.time() - IN_USE_S and not cache_holds.is_held(entry.path)
    ]
    for entry in surplus:
        remove(entry)
    return surplus


def sweep() -> None:
    """Remove what interrupted builds left in the roots that can be written; a build that is going on is left
    alone."""
    for root in roots():
        for lock in root.glob("*/*.lock"):
            with contextlib.suppress(OSError), lock.open("r+b") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _sweep(lock.with_suffix(""))


@contextlib.contextmanager
def _building(final: Path, progress: Callable[[str], None]) -> Iterator[None]:
    # The lock file stays for ever: removing it would let two builders hold locks on two files of one name.
    # The kernel drops the lock when its holder dies, so no lock outlives a killed build.
    with open(final.parent / f"{final.name}.lock", "ab") as lock:
        os.set_inheritable(lock.fileno(), False)
        _give_back(Path(lock.name), final.parent)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another qjump-mn that builds the same {final.parent.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _give_back(path: Path, folder: Path) -> None:
    """Give what root makes in the cache of a user, as under sudo, to that user, who builds beside it."""
    owner = folder.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _places(kind: str, inputs_hash: str) -> Iterator[Path]:
    """Where an artefact is, whole or not."""
    for root in roots():
        path = root / kind / inputs_hash
        with contextlib.suppress(PermissionError):
            if path.is_dir():
                yield path


def _damaged(path: Path, damage: cached_files.Damage) -> str:
    return f"{path.parent.name} {path} is damaged, {damage}"


@contextlib.contextmanager
def _ours(path: Path, damage: cached_files.Damage | None = None, remedy: str = _BY_ROOT) -> Iterator[None]:
    """Makes a MachineError of the system's word that an artefact is not ours to change."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FORBIDDEN:
            raise
        what = _damaged(path, damage) if damage else f"{path} belongs to another user"
        raise MachineError(f"{what}: {remedy}") from error


def _is_other(folder: Path, name: str, sha256: str) -> bool:
    """Whether the record of an artefact has another hash of this file."""
    entry = cached_files.recorded(folder, name)
    return entry is not None and entry.sha256 != sha256


def _hash_under_lock(folder: Path, name: str) -> str:
    changed = cached_files.Damage(name, "has other content")
    cache_read_only.check(_damaged(folder, changed))
    # Another process may have found the same damage and made the artefact anew since we read the file.
    with contextlib.suppress(FileNotFoundError), _ours(folder, changed), _building(folder, lambda line: None):
        sha256 = hash_of_file(folder / name)
        if not _is_other(folder, name, sha256):
            return sha256
        _discard(folder)
    raise DamagedError(_damaged(folder, changed))


def _discard(path: Path) -> None:
    """Remove an artefact, of which the caller holds the lock: it disappears at once and whole."""
    gone = Path(tempfile.mkdtemp(prefix=f"{path.name}.tmp-", dir=path.parent))
    with contextlib.suppress(FileNotFoundError):
        path.rename(gone / "gone")
    shutil.rmtree(gone)


def _build(final: Path, build: Callable[[Path], None], is_vital: Callable[[str], bool]) -> None:
    temporary = Path(tempfile.mkdtemp(prefix=f"{final.name}.tmp-", dir=final.parent))
    try:
        build(temporary)
        _open_to_readers(temporary)
        cached_files.write(temporary, is_vital)
        temporary.rename(final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _sweep(final: Path) -> None:
    # Only the holder of the lock comes here: a folder of this name belongs to nobody who lives.
    for left in final.parent.glob(f"{final.name}.tmp-*"):
        shutil.rmtree(left, ignore_errors=True)


def _open_to_readers(folder: Path) -> None:
    """Let everybody read what its owner may read, whatever umask it was built with."""
    for base, folders, files in os.walk(folder):
        for path in (base, *(os.path.join(base, name) for name in (*folders, *files))):
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                continue
            owner = status.st_mode & 0o500
            readable = stat.S_IMODE(status.st_mode) | owner >> 3 | owner >> 6
            if readable != stat.S_IMODE(status.st_mode):
                os.chmod(path, readable)


def _check_room(root: Path, needs_bytes: int, kind: str) -> None:
    if shutil.disk_usage(root).free < needs_bytes:
        raise MachineError(_no_room(root, kind, needs_bytes))


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
                total += os.lstat(os.path.join(base, name)).st_blocks * 512  # memory images have holes
    return total
