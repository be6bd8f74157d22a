"""One core for each guest: main loop and processor of a QEMU that records take turns, and handing over between cores costs more.

Measured with wire links, which set 7,700 timers a virtual second: a guest that may use both cores of a machine takes 20 to 25 % longer than
one that is kept on one, and two at once take twice as long.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qjump_mn.errors import MachineError

_POLL_S = 0.05


@contextmanager
def core() -> Iterator[int]:
    """Take a core that no other guest of this user has, waiting until there is one; its number. It is free again with the block,
    or when this process ends, whatever ends it."""
    folder = _folder()
    while True:
        for number in sorted(os.sched_getaffinity(0)):
            slot = os.open(folder / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(slot)
                continue
            try:
                yield number
            finally:
                os.close(slot)
            return
        time.sleep(_POLL_S)


def _folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"qjump-mn-cores-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not folder.is_dir() or folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise MachineError(f"{folder} is not this user's alone: remove it")
    return folder
