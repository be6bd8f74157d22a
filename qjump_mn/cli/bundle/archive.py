"""A bundle as a zip file: written alike each time, and read as what it is, a stranger's file.

Whatever an archive may say, nothing is made outside of the folder that it is opened into, no more is made
than a bundle may have, and of kinds of files there is one. An archive that was unpacked and packed again is
the same bundle if its files and their bytes are the same.
"""

from __future__ import annotations

import io
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath

from qjump_mn.errors import MachineError, UsageError, is_full, reason_of
from qjump_mn.report import notes
from qjump_mn.results import contents, manifest, outcome, user_files

SUMS = "SHA256SUMS"
"""Of every other file, in the form that ``sha256sum -c`` reads."""

FILES = (
    manifest.NAME,
    outcome.NAME,
    "report.html",
    "report.md",
    "notes.md",
    "report.pdf",
    "fig/network.svg",
    "log.jsonl",
    SUMS,
)
FOLDERS = (contents.TRIALS, contents.TIMELINES, "fig", user_files.FOLDER)

MOST_BYTES = 2 << 30
"""Of all files together: the largest run of ours leaves 60 MB."""
MOST_READ_BYTES = 64 << 20
"""Of a file beside those of the trials: such are read whole, by the process that checks."""
MOST_FILES = 100_000
MOST_NAME = 300
"""Letters of a path."""

PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)

_LITTER = re.compile(r"(.*/)?(__MACOSX/.*|\.DS_Store|\._[^/]*|Thumbs\.db|desktop\.ini)", re.IGNORECASE)
"""What file managers add to a folder or to an archive."""
_SAFE = re.compile(r"(?:(?!\.\.?(?:/|$))[^/\\\0-\x1f\x7f]+/)*(?!\.\.?/?$)[^/\\\0-\x1f\x7f]+/?")
"""A relative path without ``.`` and ``..``."""
_PART = re.compile(r"[A-Za-z0-9_=+@%,~-][A-Za-z0-9_.=+@%,~ -]*")
_BLOCK_BYTES = 1 << 20
_FIRST = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip file can tell: bundles of one run are one file, whenever they are made."""


class BundleError(UsageError):
    """The file is no bundle: what is wrong, in a sentence."""


class ChangedError(BundleError):
    """It is a bundle, but not as it was written: somebody changed, removed or added a file."""

    exit_code = 1


def write(path: Path, files: Mapping[str, Path | bytes]) -> None:
    """Write ``files``, by their names in it, and their hashes, into the bundle ``path``: it is there whole or
    not at all. Raises :class:`UsageError` where it cannot be written, or a name is none that a bundle may
    have."""
    made = io.BytesIO()
    try:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as bundle:
            sums = []
            for name in sorted(files):
                _check_name(path, name)
                given = files[name]
                content = given if isinstance(given, bytes) else _content(given)
                sums.append(f"{sha256(content).hexdigest()}  {name}\n")
                bundle.writestr(_entry(name), content, compresslevel=9)
            bundle.writestr(_entry(SUMS), "".join(sums))
        manifest.write_atomically(path, made.getvalue())
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {reason_of(error)}") from None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {reason_of(error)}") from None


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _FIRST)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix, wherever it is made
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    return entry


def opened(path: Path, folder: Path) -> None:
    """Unpack the bundle ``path`` into the empty ``folder``. Raises :class:`BundleError` for a file that does
    not hold the files of a bundle, and :class:`MachineError` where the disk of ``folder`` is full; what was
    unpacked until then is the caller's to remove."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BundleError(f"{path} cannot be read: it is not a file")
        with zipfile.ZipFile(path) as archive:
            for name, entry in _checked(path, archive.infolist()).items():
                _unpack(path, archive, entry, folder / name)
    except FileNotFoundError:
        raise BundleError(f"there is no bundle {path}") from None
    except BundleError:
        raise
    except OSError as error:
        if is_full(error):
            raise MachineError(
                f"the disk of {folder} is full: make room there to unpack {path}, or set TMPDIR to a folder "
                "on another disk"
            ) from None
        if error.errno is not None:
            raise BundleError(f"{path} cannot be read: {reason_of(error)}") from None
        raise _damaged(path, error) from None
    except Exception as error:  # zipfile and zlib raise ten kinds of errors for what is no zip file
        raise _damaged(path, error) from None
    _check_sums(path, folder)


def _damaged(path: Path, error: Exception) -> BundleError:
    return BundleError(f"{path} is no bundle, or a damaged one: {str(error) or type(error).__name__}")


