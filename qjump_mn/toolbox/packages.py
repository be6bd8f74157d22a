"""The files of locked packages: had by their hash from a mirror, or from the archive of old ones."""

from __future__ import annotations

import hashlib
import http.client
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import mirrors
from qjump_mn.toolbox.lock import Lock, Locked
from qjump_mn.toolbox.tree import host_program

_AT_ONCE = 8
_TIMEOUT_S = 30.0
_CHUNK_BYTES = 1 << 20
_PAUSES_S = (0.0, 0.5, 2.0, 8.0)
"""Before each attempt: a busy mirror may refuse one."""

_NOT_THERE = (400, 403, 404, 410)
_FAILURES = (OSError, http.client.HTTPException)


class GoneError(MachineError):
    """Packages of a lock that can be had nowhere."""

    def __init__(self, lock: Lock, gone: Sequence[Locked]) -> None:
        first = gone[0].package
        number = f"{len(gone)} of {len(lock.have)}"
        super().__init__(
            f"{number} packages of the lock {lock.name!r} can be had nowhere as they are locked, such as "
            f"{first.name} {first.version}"
        )


def gather(lock: Lock, folder: Path, progress: Callable[[str], None]) -> None:
    """Put the file of every package of the lock into ``folder``, with the list of them that apt reads.

    Each is looked for at the mirrors, then in the archive of old packages by the lock's time. Raises
    GoneError if one is at none of them with its hash, and OSError where it cannot be written.
    """
    folder.mkdir()
    total_mb = sum(one.size_bytes for one in lock.have) >> 20
    progress(f"getting {len(lock.have)} packages as they are locked, {total_mb} MB")
    bases = mirrors.addresses(lock.suite)
    stop = threading.Event()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = [pool.submit(_had, one, _places(lock, one, bases), folder, stop) for one in lock.have]
        try:
            had = [future.result() for future in asked]
        except BaseException:
            stop.set()
            raise
    gone = [one for one, where in zip(lock.have, had, strict=True) if where is None]
    if gone:
        raise GoneError(lock, gone)
    old = sum(where == "archive" for where in had)
    if old:
        progress(f"{old} of them from the archive of old packages")
    index(folder, lock.suite.removesuffix(mirrors.BACKPORTS))


def index(folder: Path, release: str) -> None:
    """Make a repository of a release of Debian of the package files below the folder: apt's line for it is
    `deb [trusted=yes] copy:FOLDER ./`. mmdebstrap takes a release's essential packages by the release's
    name."""
    stanzas = "\n".join(_stanza(folder, path) for path in sorted(folder.rglob("*.deb")))
    (folder / "Packages").write_text(stanzas)
    sha256, size = cache.hash_of_file(folder / "Packages"), (folder / "Packages").stat().st_size
    (folder / "Release").write_text(f"Codename: {release}\nSHA256:\n {sha256} {size} Packages\n")


def file_name(one: Locked) -> str:
    """What a package's file is called in the folder."""
    return one.path.rpartition("/")[2]


def _places(lock: Lock, one: Locked, bases: Sequence[str]) -> list[tuple[str, str]]:
    """Where a file may be: ("mirror" or "archive", address)."""
    # First the mirror of its own archive: the other answers that it has no such file.
    bases = sorted(bases, key=lambda base: not base.endswith(f"/{one.archive}"))
    places = [("mirror", f"{base}/{one.in_archive}") for base in bases]
    if mirrors.archive() and lock.time:
        places.append(("archive", f"{mirrors.archive()}/{one.archive}/{lock.time}/{one.in_archive}"))
    return places


def _had(one: Locked, places: Sequence[tuple[str, str]], folder: Path, stop: threading.Event) -> str | None:
    """From what kind of place the file was had; None if from none."""
    target = folder / file_name(one)
    for kind, address in places:
        for pause_s in _PAUSES_S:
            if stop.wait(pause_s):
                return None
            is_there = _fetched(address, target, one)
            if is_there:
                return kind
            if is_there is False:
                break
    target.unlink(missing_ok=True)
    return None


def _fetched(address: str, target: Path, one: Locked) -> bool | None:
    """Whether the file is at the address, and then it is written; None where the answer is none."""
    digest, left = hashlib.sha256(), one.size_bytes
    try:
        answer = urllib.request.urlopen(address, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        return False if error.code in _NOT_THERE else None
    except urllib.error.URLError as error:
        return False if _is_final(error.reason) else None
    except _FAILURES:
        return None
    with answer, target.open("wb") as file:
        while left:
            try:
                data = answer.read(min(left, _CHUNK_BYTES))
            except _FAILURES:
                return None
            if not data:
                return None
            digest.update(data)
            file.write(data)
            left -= len(data)
    return digest.hexdigest() == one.sha256


def _is_final(reason: object) -> bool:
    """Whether asking again is of no use: there is no such file, or no such host."""
    is_unknown = isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME
    return is_unknown or isinstance(reason, FileNotFoundError)


def _stanza(folder: Path, path: Path) -> str:
    fields = subprocess.run(
        [host_program("dpkg-deb"), "--field", str(path)], capture_output=True, text=True, check=True
    ).stdout
    place = f"Filename: ./{path.relative_to(folder)}\nSize: {path.stat().st_size}"
    return f"{fields.strip()}\n{place}\nSHA256: {cache.hash_of_file(path)}\n"
