"""Write a bundle as a reproducible zip file, and safely unpack one from a stranger.

Whatever an archive contains, only plain files are written, only into the target folder, and no more
than a bundle may have. An archive that was unpacked and packed again is the same bundle if its
files have the same bytes.
"""

from __future__ import annotations

import io
import re
import stat
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath

from qjump_mn.errors import MachineError, UsageError, is_full, reason_of
from qjump_mn.process.files import write_atomically
from qjump_mn.report import notes
from qjump_mn.results import contents, manifest, outcome, user_files

FILES = (
    manifest.NAME,
    outcome.NAME,
    "report.html",
    "report.md",
    "notes.md",
    "report.pdf",
    contents.PLAYER,
    "fig/network.svg",
    "log.jsonl",
    contents.SUMS,
)
FOLDERS = (contents.TRIALS, contents.TIMELINES, "fig", user_files.FOLDER)

MAX_BYTES = 2 << 30
"""The greatest size of all files together; our largest run has 60 MB."""
MAX_READ_BYTES = 64 << 20
"""The greatest size of a file that is neither a trial's nor the user's own: the checking process
reads it into memory."""
MAX_FILES = 100_000
MAX_NAME = 300
"""The most characters of a path."""

COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)

_LITTER = re.compile(
    r"(.*/)?(__MACOSX/.*|\.DS_Store|\._[^/]*|Thumbs\.db|desktop\.ini)", re.IGNORECASE
)
"""Files that file managers add to a folder or an archive."""
_SAFE = re.compile(r"(?:(?!\.\.?(?:/|$))[^/\\\0-\x1f\x7f]+/)*(?!\.\.?/?$)[^/\\\0-\x1f\x7f]+/?")
"""A relative path without ``.`` and ``..``."""
_PART = re.compile(r"[A-Za-z0-9_=+@%,~-][A-Za-z0-9_.=+@%,~ -]*")
_BLOCK_BYTES = 1 << 20
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)
"""The oldest time of zip files, for all entries: bundles of one run are identical."""


class BundleError(UsageError):
    """The file is not a bundle; the message says why."""


class ChangedError(BundleError):
    """Somebody has changed, removed or added a file of the bundle."""

    exit_code = 1


def write(path: Path, files: Mapping[str, Path | bytes]) -> None:
    """Write ``files``, by their names in the bundle, and their hashes into the bundle ``path``.

    The bundle is written atomically. Raises :class:`UsageError` if it cannot be written, or for a
    name that a bundle may not have.
    """
    archive = io.BytesIO()
    try:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
            sums = []
            for name in sorted(files):
                _check_name(path, name)
                source = files[name]
                content = source if isinstance(source, bytes) else _read(source)
                sums.append(f"{sha256(content).hexdigest()}  {name}\n")
                bundle.writestr(_entry(name), content, compresslevel=9)
            bundle.writestr(_entry(contents.SUMS), "".join(sums))
        write_atomically(path, archive.getvalue())
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {reason_of(error)}") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {reason_of(error)}") from None


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _TIMESTAMP)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix, on every system
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    return entry


