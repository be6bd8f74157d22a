"""Mirrors of our own that have moved on: repositories of locked packages, of which one is a newer
version."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from qjump_mn.install import environment
from qjump_mn.toolbox import packages
from qjump_mn.toolbox.lock import Lock

CHECKOUT = environment.CHECKOUT


def mirror(lock: Lock, folder: Path, progress: Callable[[str], None]) -> Path:
    """The folder of a mirror that has what the lock says, made in a folder."""
    packages.gather(lock, folder / "had", progress)
    made = folder / "debian"
    for one in lock.have:
        path = made / one.in_archive
        path.parent.mkdir(parents=True, exist_ok=True)
        (folder / "had" / packages.file_name(one)).rename(path)
    packages.index(made, lock.suite)
    return made


def replace_by_newer(mirror: Path, name: str, longer: str = "") -> Path:
    """Put a newer version into the place of a package, with a file of it that is a byte ``longer``;
    the old package's file, elsewhere."""
    (path,) = mirror.rglob(f"{name}_*.deb")
    old = Path(shutil.move(path, mirror.parent))
    unpacked = mirror.parent / "unpacked"
    subprocess.run(["dpkg-deb", "-R", old, unpacked], check=True)
    control = unpacked / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^(Version: .*)$", r"\1.1", control.read_text()))
    if longer:
        with (unpacked / longer).open("ab") as file:
            file.write(b"\n")
    newer = path.with_name(f"{name}_newer_amd64.deb")
    subprocess.run(["dpkg-deb", "-b", unpacked, newer], check=True, stdout=subprocess.DEVNULL)
    packages.index(mirror, "trixie")
    return old
