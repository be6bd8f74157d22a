"""Keep artefacts of the cache in place while a run uses them: a shared lock on the folder of each.

The kernel drops the locks of a process that ends, however it ends, so nothing has to be cleaned up.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

_used: set[Path] = set()
_held: dict[Path, int] | None = None
"""The handle that holds the lock on each folder; None outside of :func:`holding`."""


def used(path: Path) -> None:
    """Note that this process uses the artefact at ``path``."""
    _used.add(path)
    if _held is not None:
        _hold(path, _held)


@contextlib.contextmanager
def holding() -> Iterator[None]:
    """Within the block, let nobody remove an artefact that this process has used or will use."""
    global _held
    _held = {}
    for path in list(_used):
        _hold(path, _held)
    try:
        yield
    finally:
        handles, _held = _held, None
        for handle in handles.values():
            os.close(handle)


def is_held(path: Path) -> bool:
    """Whether a run uses the artefact now, whoever runs it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _hold(path: Path, held: dict[Path, int]) -> None:
    if path in held:
        return
    with contextlib.suppress(OSError):  # it is gone
        held[path] = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(held[path], fcntl.LOCK_SH | fcntl.LOCK_NB)
