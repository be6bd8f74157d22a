"""Guests whose harness is gone: found in this PID namespace, and left alone in others, such as containers'."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qjump_mn.guest.machine import TAG, orphans

GONE = "4194304.1"
"""The tag of a harness that is not there: no pid is that high."""


@contextmanager
def started(*argv: str) -> Iterator[int]:
    """A process with the tag that our QEMUs have, and a harness that is gone; its pid."""
    environment = {**os.environ, TAG: GONE}
    with subprocess.Popen([*argv, "sleep", "60"], env=environment, start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def child(pid: int) -> int:
    """The pid of the one child of a process, once it runs sleep."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if Path(f"/proc/{one}/comm").read_text() == "sleep\n":
                return int(one)
        time.sleep(0.01)
    raise AssertionError("it did not start")


def test_guest_without_a_harness_is_an_orphan() -> None:
    with started() as pid:
        assert pid in orphans()


@pytest.mark.root
def test_guest_of_a_container_is_no_orphan() -> None:
    with started("unshare", "--pid", "--fork", "--kill-child") as pid:
        inside = child(pid)
        found = orphans()
        assert inside not in found and pid in found
