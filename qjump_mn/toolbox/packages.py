"""Get the files of locked packages by hash, from a mirror or from the archive of old packages."""

from __future__ import annotations

import hashlib
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import download, mirrors
from qjump_mn.toolbox.lock import Lock, Locked
from qjump_mn.toolbox.tree import host_program

_AT_ONCE = download.AT_ONCE
_PAUSES_S = (0.0, 0.5, 2.0, 8.0)
"""Before each attempt: a busy mirror may refuse one."""


class GoneError(MachineError):
    """Packages of a lock are not available anywhere."""

    def __init__(self, lock: Lock, gone: Sequence[Locked]) -> None:
        first = gone[0].package
        number = f"{len(gone)} of {len(lock.have)}"
        super().__init__(
            f"{number} packages of the lock {lock.name!r} can be had nowhere as they are locked, "
            f"such as {first.name} {first.version}"
        )


def gather(lock: Lock, folder: Path, progress: Callable[[str], None]) -> str:
    """Put the file of every package of the lock into ``folder``, with the index that apt reads.

    Returns and raises as :func:`fetch` does.
    """
    origin = fetch(lock, folder, progress)
    index(folder, lock.suite.removesuffix(mirrors.BACKPORTS))
    return origin


def fetch(lock: Lock, folder: Path, progress: Callable[[str], None]) -> str:
    """Put the file of every package of the lock into ``folder``.

    Each is looked for at the mirrors, then in the archive of old packages at the lock's time.
    Returns in words where they came from. Raises GoneError if one is not available with its hash,
    and OSError if it cannot be written.
    """
    folder.mkdir()
    total_mb = sum(one.size_bytes for one in lock.have) >> 20
    progress(f"getting {len(lock.have)} packages as they are locked, {total_mb} MB")
    bases, search = mirrors.addresses(lock.suite), _Search(folder, progress)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = [pool.submit(search.had, one, _places(lock, one, bases)) for one in lock.have]
        try:
            had = [future.result() for future in asked]
        except BaseException:
            search.stop.set()
            raise
    gone = [one for one, where in zip(lock.have, had, strict=True) if where is None]
    if gone:
        raise GoneError(lock, gone)
    old = had.count("archive")
    if old:
        progress(f"{old} of them from the archive of old packages")
    archive = f", {old} of them from the archive {mirrors.archive()}" if old else ""
    return f"{len(had)} packages from {', '.join(bases) or 'no mirror'}{archive}"


def index(folder: Path, release: str) -> None:
    """Make the folder's package files a repository of a Debian release.

    apt's line for it is `deb [trusted=yes] copy:FOLDER ./`. mmdebstrap needs the release's name to
    find essential packages.
    """
    stanzas = "\n".join(_stanza(folder, path) for path in sorted(folder.rglob("*.deb")))
    (folder / "Packages").write_text(stanzas)
    sha256, size = cache.hash_of_file(folder / "Packages"), (folder / "Packages").stat().st_size
    (folder / "Release").write_text(f"Codename: {release}\nSHA256:\n {sha256} {size} Packages\n")


def file_name(one: Locked) -> str:
    """Return the name of a package's file in the folder."""
    return one.path.rpartition("/")[2]


def _places(lock: Lock, one: Locked, bases: Sequence[str]) -> list[tuple[str, str]]:
    """Return where a file may be, as ("mirror" or "archive", address)."""
    # First the mirror of its own archive: the other answers that it has no such file.
    bases = sorted(bases, key=lambda base: not base.endswith(f"/{one.archive}"))
    places = [("mirror", f"{base}/{one.in_archive}") for base in bases]
    if mirrors.archive() and lock.time:
        places.append(
            ("archive", f"{mirrors.archive()}/{one.archive}/{lock.time}/{one.in_archive}")
        )
    return places


@dataclass(frozen=True)
class _Search:
    """Downloads files into a folder, many at once."""

    folder: Path
    progress: Callable[[str], None]
    stop: threading.Event = field(default_factory=threading.Event)
    silence: download.Silence = field(default_factory=download.Silence)

    def had(self, one: Locked, places: Sequence[tuple[str, str]]) -> str | None:
        """Return the kind of place that had the file; None if none had."""
        target = self.folder / file_name(one)
        for kind, address in places:
            for pause_s in _PAUSES_S:
                if self.stop.wait(pause_s):
                    return None
                if self.silence.keeps(address):
                    break
                is_there = self._fetched(address, target, one)
                if is_there:
                    return kind
                if is_there is False:
                    break
        target.unlink(missing_ok=True)
        return None

    def _fetched(self, address: str, target: Path, one: Locked) -> bool | None:
        """Download the file from the address; return whether it was there, None if the answer was
        cut short."""
        digest, left, was_silent = hashlib.sha256(), one.size_bytes, False
        try:
            with target.open("wb") as file:
                for data in download.chunks(address, left):
                    digest.update(data)
                    left -= file.write(data)
        except download.FetchError as error:
            was_silent = error.was_silent
            return False if error.is_final else None
        finally:
            if self.silence.note(address, was_silent=was_silent):
                self.progress(
                    f"{download.host(address)} does not answer, and is not asked any more"
                )
        return None if left else digest.hexdigest() == one.sha256


def _stanza(folder: Path, path: Path) -> str:
    fields = subprocess.run(
        [host_program("dpkg-deb"), "--field", str(path)], capture_output=True, text=True, check=True
    ).stdout
    place = f"Filename: ./{path.relative_to(folder)}\nSize: {path.stat().st_size}"
    return f"{fields.strip()}\n{place}\nSHA256: {cache.hash_of_file(path)}\n"
