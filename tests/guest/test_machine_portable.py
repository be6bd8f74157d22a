"""The machine as one file: made again it is the same file, also in another folder; and another
user, without root, a mirror or anything built, has the reference run's results with it. Whoever
takes it may be killed at any moment, and two may at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qjump_mn import cache
from qjump_mn.cache import verification
from qjump_mn.toolbox import machines
from tests.guest import strangers
from tests.guest.command import SAME, qjump_mn, succeeds

pytestmark = [pytest.mark.guest, pytest.mark.root, pytest.mark.nightly, pytest.mark.timeout(3600)]

RUN = "-m qjump_mn.run run fig3a --preset smoke --arms idle --out results".split()
NO_MIRROR = "http://127.0.0.1:9/debian"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("machine") / "machine.tar.xz"
    succeeds("machine", "export", path)
    return path


def test_what_is_exported_is_the_reference_machine_bit_for_bit(exported: Path) -> None:
    lock = machines.read()
    assert (cache.hash_of_file(exported), exported.stat().st_size) == (lock.sha256, lock.size_bytes)


def test_another_user_has_the_reference_results_with_nothing_but_the_file(exported: Path) -> None:
    with strangers.made() as someone:
        file = someone.home / "machine.tar.xz"
        file.write_bytes(exported.read_bytes())
        file.chmod(0o444)
        environment = {
            **dict.fromkeys(("HOME", "TMPDIR"), str(someone.home)),
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "QJUMP_MN_CACHE": str(someone.home / "cache"),
            "QJUMP_MN_MIRROR": NO_MIRROR,
            "QJUMP_MN_ARCHIVE": "",
            machines.VARIABLE: str(file),
        }
        done = subprocess.run(
            [someone.python, *RUN], env=environment, cwd=someone.home, user=someone.user,
            extra_groups=[] if someone.user else None, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"takes the machine from {file}" in done.stdout + done.stderr
        assert SAME in done.stdout
        assert {path.name for path in (someone.home / "cache").iterdir()} == {"machine"}


KILLED = 8
"""So often, at moments that are spread over the time that it takes."""


def importing(file: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "qjump_mn.run", "machine", "import", str(file)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_who_takes_it_may_be_killed_anywhere_and_two_take_it_once(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    for _ in range(2):  # the first one may read the file from the disk
        start = time.monotonic()
        process = importing(exported)
        assert process.communicate()[0].endswith("the machine is that of the reference runs\n")
        took_s = time.monotonic() - start
        (whole,) = cache.entries()
        cache.remove(whole.path)
    killed = 0
    for number in range(KILLED):
        process = importing(exported)
        time.sleep(took_s * (number + 1) / (KILLED + 2))
        process.kill()
        process.communicate()
        if process.returncode:
            killed += 1
            assert machines.found() is None and cache.entries() == []
        else:  # it was faster than the first time
            cache.remove(cache.entries()[0].path)
    assert killed > KILLED / 2
    both = [importing(exported), importing(exported)]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert "".join(said).count("waiting for another qjump-mn that builds the same machine") == 1
    left = {path.name for path in (tmp_path / "cache/machine").iterdir()}
    assert left == {machines.read().sha256, f"{machines.read().sha256}.lock"}
    assert verification.verify(print) == (1, 0, 0)


def test_built_anew_in_another_folder_it_is_the_same_file(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of packages, with compilers, modules, programs and image: nothing is taken of what was built
    before."""
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "another cache"))
    done = qjump_mn("machine", "export", tmp_path / "again.tar.xz")
    if "can be had nowhere" in done.stdout + done.stderr:
        pytest.skip("the locked packages cannot be had any more")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "again.tar.xz").read_bytes() == exported.read_bytes()
