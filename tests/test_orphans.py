"""Guests whose harness is gone: found in this PID namespace, and left alone in others, such as containers'."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qjump_mn.guest.machine import TAG, orphans
from qjump_mn.processes import is_alive, tag

PRINT_TAG = [
    sys.executable,
    "-P",
    "-c",
    "import os; from qjump_mn.processes import tag; print(tag(os.getpid()))",
]
"""A harness that says its tag and is gone."""


def tag_printed_by(*argv: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    return subprocess.run(
        [*argv, *PRINT_TAG], env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


@contextmanager
def guest_of(harness: str) -> Iterator[int]:
    """A process with the tag that our QEMUs have; its pid."""
    with subprocess.Popen(["sleep", "60"], env={**os.environ, TAG: harness}) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def test_guest_without_a_harness_is_an_orphan() -> None:
    with guest_of(tag_printed_by()) as lost, guest_of(tag(os.getpid())) as ours:
        assert lost in orphans() and ours not in orphans()


@pytest.mark.root
def test_guest_of_a_container_is_no_orphan() -> None:
    harness = tag_printed_by("unshare", "--pid", "--fork", "--mount-proc")
    assert harness.count(".") == 2 and is_alive(harness)
    with guest_of(harness) as pid:
        assert pid not in orphans()
