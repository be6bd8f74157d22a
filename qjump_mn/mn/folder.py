"""Pack the folder that goes into the machine, and read what a run keeps of it."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

from qjump_mn.errors import UsageError, reason_of

MAX_BYTES = 64 << 20
"""The most that a folder may hold: the machine keeps it in memory."""
MAX_FILES = 20_000

LEFT_OUT = frozenset(("__pycache__", ".git", ".hg", ".svn", ".venv", "venv", "node_modules"))
"""Folders that are left behind: what they hold is made from the rest, or is for other machines."""


def pack(folder: Path | None, left_out: Path | None = None) -> bytes:
    """Return a tar stream of a folder's files: the same files give the same bytes.

    Contents, names and the right to execute count; owners and times do not. ``left_out`` is a
    folder that stays behind, such as the one of results. Without a folder the stream is empty.
    Raises :class:`UsageError` for a folder that is too large, a link that leads out of it, and what
    cannot be read.
    """
    stream = io.BytesIO()
    if folder is not None and not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for number, path in enumerate(_found(folder, left_out) if folder else ()):
            assert folder is not None
            if number >= MAX_FILES:
                raise _too_much(folder, f"{MAX_FILES} files")
            _add(archive, folder, path)
            if stream.tell() > MAX_BYTES:
                raise _too_much(folder, f"{MAX_BYTES >> 20} MB")
    return stream.getvalue()


def _too_much(folder: Path, limit: str) -> UsageError:
    return UsageError(
        f"{folder.resolve()} has more than {limit}: put the script and what it needs into a folder "
        "of its own, and name it with --in"
    )


def _found(folder: Path, left_out: Path | None) -> Iterator[Path]:
    """Yield files, links and folders, each folder before what is in it, sorted by name."""
    for path in sorted(folder.iterdir()):
        if path.name in LEFT_OUT or (left_out and path.resolve() == left_out.resolve()):
            continue
        if path.is_symlink() or path.is_file() or path.is_dir():
            yield path
        if path.is_dir() and not path.is_symlink():
            yield from _found(path, left_out)


def _add(archive: tarfile.TarFile, folder: Path, path: Path) -> None:
    entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
    try:
        if path.is_symlink():
            entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(path)
            _check_link(folder, path)
            archive.addfile(entry)
        elif path.is_dir():
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        else:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                entry.size, entry.mode = status.st_size, 0o755 if status.st_mode & 0o100 else 0o644
                archive.addfile(entry, file)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {reason_of(error)}") from None


def _check_link(folder: Path, path: Path) -> None:
    """Raise :class:`UsageError` for a link that leads out of the folder."""
    target = Path(os.path.normpath(path.parent.absolute() / os.readlink(path)))
    if not target.is_relative_to(os.path.normpath(folder.absolute())):
        raise UsageError(
            f"{path} is a link to {os.readlink(path)}, which is not in the folder that goes into "
            "the machine: put a copy there"
        )
