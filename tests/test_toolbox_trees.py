"""Trees from a mirror of our own, which moves on: the least Debian that mmdebstrap makes, of real packages.

It is locked from the mirror that this machine has; from there on only ours is there.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from qjump_mn import toolbox
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox import packages, renewal

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
        lock = renewal.renewed("tiny", print)
        packages.gather(lock, tmp_path / "had", print)
    except MachineError as error:
        pytest.skip(str(error))
    folder = tmp_path / "debian"
    for one in lock.have:
        path = folder / one.in_archive
        path.parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "had" / packages.file_name(one)).rename(path)
    monkeypatch.setenv("QJUMP_MN_MIRROR", f"deb [trusted=yes] copy://{folder} ./")
    packages.index(folder, "trixie")
    return folder


def replaced_by_newer(folder: Path, name: str) -> Path:
    """Put a newer version into the place of a package; the old file, elsewhere."""
    (path,) = folder.rglob(f"{name}_*.deb")
    old = Path(shutil.move(path, folder.parent))
    unpacked = folder.parent / "unpacked"
    subprocess.run(["dpkg-deb", "-R", old, unpacked], check=True)
    control = unpacked / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^(Version: .*)$", r"\1.1", control.read_text()))
    subprocess.run(["dpkg-deb", "-b", unpacked, path.with_name(f"{name}_newer_amd64.deb")], check=True)
    packages.index(folder, "trixie")
    return old


def test_a_mirror_that_moves_makes_another_machine_which_is_said(mirror: Path) -> None:
    assert toolbox.found() is None
    lock = locks.read("tiny")
    assert len(lock.have) > 50 and {one.archive for one in lock.have} <= {"debian", "debian-security"}
    (mawk,) = (one.package for one in lock.have if one.package.name == "mawk")
    place = next(mirror.rglob("mawk_*.deb"))
    old = replaced_by_newer(mirror, "mawk")

    said: list[str] = []
    other = toolbox.toolbox(said.append)
    assert (
        f"1 of {len(lock.have)} packages of the lock 'tiny' can be had nowhere as they are locked" in said[1]
    )
    assert said[1].endswith(
        f"such as mawk {mawk.version}: takes what the mirror has now, which is another machine"
    )
    assert toolbox.differences(other) == [f"mawk is {mawk.version}.1, the reference has {mawk.version}"]
    assert toolbox.found() == other == toolbox.toolbox(said.append)

    shutil.move(old, place)
    reference = toolbox.made("tiny", said.append)
    assert toolbox.differences(reference) == []
    assert toolbox.found() == reference != other

    shutil.rmtree(mirror)
    assert toolbox.toolbox(said.append) == reference
