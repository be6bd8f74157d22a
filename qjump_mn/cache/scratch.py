"""Keep temporary files in the cache where no other folder is writable."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.process import temp_dirs, variables


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
        return {"MPLCONFIGDIR": stack.enter_context(temp_dirs.folder())}


def _in_cache() -> Path:
    return cache.writable_root() / cache.SCRATCH / str(os.getuid())
