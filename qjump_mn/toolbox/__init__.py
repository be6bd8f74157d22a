"""Make and find the Debian trees that everything is built in.

The toolbox has the compilers, and the programs of the guest. Another tree builds the guest's
kernel, and tests use a few more. Nothing comes from the host, because results depend on the exact
kernel, compiler and programs.

mmdebstrap makes each tree from the packages of its lock (lock.py); the toolbox takes 0.9 GB. If a
locked package is no longer available anywhere, or with ``newest``, the toolbox is made from the
mirror's current packages. That is another machine under another key, and every run says so.
`qjump-mn machine lock` rewrites the locks.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from qjump_mn import cache
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox import make_tree
from qjump_mn.toolbox.lock import Lock
from qjump_mn.toolbox.packages import GoneError
from qjump_mn.toolbox.tree import Tree

__all__ = [
    "NAME",
    "Tree",
    "damage",
    "differences",
    "found",
    "kernel_source",
    "made",
    "newest",
    "style_tools",
    "summary",
    "toolbox",
]

Progress = Callable[[str], None]

NAME = "toolbox"
"""The lock of the toolbox."""

_RECIPE = "4"  # counts up when what is made of one lock changes
# 1.2 GB of tree beside 0.4 GB of packages while one is made, and some air.
_NEEDS_BYTES = 2500 << 20
_CHECKPATCH = ("scripts/checkpatch.pl", "scripts/spelling.txt", "scripts/const_structs.checkpatch")


def toolbox(progress: Progress = lambda line: None) -> Tree:
    """Return the toolbox, made now if there is none: from its lock, else from the mirror's
    packages.

    Raises MachineError with what making it needs.
    """
    tree = found()
    if tree is None and make_tree.by_sudo():
        tree = found()
    if tree is not None:
        return tree
    try:
        return made(NAME, progress)
    except GoneError as error:
        progress(f"{error}: takes what the mirror has now, which is another machine")
        return newest(progress)


def found() -> Tree | None:
    """Return the toolbox in the cache, or None; the locked one if there are both."""
    lock = locks.read(NAME)
    for key in (_key(lock), _key_of_newest(lock)):
        if path := cache.find("toolbox", key):
            return Tree(path / "root")
    return None


def newest(progress: Progress = lambda line: None) -> Tree:
    """Return a toolbox of the mirror's current packages. Raises as :func:`toolbox` does."""
    lock = locks.read(NAME)
    return Tree(_kept(lock, _key_of_newest(lock), make_tree.newest, progress))


def made(name: str, progress: Progress = lambda line: None) -> Tree:
    """Return the tree of a lock, made now if there is none.

    Raises GoneError if its packages are not available anywhere, and as :func:`toolbox` does.
    """
    lock = locks.read(name)
    return Tree(_kept(lock, _key(lock), make_tree.locked, progress))


def style_tools(progress: Progress = lambda line: None) -> Tree:
    """Return a tree with the tools for style tests: groff, and at its top the kernel's
    checkpatch.pl.

    Its packages are unpacked but not installed, so use `Tree.program`. Raises as :func:`made` does.
    """
    lock, scripts = locks.read("style"), kernel_source(_CHECKPATCH, progress)

    def make(lock: Lock, root: Path, progress: Progress) -> None:
        make_tree.locked(lock, root, progress)
        shutil.copytree(scripts, root, dirs_exist_ok=True)

    return Tree(_kept(lock, cache.hash_of(_key(lock), scripts.parent.name), make, progress))


def kernel_source(names: Sequence[str], progress: Progress = lambda line: None) -> Path:
    """Return a folder with files of the guest kernel's source, for tests.

    150 MB are downloaded once. Raises as :func:`made` does.
    """
    lock = locks.read("source")

    def build(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            make_tree.locked(lock, Path(scratch, "root"), progress)
            (archive,) = Path(scratch, "root").glob("usr/src/linux-source-*.tar.xz")
            with tarfile.open(archive, "r|xz") as members:
                for member in members:
                    name = member.name.partition("/")[2]
                    if name in names and (content := members.extractfile(member)):
                        path = folder / "source" / name
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(content.read())

    key = cache.hash_of(_key(lock), *names)
    return (
        cache.artefact("source", key, build, needs_bytes=_NEEDS_BYTES, progress=progress) / "source"
    )


def differences(tree: Tree) -> list[str]:
    """Return a sentence for each package that differs from the toolbox's lock."""
    locked = {one.package.name: one.package.version for one in locks.read(NAME).have}
    built = {package.name: package.version for package in tree.packages}
    sentences = []
    for name in sorted(locked.keys() | built.keys()):
        if name not in built:
            sentences.append(f"{name} is absent, the reference has {locked[name]}")
        elif name not in locked:
            sentences.append(f"{name} is {built[name]}, the reference has none")
        elif built[name] != locked[name]:
            sentences.append(f"{name} is {built[name]}, the reference has {locked[name]}")
    return sentences


def summary(differences: Sequence[str]) -> str:
    """Return the first difference, and how many more there are."""
    more = f", and {len(differences) - 1} more" if len(differences) > 1 else ""
    return f"{differences[0]}{more}"


def _kept(
    lock: Lock, key: str, make: Callable[[Lock, Path, Progress], None], progress: Progress
) -> Path:
    def build(folder: Path) -> None:
        make(lock, folder / "root", progress)

    tree = cache.artefact("toolbox", key, build, needs_bytes=_NEEDS_BYTES, progress=progress)
    return tree / "root"


def _key(lock: Lock) -> str:
    return cache.hash_of(_RECIPE, lock.identity)


def _key_of_newest(lock: Lock) -> str:
    return cache.hash_of("newest", _key(lock))
