"""Trees of what a Debian mirror has now of some packages, kept in the project's cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from qjump_mn import cache
from qjump_mn.toolbox import make_tree, mirrors
from qjump_mn.toolbox.lock import Lock
from qjump_mn.toolbox.tree import Tree

SUITE = "bookworm"
_NEEDS_BYTES = 2 << 30


def newest(name: str, packages: Sequence[str], progress: Callable[[str], None]) -> Tree:
    """A Debian 12 with these packages. Raises MachineError where it cannot be made."""
    lock = Lock(name=name, suite=SUITE, variant="minbase", time="", ask=tuple(packages), have=())

    def fill(folder: Path) -> None:
        make_tree.newest(lock, folder / "root", progress)

    key = cache.hash_of(SUITE, *packages, *mirrors.lines(SUITE))
    folder = cache.artefact(name, key, fill, needs_bytes=_NEEDS_BYTES, progress=progress)
    return Tree(folder / "root")
