"""Trees from a mirror of our own, which moves on: the least Debian that mmdebstrap makes, of real
packages.

It is locked from the mirror that this machine has; from there on only ours is there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from qjump_mn import toolbox
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox import origins, relock
from tests.support import moved

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(1800)]

ASKED = "suite trixie\nvariant minbase\ntime 20000101T000000Z\nask mawk\n"


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the only mirror, which has what the lock `tiny` says; the cache is empty."""
    monkeypatch.setattr(locks, "FOLDER", tmp_path)
    monkeypatch.setattr(toolbox, "NAME", "tiny")
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("QJUMP_MN_ARCHIVE", "")
    locks.path_of("tiny").write_text(ASKED)
    try:
        folder = moved.mirror(relock.renewed("tiny", print), tmp_path, print)
    except MachineError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("QJUMP_MN_MIRROR", f"deb [trusted=yes] copy://{folder} ./")
    return folder


@pytest.mark.nightly
def test_a_mirror_that_moves_makes_another_machine_which_is_said(mirror: Path) -> None:
    assert toolbox.found() is None
    lock = locks.read("tiny")
    assert len(lock.have) > 50 and {one.archive for one in lock.have} <= {
        "debian",
        "debian-security",
    }
    (mawk,) = (one.package for one in lock.have if one.package.name == "mawk")
    place = next(mirror.rglob("mawk_*.deb"))
    old = moved.replace_by_newer(mirror, "mawk")

    said: list[str] = []
    other = toolbox.toolbox(said.append)
    assert (
        f"1 of {len(lock.have)} packages of the lock 'tiny' can be had nowhere as they are locked"
        in said[1]
    )
    assert said[1].endswith(
        f"such as mawk {mawk.version}: takes what the mirror has now, which is another machine"
    )
    assert toolbox.differences(other) == [
        f"mawk is {mawk.version}.1, the reference has {mawk.version}"
    ]
    assert toolbox.found() == other == toolbox.toolbox(said.append)
    assert origins.told(other.root.parent).startswith(
        f"what deb [trusted=yes] copy://{mirror} ./ had on 20"
    )

    shutil.move(old, place)
    reference = toolbox.made("tiny", said.append)
    assert toolbox.differences(reference) == []
    assert toolbox.found() == reference != other

    shutil.rmtree(mirror)
    assert toolbox.toolbox(said.append) == reference


BUILD = """
import sys
from pathlib import Path
from qjump_mn import toolbox
from qjump_mn.toolbox import lock
lock.FOLDER, toolbox.NAME = Path(sys.argv[1]), "tiny"
toolbox.toolbox(lambda line: print(line, flush=True))
"""
STAGES = (
    "getting ",
    "running apt-get update",
    "extracting archives",
    "installing remaining packages",
)


def building(mirror: Path) -> subprocess.Popen[str]:
    """The tree is made by another process, which says what it is at."""
    argv = [sys.executable, "-c", BUILD, str(mirror.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True)


def left_over(folder: Path) -> list[str]:
    """Mounts below a folder, and processes that have it on their command line or as their root."""
    found = [line for line in Path("/proc/mounts").read_text().splitlines() if f" {folder}" in line]
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (
                (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
            if str(folder) in command or os.readlink(process / "root").startswith(str(folder)):
                found.append(f"{process.name} {command}")
    return found


@pytest.mark.nightly
def test_killed_build_leaves_nothing_and_two_at_once_make_one(mirror: Path) -> None:
    cache = mirror.parent / "cache"
    for stage in STAGES:
        with building(mirror) as process:
            assert process.stdout is not None
            assert any(stage in line for line in process.stdout), stage
            process.kill()
        until = time.monotonic() + 20
        while left := left_over(cache):
            assert time.monotonic() < until, (stage, left)
            time.sleep(0.05)
        assert toolbox.found() is None
    both = [building(mirror), building(mirror)]
    said = [process.communicate(timeout=600)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert (
        sum("waiting for another qjump-mn that builds the same toolbox" in text for text in said)
        == 1
    )
    tree = toolbox.found()
    assert tree is not None and toolbox.differences(tree) == []
    assert {path.suffix for path in (cache / "toolbox").iterdir()} == {"", ".lock"}
    assert f" packages from file://{mirror}" in origins.told(tree.root.parent)


@pytest.mark.parametrize(
    ("size", "stage"),
    [pytest.param("20m", "getting ", marks=pytest.mark.nightly), ("80m", "unpacking ")],
)
def test_a_disk_that_fills_up_while_it_is_built_is_one_sentence(
    size: str, stage: str, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While packages come, or while they are unpacked."""
    cache, said = mirror.parent / "cache", list[str]()
    sentence = r"^no room for the toolbox: .* of the 2500 MiB that it needs;"
    with mounted(cache, size), pytest.raises(MachineError, match=sentence):
        toolbox.toolbox(said.append)
    assert said == []
    monkeypatch.setattr(toolbox, "_NEEDS_BYTES", 0)
    with mounted(cache, size):
        with pytest.raises(
            MachineError, match=rf"^no room for the toolbox: {cache} has \d+ MiB; make room"
        ):
            toolbox.toolbox(said.append)
        assert [line for line in said if line.startswith(("getting ", "unpacking "))][
            -1
        ].startswith(stage)
        assert not list(cache.glob("toolbox/*.tmp-*")) and not left_over(cache / "toolbox")


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[None]:
    """A small disk."""
    folder.mkdir(exist_ok=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tiny", str(folder)], check=True
    )
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)
