"""Where something in the cache came from: a line in a file of its folder."""

from __future__ import annotations

from pathlib import Path

NAME = "origin"


def note(folder: Path, origin: str) -> None:
    """Write it down, while the folder is being filled."""
    (folder / NAME).write_text(f"{origin}\n")


def told(folder: Path) -> str:
    """What was written down; a word for what an older qjump-mn made."""
    try:
        return (folder / NAME).read_text().strip()
    except OSError:
        return "unknown: an older qjump-mn, which did not write it down, made it"
