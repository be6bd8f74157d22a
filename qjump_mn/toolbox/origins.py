"""Note where an artefact of the cache came from, in a file of its folder."""

from __future__ import annotations

from pathlib import Path

NAME = "origin"


def note(folder: Path, origin: str) -> None:
    """Write the note while the folder is being filled."""
    (folder / NAME).write_text(f"{origin}\n")


def told(folder: Path) -> str:
    """Return the note; a placeholder for artefacts of older versions."""
    try:
        return (folder / NAME).read_text().strip()
    except OSError:
        return "unknown: an older qjump-mn, which did not write it down, made it"
