"""Write and check SHA256SUMS, the list of an artefact's files and their digests.

`sha256sum -c SHA256SUMS` in the artefact's folder checks the same. Links, folders and modes are not
listed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

NAME = "SHA256SUMS"
"""The file's name in an artefact. An artefact of an older qjump-mn has none, and cannot be
checked."""

_LINE = re.compile(r"(\\?)([0-9a-f]{64})  (.+)")


def write(folder: Path) -> None:
    """Write the list for all files below the folder: 36,000 files of 1.2 GB take 3 to 5 s."""
    with (folder / NAME).open("w", errors="surrogateescape", newline="\n") as file:
        for base, folders, names in os.walk(folder):
            folders.sort()
            for path in (Path(base, name) for name in sorted(names)):
                if path.is_file() and not path.is_symlink() and path != folder / NAME:
                    file.write(_line(hash_of_file(path), str(path.relative_to(folder))))
    (folder / NAME).chmod(0o444)


def read(folder: Path) -> dict[str, str]:
    """Return the digest of each file, in hexadecimal. Raises OSError, and ValueError for a damaged
    list."""
    lines = (folder / NAME).read_text(errors="surrogateescape").split("\n")
    if len(lines) < 2 or lines.pop():  # a crash of the machine may empty or cut it
        raise ValueError(f"{folder / NAME} is cut")
    return dict(map(_parse, lines))


def damages(folder: Path) -> Iterator[str]:
    """Yield what is wrong with each damaged file, in a clause that begins with its name."""
    try:
        listed = read(folder)
    except (OSError, ValueError):
        yield f"{NAME} is damaged"
        return
    for name, digest in listed.items():
        try:
            if hash_of_file(folder / name) != digest:
                yield f"{name} has other content"
        except (FileNotFoundError, NotADirectoryError):
            yield f"{name} is missing"
        except OSError as error:
            yield f"{name} cannot be read: {(error.strerror or str(error)).lower()}"


def hash_of_file(path: Path) -> str:
    """Return the sha256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _line(digest: str, name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n")
    mark = "" if escaped == name else "\\"
    return f"{mark}{digest}  {escaped}\n"


def _parse(line: str) -> tuple[str, str]:
    matched = _LINE.fullmatch(line)
    if not matched:
        raise ValueError(f"not a line of {NAME}: {line!r}")
    escape, digest, name = matched.groups()
    if escape:
        name = re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], name)
    return name, digest
