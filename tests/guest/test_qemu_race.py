"""contrib/qemu: the guest that measures how late it wakes can be assembled, and on our QEMU with rr=record it
never wakes late."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from contrib.qemu import reproduce
from qjump_mn.guest import Image
from qjump_mn.toolbox.machine_file import QEMU
from qjump_mn.toolbox.tree import Tree

pytestmark = pytest.mark.guest


def test_with_rr_record_no_wake_is_late(image: Image, tmp_path: Path) -> None:
    if not (shutil.which("as") and shutil.which("ld")):
        pytest.skip("binutils is not installed")
    program = [*Tree(image.tree).program(QEMU), "-L", str(image.tree / "usr/share/qemu")]
    recording = reproduce.Way("the toolbox's", program, record=True)
    firmware = reproduce.assemble(tmp_path, 2000)
    assert [reproduce.once(recording, firmware) for _ in range(2)] == [{}, {}]
