"""Keep artefacts in place while a process uses them: a shared lock on the folder of each.

The kernel drops the locks of a process that ends, however it ends, so nothing has to be cleaned up.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from qjump_mn.errors import MachineError

_held: dict[Path, int] = {}
"""The handle that holds the lock on each artefact that this process has used."""


def hold(path: Path) -> None:
    """Keep the artefact at ``path`` in place until this process ends."""
    if path not in _held:
        with contextlib.suppress(OSError):  # another process is removing it
            _held[path] = _locked(path, fcntl.LOCK_SH)


def release(path: Path) -> None:
    """Undo :func:`hold`."""
    if (handle := _held.pop(path, None)) is not None:
        os.close(handle)


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keep everybody from using the artefact within the block. Raises MachineError if a process
    uses it."""
    try:
        handle = _locked(path, fcntl.LOCK_EX)
    except BlockingIOError:
        raise MachineError(
            f"{path} stays: a run uses it; remove it when the run has ended"
        ) from None
    try:
        yield
    finally:
        os.close(handle)


def _locked(path: Path, how: int) -> int:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle
