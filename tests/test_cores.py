"""One guest a core: slots are different, waited for, and free again whatever ends their holder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from qjump_mn.errors import MachineError
from qjump_mn.guest.cores import core

HOLD = """
import sys
from qjump_mn.guest.cores import core
with core() as number:
    print(number, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def slots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots of this test's own: guests may be running."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5})


def test_each_guest_has_a_core_of_its_own() -> None:
    with core() as one, core() as other:
        assert {one, other} == {3, 5}
    with core() as again:
        assert again == 3


def test_a_third_waits_until_one_is_free() -> None:
    got: list[int] = []

    def third() -> None:
        with core() as number:
            got.append(number)

    with ExitStack() as first, core() as one:
        other = first.enter_context(core())
        thread = threading.Thread(target=third)
        thread.start()
        thread.join(0.3)
        assert got == []
        first.close()
        thread.join(10)
        assert got == [other]
        assert one != other


def test_a_holder_that_is_killed_frees_its_core(monkeypatch: pytest.MonkeyPatch) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    number = int(holder.stdout.readline())
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {number})
    got: list[int] = []

    def second() -> None:
        with core() as mine:
            got.append(mine)

    thread = threading.Thread(target=second)
    thread.start()
    thread.join(0.3)
    assert got == []
    holder.kill()
    holder.communicate()
    thread.join(10)
    assert got == [number]


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / f"qjump-mn-cores-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(MachineError, match="is not this user's alone"), core():
        pass
