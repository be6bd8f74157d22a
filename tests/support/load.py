"""A host that is busy with something else: what a guest on a clock of its own must not notice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_host(count: int = 2) -> Iterator[None]:
    """So many loops that compete with guests for the host's processors."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
