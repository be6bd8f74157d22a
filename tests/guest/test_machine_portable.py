"""The machine as one file: made again it is the same file, and another user, without root, a mirror or anything
built, has the reference run's results with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qjump_mn import cache
from qjump_mn.toolbox import machines
from tests.guest import strangers

pytestmark = [pytest.mark.guest, pytest.mark.root, pytest.mark.timeout(3600)]

RUN = ["-m", "qjump_mn.run", "run", "fig3a", "--preset", "smoke", "--arms", "idle", "--out", "results"]
NO_MIRROR = "http://127.0.0.1:9/debian"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("machine") / "machine.tar.xz"
    argv = [sys.executable, "-m", "qjump_mn.run", "machine", "export", str(path)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


def test_what_is_exported_is_the_reference_machine_bit_for_bit(exported: Path) -> None:
    lock = machines.read()
    assert (cache.hash_of_file(exported), exported.stat().st_size) == (lock.sha256, lock.size_bytes)


def test_another_user_has_the_reference_results_with_nothing_but_the_file(exported: Path) -> None:
    with strangers.made() as someone:
        file = someone.home / "machine.tar.xz"
        file.write_bytes(exported.read_bytes())
        file.chmod(0o444)
        done = subprocess.run(
            [someone.python, *RUN],
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(someone.home),
                "TMPDIR": str(someone.home),
                "PYTHONPATH": os.pathsep.join(sys.path),
                "QJUMP_MN_CACHE": str(someone.home / "cache"),
                "QJUMP_MN_MIRROR": NO_MIRROR,
                "QJUMP_MN_ARCHIVE": "",
                machines.VARIABLE: str(file),
            },
            cwd=someone.home,
            user=someone.user,
            extra_groups=[] if someone.user else None,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"takes the machine from {file}" in done.stdout + done.stderr
        assert "the results are those of the reference run in the 1 trial that both have" in done.stdout
        assert {path.name for path in (someone.home / "cache").iterdir()} == {"machine", "snapshot"}
