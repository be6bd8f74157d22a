"""Make temporary folders named after their process, so that leftovers can be removed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.process import variables
from qjump_mn.process.processes import is_alive, tag


def provide() -> None:
    """If no folder for temporary files is writable, use one in the cache, for children too."""
    named = [
        os.path.abspath(os.environ[name])
        for name in ("TMPDIR", "TEMP", "TMP")
        if name in os.environ
    ]
    # Python's last resort is the current folder, which is the user's.
    with suppress(FileNotFoundError):
        if tempfile.gettempdir() in (*named, "/tmp", "/var/tmp", "/usr/tmp"):
            return
    with suppress(MachineError, OSError):  # many commands need none
        path = _in_cache()
        path.mkdir(parents=True, exist_ok=True)
        os.environ["TMPDIR"] = tempfile.tempdir = str(path)


def for_matplotlib(stack: ExitStack) -> dict[str, str]:
    """Return variables that give matplotlib a writable folder if the home has none: in the cache,
    or one that ``stack`` removes."""
    if "MPLCONFIGDIR" in os.environ or os.access(variables.home(), os.W_OK):
        return {}
    try:
        return {"MPLCONFIGDIR": str(_in_cache() / "matplotlib")}
    except MachineError:
        return {"MPLCONFIGDIR": stack.enter_context(folder())}


def _in_cache() -> Path:
    return cache.writable_root() / cache.SCRATCH / str(os.getuid())


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