def _checked(path: Path, entries: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """The bundle's files, by their names in it. Raises :class:`BundleError` for what no bundle has, before
    anything is unpacked."""
    if len(entries) > MOST_FILES:
        raise BundleError(f"{path} has {len(entries)} files, a bundle has {MOST_FILES} at most")
    if (size := sum(entry.file_size for entry in entries)) > MOST_BYTES:
        raise BundleError(f"{path} would unpack to {size >> 20} MiB, {MOST_BYTES >> 20} are the most")
    entries = [entry for entry in entries if not _is_left_out(entry)]
    top = _top([entry.orig_filename for entry in entries])
    files: dict[str, zipfile.ZipInfo] = {}
    seen: set[str] = set()
    parents: set[str] = set()
    for entry in entries:
        name = entry.orig_filename.removeprefix(top)
        _check_name(path, name)
        _check_entry(path, name, entry)
        same = name.lower()  # on some disks the same file
        if same in seen:
            raise BundleError(f"{path} has {name!r} twice")
        seen.add(same)
        parents.update(str(parent).lower() for parent in PurePosixPath(name).parents)
        files[name] = entry
    if both := seen & parents:
        raise BundleError(f"{path}: {min(both)!r} is a file and a folder")
    return files


def _is_left_out(entry: zipfile.ZipInfo) -> bool:
    """Whether it is the entry of a folder, or what a file manager has added."""
    name, kind = entry.orig_filename, stat.S_IFMT(entry.external_attr >> 16)
    if len(name) > MOST_NAME or not _SAFE.fullmatch(name):
        return False
    if name.endswith("/"):
        return kind in (0, stat.S_IFDIR) and not entry.file_size
    return kind in (0, stat.S_IFREG) and _LITTER.fullmatch(name) is not None


def _top(names: list[str]) -> str:
    """The one folder that was packed with everything in it, as "name/"; "" if there is none."""
    top = next((name for name in names if name.endswith(f"/{SUMS}") and name.count("/") == 1), SUMS)
    top = top.removesuffix(SUMS)
    is_top = _SAFE.fullmatch(top) and all(name.startswith(top) for name in names)
    return top if is_top else ""


def _check_entry(path: Path, name: str, entry: zipfile.ZipInfo) -> None:
    if entry.file_size > MOST_READ_BYTES and not name.startswith(f"{contents.TRIALS}/"):
        most = f"{MOST_READ_BYTES >> 20} are the most"
        raise BundleError(f"{path}: {name!r} would have {entry.file_size >> 20} MiB, {most}")
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        raise BundleError(f"{path}: {name!r} is no plain file")
    if entry.flag_bits & 1:
        raise BundleError(f"{path}: {name!r} is encrypted")
    if entry.compress_type not in PACKINGS:
        raise BundleError(
            f"{path}: {name!r} is packed in a way that is not read here: pack it as an ordinary zip file"
        )


def _check_name(path: Path, name: str) -> None:
    parts = name.split("/")
    is_file = name in FILES or notes.kind_of(PurePosixPath(name)) is not None
    known = is_file if len(parts) == 1 else parts[0] in FOLDERS
    if len(name) > MOST_NAME or not all(_PART.fullmatch(part) for part in parts) or not known:
        shown = name if len(name) <= MOST_NAME else f"{name[:MOST_NAME]}…"
        raise BundleError(f"{path}: {shown!r} is no name of a bundle's file")


def _unpack(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    """One file, not a byte longer than it says."""
    left = entry.file_size
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as source, target.open("xb") as file:
        while data := source.read(_BLOCK_BYTES):
            left -= len(data)
            if left < 0:
                break
            file.write(data)
    if left:
        raise BundleError(f"{path}: {entry.orig_filename!r} has another size than it says")


def _check_sums(path: Path, folder: Path) -> None:
    """Raise :class:`ChangedError` unless the hashes are those of the files, each of them."""
    there = {file.relative_to(folder).as_posix(): file for file in _files(folder)}
    if there.pop(SUMS, None) is None:
        raise BundleError(f"{path} has no {SUMS}: it is no bundle, or a part of one")
    listed: dict[str, str] = {}
    for line in (folder / SUMS).read_text(errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    for name in sorted({*listed, *there}):
        if name not in there:
            raise ChangedError(f"{path}: {name} is gone")
        if name not in listed:
            raise ChangedError(f"{path}: {name} was added to it")
        if manifest.sha256_of(there[name]) != listed[name]:
            raise ChangedError(f"{path}: {name} was changed")


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file())
