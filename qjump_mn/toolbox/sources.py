"""Get Debian source packages, which a lock with the variant `source` names by its upstream
archive."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox import mirrors, packages
from qjump_mn.toolbox.lock import Lock, Locked, Package
from qjump_mn.toolbox.tree import host_program

VARIANT = "source"

_NEEDS_BYTES = 100 << 20


def unpacked(name: str, progress: Callable[[str], None] = lambda line: None) -> Path:
    """Return the source that the lock names, downloaded now if there is none. Raises as
    `packages.gather` does."""
    lock = locks.read(name)

    def build(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            packages.gather(lock, Path(scratch, "files"), progress)
            archive = str(Path(scratch, "files", packages.file_name(lock.have[0])))
            (folder / "source").mkdir()
            argv = [host_program("tar"), "--no-same-owner", "--strip-components=1", "-xf", archive]
            subprocess.run(argv, cwd=folder / "source", check=True)

    made = cache.artefact(
        "source", cache.hash_of(lock.identity), build, needs_bytes=_NEEDS_BYTES, progress=progress
    )
    return made / "source"


def newest(lock: Lock, when: str) -> Lock:
    """Return the lock with the mirrors' current version of its package. Raises MachineError if they
    have no source."""
    (name,) = lock.ask
    with tempfile.TemporaryDirectory() as scratch:
        lines = [re.sub("^deb ", "deb-src ", line) for line in mirrors.lines(lock.suite)]
        Path(scratch, "sources.list").write_text("\n".join(lines) + "\n")
        own = {
            "Etc::sourcelist": f"{scratch}/sources.list",
            "Etc::sourceparts": "-",
            "State": scratch,
        }
        options = [f"-oDir::{key}={value}" for key, value in own.items()] + [
            f"-oDir::Cache={scratch}"
        ]
        for asked in (["update"], ["source", "--print-uris", name]):
            argv = [host_program("apt-get"), "-q", *options, *asked]
            done = subprocess.run(argv, capture_output=True, text=True)
            if done.returncode:
                raise MachineError(f"the source of {name} is at no mirror: {done.stderr.strip()}")
    uris = re.findall(r"^'(\S+)' (\S+) (\d+) SHA256:(\w+)$", done.stdout, re.M)
    version = next(
        file.split("_")[1].removesuffix(".dsc") for _, file, _, _ in uris if file.endswith(".dsc")
    )
    uri, _, size, sha256 = next(one for one in uris if ".orig.tar." in one[1])
    path = uri[uri.index("/debian") + 1 :]
    return replace(
        lock, time=when, have=(Locked(Package(name, version, VARIANT), int(size), sha256, path),)
    )
