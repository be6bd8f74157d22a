"""What the files of an artefact were when it was published, and whether they still are that.

The record is the file RECORD in the artefact's folder. Every line but the first is a file, a folder or a link
below the folder: its `st_mode` in octal, its size in bytes, the SHA-256 of its content (of a link: of where
it leads), and its name. The vital ones come first, so that a glance reads these alone; the first line has
the bytes and the SHA-256 of their lines, then of the others.

The standard library only: environment.py needs this before there is anything else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

RECORD = ".files"
"""Its name in an artefact. What was published by a qjump-mn that wrote none has none, and is not checked."""

_TITLE = b"qjump-mn files 1"
_SMALL_BYTES = 8 << 20
"""An artefact of up to this size is hashed at every glance: 4 ms."""

_HEAD_BYTES = 256
_CHUNK_BYTES = 1 << 20
_ZEROS = bytes(_CHUNK_BYTES)
_MODE = 0o1777  # not set-user bits: copies lose them, and nothing here needs them
_KINDS = {stat.S_IFREG: "a file", stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link"}


class Entry(NamedTuple):
    """A line of a record; `name` is relative to the artefact."""

    name: str
    mode: int
    size_bytes: int
    sha256: str


class Damage(NamedTuple):
    """A file that is not what it was, and how, as the rest of a sentence that begins with its name."""

    name: str
    how: str

    def __str__(self) -> str:
        return f"{self.name} {self.how}"


def write(folder: Path, is_vital: Callable[[str], bool] = lambda name: True) -> None:
    """Write the record of all that is in the folder.

    `is_vital` is given each name; it says what :func:`glance` looks at. Measured: 36,000 files of 1.2 GB in
    3 to 5 s, a memory image of 1 GB with 400 MB of data in 1 s.
    """
    lines: dict[bool, list[bytes]] = {True: [], False: []}
    for name, status in _walk(folder):
        sha256 = _content_hash(folder / name, status) or "-"
        size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
        written = os.fsencode(name).replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
        lines[is_vital(name)].append(b"%o %d %s %s\n" % (status.st_mode, size, sha256.encode(), written))
    parts = [b"".join(lines[is_first]) for is_first in (True, False)]
    head = b" ".join((_TITLE, *(b"%d %s" % (len(part), _sha256(part)) for part in parts)))
    path = folder / RECORD
    path.write_bytes(b"\n".join((head, b"".join(parts))))
    path.chmod(0o644)


def disown(folder: Path) -> None:
    """Empty the record, so that the artefact counts as damaged: for one that cannot be removed while it is in
    use."""
    os.truncate(folder / RECORD, 0)


def has_record(folder: Path) -> bool:
    """Whether the artefact can be checked."""
    return os.path.lexists(folder / RECORD)


def glance(folder: Path) -> Damage | None:
    """The first damage that a quick look finds: at type, mode and size of what is vital, and at the content
    of a small artefact. None where there is no record.

    Measured: 1,200 vital files of the toolbox in 4 to 9 ms.
    """
    if not has_record(folder):
        return None
    try:
        entries, has_more = _read(folder, whole=False)
    except (OSError, ValueError):
        return Damage(RECORD, "is damaged")
    is_small = not has_more and sum(entry.size_bytes for entry in entries) <= _SMALL_BYTES
    return next(_damages(folder, entries, with_content=is_small), None)


def examine(folder: Path) -> Iterator[Damage]:
    """Every damage of an artefact that has a record, every byte read. Files that the record does not have
    are damage too, but for bytecode, which Python adds."""
    try:
        entries, _ = _read(folder, whole=True)
    except (OSError, ValueError):
        yield Damage(RECORD, "is damaged")
        return
    yield from _damages(folder, entries, with_content=True)
    names = {entry.name for entry in entries}
    for name, _ in _walk(folder):
        if name not in names and "__pycache__" not in Path(name).parts:
            yield Damage(name, "does not belong to it")


def recorded(folder: Path, name: str) -> Entry | None:
    """What the record says of a vital file; None where it says nothing or there is none."""
    try:
        entries, _ = _read(folder, whole=False)
    except (OSError, ValueError):
        return None
    return next((entry for entry in entries if entry.name == name), None)


def _damages(folder: Path, entries: list[Entry], *, with_content: bool) -> Iterator[Damage]:
    for entry in entries:
        path = os.path.join(folder, entry.name)
        try:
            status = os.lstat(path)
            how = _difference(entry, status)
            if with_content and not how and (_content_hash(path, status) or "-") != entry.sha256:
                how = f"leads to {os.readlink(path)}" if stat.S_ISLNK(status.st_mode) else "has other content"
        except (FileNotFoundError, NotADirectoryError):
            how = "is missing"
        except OSError as error:
            how = f"cannot be read: {(error.strerror or str(error)).lower()}"
        if how:
            yield Damage(entry.name, how)


def _difference(entry: Entry, status: os.stat_result) -> str:
    """How a file differs from its entry as far as its status tells; empty if it does not."""
    kind, size = stat.S_IFMT(entry.mode), status.st_size
    if stat.S_IFMT(status.st_mode) != kind:
        return f"is not {_KINDS.get(kind, 'what it was')} any more"
    if stat.S_ISREG(kind) and size != entry.size_bytes:
        if size > entry.size_bytes:
            return f"has {size} bytes, not {entry.size_bytes}"
        return f"is cut to {size} of {entry.size_bytes} bytes" if size else "is empty"
    if not stat.S_ISLNK(kind) and (status.st_mode ^ entry.mode) & _MODE:
        return f"has the mode {status.st_mode & _MODE:o}, not {entry.mode & _MODE:o}"
    return ""


def _read(folder: Path, *, whole: bool) -> tuple[list[Entry], bool]:
    """The entries of a record, the vital ones or all, and whether there are others than vital ones. Raises
    ValueError for a record that is damaged."""
    with (folder / RECORD).open("rb") as file:
        head = file.readline(_HEAD_BYTES)
        title, *fields = head.rstrip(b"\n").rsplit(b" ", 4)
        if title != _TITLE or len(fields) != 4:
            raise ValueError(head)
        sizes = [int(fields[0]), int(fields[2])]
        parts = [file.read(size) for size in sizes[: 1 + whole]]
        is_whole = os.fstat(file.fileno()).st_size == len(head) + sum(sizes)
    if not is_whole or any(_sha256(part) != known for part, known in zip(parts, fields[1::2], strict=False)):
        raise ValueError(head)
    return [_entry(line) for part in parts for line in part.split(b"\n")[:-1]], sizes[1] > 0


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _entry(line: bytes) -> Entry:
    mode, size, sha256, name = line.split(b" ", 3)
    if b"\\" in name:
        name = re.sub(rb"\\(.)", lambda found: b"\n" if found[1] == b"n" else found[1], name)
    return Entry(os.fsdecode(name), int(mode, 8), int(size), sha256.decode())


def _walk(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below the folder but the record, in one order: names, and what lstat says."""
    top = os.fspath(folder)
    for base, folders, files in os.walk(top):
        folders.sort()
        for name in sorted((*folders, *files)):
            path = os.path.join(base, name)
            relative = path[len(top) + 1 :]
            if relative != RECORD:
                with contextlib.suppress(FileNotFoundError):  # somebody removes it just now
                    yield relative, os.lstat(path)


def _content_hash(path: str | Path, status: os.stat_result) -> str:
    """The SHA-256 of a file's content, or of where a link leads; empty for anything else."""
    if stat.S_ISLNK(status.st_mode):
        return hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
    if not stat.S_ISREG(status.st_mode):
        return ""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        if status.st_blocks * 512 < status.st_size:
            _digest_with_holes(digest, file.fileno(), status.st_size)
        else:
            while data := file.read(_CHUNK_BYTES):
                digest.update(data)
    return digest.hexdigest()


def _digest_with_holes(digest: hashlib._Hash, file: int, end: int) -> None:
    # A hole is zeros that nobody has to read: of a memory image they are two thirds.
    at = 0
    while at < end:
        try:
            data = os.lseek(file, at, os.SEEK_DATA)
            hole = os.lseek(file, data, os.SEEK_HOLE)
        except OSError:  # ENXIO: no data any more
            data = hole = end
        while at < data:
            zeros = _ZEROS[: data - at]
            digest.update(zeros)
            at += len(zeros)
        while at < hole:
            content = os.pread(file, min(hole - at, _CHUNK_BYTES), at)
            if not content:
                return
            digest.update(content)
            at += len(content)
