"""The locked wheels as one file, with which the environment is made without an index.

It is a tar archive of wheels and nothing else, in the order of their names and without times and owners: the
same wheels are the same file, bit for bit. Each must have a hash of requirements.lock. Like
install/environment.py, the standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import sys
import tarfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from qjump_mn.errors import MachineError, reason_of

VARIABLE = "QJUMP_MN_WHEELS"
"""A wheels file."""

BESIDE = "qjump-mn-wheels*.tar"
"""What a wheels file is called that lies in the checkout, or beside it."""


class OtherPythonError(MachineError):
    """A wheels file that is sound, but not one for this Python."""


_NAME = re.compile(r"[A-Za-z0-9_.+!]+(?:-[A-Za-z0-9_.+!]+){4,5}\.whl")
_MOST_BYTES = 500 << 20
"""No wheel of ours is as large as that."""


def hashes(lock: Path) -> set[str]:
    """The SHA-256 of everything that the lock names, in hexadecimal."""
    return set(re.findall(r"--hash=sha256:([0-9a-f]{64})\b", lock.read_text(encoding="utf-8")))


def pip_of(lock: Path) -> str:
    """The file name of the locked pip's wheel. Raises MachineError where the lock names none."""
    found = re.search(r"^pip==([^\s;\\]+)", lock.read_text(encoding="utf-8"), re.M)
    if not found:
        raise MachineError(f"{lock} names no pip: take the file of the checkout")
    return f"pip-{found[1]}-py3-none-any.whl"


def write(folder: Path, target: Path) -> None:
    """Write the wheels in a folder as one file; it is there whole or not at all. Raises OSError where it
    cannot be written."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with tarfile.open(temporary, "w", format=tarfile.USTAR_FORMAT) as archive:
            for path in sorted(folder.glob("*.whl")):
                member = tarfile.TarInfo(path.name)
                member.size, member.mode = path.stat().st_size, 0o644
                with path.open("rb") as content:
                    archive.addfile(member, content)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def taken(folder: Path, lock: Path, checkout: Path, progress: Callable[[str], None]) -> Path | None:
    """Unpack the wheels file of this machine into an empty folder; the file, or None where there is none.

    Raises MachineError for a file in $QJUMP_MN_WHEELS that is not one for this Python. Such a file beside the
    checkout is told of, and does not count.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        try:
            unpack(Path(chosen), folder, lock)
        except OtherPythonError as error:
            raise MachineError(f"{error}: {advice()}") from error
        return Path(chosen)
    for path in _beside(checkout):
        try:
            unpack(path, folder, lock)
        except MachineError as error:
            progress(f"{error}; it is not taken")
            shutil.rmtree(folder, ignore_errors=True)
        else:
            return path
    return None


def unpack(path: Path, folder: Path, lock: Path) -> None:
    """Unpack a wheels file into a folder, which is made. Raises MachineError where it is none, is damaged, or
    is for another Python, and OSError where the folder cannot be written."""
    expected = hashes(lock)
    folder.mkdir(exist_ok=True)
    with _opened(path) as archive:
        members = _members(path, archive)
        _check_python(path, [member.name for member in members])
        for member in members:
            try:
                sha256 = _extract(archive, member, folder / member.name)
            except (tarfile.TarError, EOFError) as error:
                raise MachineError(f"{path} is no whole wheels file: {error}") from error
            if sha256 not in expected:
                raise MachineError(
                    f"{path}: {member.name} is damaged, or of another checkout: {lock.name} has not its hash"
                )
    if not (folder / pip_of(lock)).is_file():
        raise OtherPythonError(f"{path} has no {pip_of(lock)}")


def advice() -> str:
    """How to have a wheels file for this Python."""
    return f"write one with  qjump-mn machine wheels FILE  where there is an index, with {_this_python()}"


def _this_python() -> str:
    return f"Python 3.{sys.version_info[1]} on {os.uname().machine}"


def _beside(checkout: Path) -> Iterator[Path]:
    for folder in (checkout, checkout.parent):
        yield from sorted(folder.glob(BESIDE))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        archive = tarfile.open(path, "r:")  # noqa: SIM115 - it is closed below
    except (tarfile.TarError, EOFError) as error:
        raise MachineError(f"{path} is no wheels file: {error}") from error
    except OSError as error:
        raise MachineError(f"{path} cannot be read: {reason_of(error)}") from error
    with archive:
        yield archive


def _members(path: Path, archive: tarfile.TarFile) -> list[tarfile.TarInfo]:
    try:
        members = archive.getmembers()
    except (tarfile.TarError, EOFError) as error:
        raise MachineError(f"{path} is no whole wheels file: {error}") from error
    names = set()
    for member in members:
        is_wheel = member.isreg() and _NAME.fullmatch(member.name) and member.size <= _MOST_BYTES
        if not is_wheel or member.name in names:
            raise MachineError(f"{path}: {member.name!r} has no place in a wheels file")
        names.add(member.name)
    return members


def _check_python(path: Path, names: Collection[str]) -> None:
    """Refuse wheels of other Pythons only; whether one is missing for this Python, pip says."""
    compiled = [
        found
        for name in names
        if (found := re.search(r"-cp3(\d+)-cp3\1-\w*linux\w*?_(x86_64|aarch64)\b", name))
    ]
    versions = sorted({(int(found[1]), found[2]) for found in compiled})
    if versions and (sys.version_info[1], os.uname().machine) not in versions:
        those = ", ".join(f"Python 3.{minor} on {processor}" for minor, processor in versions)
        raise OtherPythonError(f"{path} is for {those}, not for {_this_python()}")


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> str:
    """Write a member's file; its SHA-256."""
    content, digest = archive.extractfile(member), hashlib.sha256()
    assert content is not None  # it is a regular file
    with content, target.open("xb") as file:
        while data := content.read(1 << 20):
            digest.update(data)
            file.write(data)
    return digest.hexdigest()
