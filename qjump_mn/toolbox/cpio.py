"""Write initramfs archives ("newc" format): the same content gives the same bytes.

Names are sorted; times, owners, inode and device numbers are fixed. The format is in the kernel's
Documentation/driver-api/early-userspace/buffer-format.rst. Archives may be concatenated; the later
of two entries with one name wins.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_MTIME_S = 1_700_000_000  # any fixed time; the guest's clock starts later
_TRAILER = "TRAILER!!!"


@dataclass(frozen=True)
class Node:
    """An entry of an archive: `content` is a file's data or path, a link's target, or None for a
    folder."""

    mode: int
    content: bytes | Path | None = None

    @classmethod
    def folder(cls, mode: int = 0o755) -> Node:
        """Return a folder."""
        return cls(stat.S_IFDIR | mode)

    @classmethod
    def file(cls, content: bytes | Path, mode: int = 0o644) -> Node:
        """Return a regular file, from bytes or from a file that is read when the archive is
        written."""
        return cls(stat.S_IFREG | mode, content)

    @classmethod
    def link(cls, target: str) -> Node:
        """Return a symbolic link."""
        return cls(stat.S_IFLNK | 0o777, target.encode())


def archive(nodes: dict[str, Node]) -> Iterator[bytes]:
    """Yield the archive's bytes. Names are relative, without a leading slash; parent folders are
    added."""
    everything = {**{parent: Node.folder() for parent in _parents(nodes)}, **nodes}
    # A folder sorts before what is in it, for its name is a prefix; the kernel needs that order.
    for number, name in enumerate(sorted(everything), 1):
        node = everything[name]
        data = node.content.read_bytes() if isinstance(node.content, Path) else node.content or b""
        yield _header(name, node.mode, number, len(data))
        yield data
        yield bytes(-len(data) % 4)
    yield _header(_TRAILER, 0, 0, 0)


def _header(name: str, mode: int, inode: int, size: int) -> bytes:
    raw = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (
        inode,
        mode,
        0,
        0,
        links,
        _MTIME_S if name != _TRAILER else 0,
        size,
        0,
        0,
        0,
        0,
        len(raw),
        0,
    )
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + raw
    # Every part starts at a multiple of 4, and so does the next segment.
    return header + bytes(-len(header) % 4)


def _parents(names: Iterable[str]) -> set[str]:
    parents: set[str] = set()
    for name in names:
        parents.update(str(parent) for parent in PurePosixPath(name).parents)
    return parents - {"."}
