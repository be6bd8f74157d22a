"""Make temporary folders named after their process, so that leftovers can be removed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from qjump_mn.errors import MachineError
from qjump_mn.process.processes import is_alive, tag


def folder() -> tempfile.TemporaryDirectory[str]:
    """Make a folder for the `with` block. Raises MachineError if there is no room."""
    try:
        return tempfile.TemporaryDirectory(prefix=f"qjump-mn-{tag(os.getpid())}-")
    except FileNotFoundError as error:  # Python raises it after trying every folder
        raise MachineError(
            f"{error.strerror}: they are full, or cannot be written: make room there, or set "
            "TMPDIR to another folder"
        ) from None


def remove_left() -> list[Path]:
    """Remove this user's folders of dead processes; return their paths."""
    removed = []
    for path in sorted(Path(tempfile.gettempdir()).glob("qjump-mn-*")):
        owner = re.match(r"qjump-mn-(\d+\.\d+\.\d+)-", path.name)
        if owner and not is_alive(owner[1]) and path.lstat().st_uid == os.getuid():
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
    return removed