def unpack(path: Path, folder: Path) -> None:
    """Unpack the bundle ``path`` into the empty ``folder``, and check its hashes.

    Raises :class:`BundleError` for a file that is not a bundle, :class:`ChangedError` for an edited
    one, and :class:`MachineError` if the disk of ``folder`` is full. After an error, the caller
    removes what was unpacked.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BundleError(f"{path} cannot be read: it is not a file")
        with zipfile.ZipFile(path) as archive:
            for name, entry in _checked_files(path, archive.infolist()).items():
                _unpack(path, archive, entry, folder / name)
    except FileNotFoundError:
        raise BundleError(f"there is no bundle {path}") from None
    except BundleError:
        raise
    except OSError as error:
        if is_full(error):
            raise MachineError(
                f"the disk of {folder} is full: make room there to unpack {path}, or set TMPDIR to "
                "a folder on another disk"
            ) from None
        if error.errno is not None:
            raise BundleError(f"{path} cannot be read: {reason_of(error)}") from None
        raise _damaged(path, error) from None
    except Exception as error:  # zipfile and zlib raise ten kinds of errors for other files
        raise _damaged(path, error) from None
    _check_sums(path, folder)


def _damaged(path: Path, error: Exception) -> BundleError:
    return BundleError(
        f"{path} is not a bundle, or is damaged: {str(error) or type(error).__name__}"
    )


def _checked_files(path: Path, entries: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """Check the entries before anything is unpacked; return the files by their names in the bundle.

    Raises :class:`BundleError` for an entry that a bundle may not have.
    """
    if len(entries) > MAX_FILES:
        raise BundleError(f"{path} has {len(entries)} files; a bundle has {MAX_FILES} at most")
    if (size := sum(entry.file_size for entry in entries)) > MAX_BYTES:
        raise BundleError(
            f"{path} would unpack to {size >> 20} MiB; a bundle has {MAX_BYTES >> 20} at most"
        )
    entries = [entry for entry in entries if not _is_ignored(entry)]
    top = _top_folder([entry.orig_filename for entry in entries])
    files: dict[str, zipfile.ZipInfo] = {}
    seen: set[str] = set()
    parents: set[str] = set()
    for entry in entries:
        name = entry.orig_filename.removeprefix(top)
        _check_name(path, name)
        _check_entry(path, name, entry)
        folded = name.lower()  # on some disks, case makes no difference
        if folded in seen:
            raise BundleError(f"{path} has {name!r} twice")
        seen.add(folded)
        parents.update(str(parent).lower() for parent in PurePosixPath(name).parents)
        files[name] = entry
    if both := seen & parents:
        raise BundleError(f"{path}: {min(both)!r} is both a file and a folder")
    return files


def _is_ignored(entry: zipfile.ZipInfo) -> bool:
    """Whether the entry is a folder, or a file that a file manager has added."""
    name, kind = entry.orig_filename, stat.S_IFMT(entry.external_attr >> 16)
    if len(name) > MAX_NAME or not _SAFE.fullmatch(name):
        return False
    if name.endswith("/"):
        return kind in (0, stat.S_IFDIR) and not entry.file_size
    return kind in (0, stat.S_IFREG) and _LITTER.fullmatch(name) is not None


def _top_folder(names: list[str]) -> str:
    """Return the folder that contains all files of the archive, as "name/"; "" if there is none."""
    top = next(
        (name for name in names if name.endswith(f"/{contents.SUMS}") and name.count("/") == 1),
        contents.SUMS,
    )
    top = top.removesuffix(contents.SUMS)
    is_top = _SAFE.fullmatch(top) and all(name.startswith(top) for name in names)
    return top if is_top else ""


def _check_entry(path: Path, name: str, entry: zipfile.ZipInfo) -> None:
    is_read = name.partition("/")[0] not in (contents.TRIALS, contents.OWN)
    if entry.file_size > MAX_READ_BYTES and is_read:
        limit = f"such a file has {MAX_READ_BYTES >> 20} at most"
        raise BundleError(f"{path}: {name!r} would have {entry.file_size >> 20} MiB; {limit}")
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        raise BundleError(f"{path}: {name!r} is not a plain file")
    if entry.flag_bits & 1:
        raise BundleError(f"{path}: {name!r} is encrypted")
    if entry.compress_type not in COMPRESSIONS:
        raise BundleError(
            f"{path}: {name!r} is compressed in a way that is not supported: use an ordinary zip "
            "file"
        )


def _check_name(path: Path, name: str) -> None:
    if not _is_name(name):
        short_name = name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"
        raise BundleError(f"{path}: {short_name!r} is not the name of a file in a bundle")


def _is_name(name: str) -> bool:
    parts = name.split("/")
    is_file = name in FILES or notes.kind_of(PurePosixPath(name)) is not None
    is_known = is_file if len(parts) == 1 else parts[0] in FOLDERS
    return len(name) <= MAX_NAME and all(_PART.fullmatch(part) for part in parts) and is_known


def refusal(names: Iterable[str]) -> str:
    """Say which of a run's files no bundle can hold, because of its name; "" if none."""
    kept: dict[str, str] = {}
    for name in sorted(names):
        if not _is_name(name):
            return (
                f"a bundle cannot hold {name!r}: names have at most {MAX_NAME} characters, of "
                "letters, digits, spaces and _.=+@%,~-, and begin with no dot or space"
            )
        other = kept.setdefault(name.lower(), name)
        if other != name:
            return f"a bundle cannot hold both {other!r} and {name!r}: some disks ignore case"
    return ""


def _unpack(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    """Unpack one file, and at most as many bytes as its entry says."""
    left = entry.file_size
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as source, target.open("xb") as file:
        while data := source.read(_BLOCK_BYTES):
            left -= len(data)
            if left < 0:
                break
            file.write(data)
    if left:
        raise BundleError(f"{path}: {entry.orig_filename!r} has another size than its entry says")


def _check_sums(path: Path, folder: Path) -> None:
    """Raise :class:`ChangedError` unless exactly the listed files are there, with their hashes."""
    unpacked = {file.relative_to(folder).as_posix(): file for file in _files(folder)}
    if unpacked.pop(contents.SUMS, None) is None:
        raise BundleError(
            f"{path} has no {contents.SUMS}: it is not a bundle, or only a part of one"
        )
    listed: dict[str, str] = {}
    for line in (folder / contents.SUMS).read_text(errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    for name in sorted({*listed, *unpacked}):
        if name not in unpacked:
            raise ChangedError(f"{path}: {name} is missing")
        if name not in listed:
            raise ChangedError(f"{path}: {name} was added to it")
        if manifest.sha256_of(unpacked[name]) != listed[name]:
            raise ChangedError(f"{path}: {name} was changed")


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file())
