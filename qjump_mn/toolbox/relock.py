"""Renew locks from the mirrors' current packages."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from qjump_mn.errors import MachineError
from qjump_mn.process.files import write_atomically
from qjump_mn.toolbox import added, make_tree, sources
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox.lock import Lock, Locked, Package
from qjump_mn.toolbox.tree import host_program

_KEPT = "--skip=cleanup/apt/lists,cleanup/apt/cache,essential/unlink"
_TIME = "%Y%m%dT%H%M%SZ"


def renewed(name: str, progress: Callable[[str], None]) -> Lock:
    """Rewrite the lock of that name with the mirrors' current packages, and return it.

    Raises MachineError as making a tree does, or for a file that no package index lists.
    """
    lock, now = locks.read(name), time.strftime(_TIME, time.gmtime())
    if lock.variant == sources.VARIANT:
        made = sources.newest(lock, now)
    elif lock.variant == added.VARIANT:
        made = added.newest(lock, now, progress)
    else:
        made = _newest(lock, now, progress)
    write_atomically(locks.path_of(name), made.text.encode())
    return made


def _newest(lock: Lock, now: str, progress: Callable[[str], None]) -> Lock:
    """Return the lock with the packages of a tree made now."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "root")
        make_tree.newest(lock, root, progress, _KEPT)
        paths = dict(_listed(root / "var/lib/apt/lists"))
        have = [
            _described(path, paths)
            for path in sorted((root / "var/cache/apt/archives").glob("*.deb"))
        ]
    return replace(lock, time=now, have=tuple(sorted(have, key=_place)))


def _place(one: Locked) -> tuple[str, str]:
    """Return the sort key of a package in a lock."""
    return one.package.name, one.package.architecture


def _listed(lists: Path) -> Iterator[tuple[str, str]]:
    """Return the SHA-256 of every file that a mirror has, with its path in Debian's archives."""
    for path in lists.glob("*_Packages*"):
        archive = path.name.partition("_dists_")[0].rstrip("_").rpartition("_")[2]
        text = subprocess.run(
            [host_program("/usr/lib/apt/apt-helper"), "cat-file", str(path)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for stanza in text.split("\n\n"):
            fields = dict(re.findall(r"^(Filename|SHA256): (.*)$", stanza, re.MULTILINE))
            if fields:
                yield fields["SHA256"], f"{archive}/{fields['Filename']}"


def _described(path: Path, paths: dict[str, str]) -> Locked:
    data = path.read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 not in paths:
        raise MachineError(
            f"no list of packages tells of {path.name}: the mirror's lists are not of its files"
        )
    fields = "--showformat=${Package} ${Version} ${Architecture}"
    argv = [host_program("dpkg-deb"), "--show", fields, str(path)]
    words = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    return Locked(Package(*words), len(data), sha256, paths[sha256])
