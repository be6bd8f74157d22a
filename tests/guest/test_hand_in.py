"""A run that is handed in: verified here, bundled, checked and run again; and one that was
forged."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qjump_mn.results import directory
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import TrialRecord

pytestmark = [pytest.mark.guest, pytest.mark.smoke, pytest.mark.fresh]


def called(*arguments: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "qjump_mn.run", *map(str, arguments)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    return done


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    out = tmp_path_factory.mktemp("handed")
    called(
        "fig3a", "--preset", "smoke", "--arms", "idle,contended", "-s", "duration=1s", "--out", out
    )
    return directory.existing(out / "last")


def test_a_run_is_verified_file_by_file(run: RunDirectory, tmp_path: Path) -> None:
    done = called("verify", run.path)
    files = len(run.manifest.files)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        0,
        f"identical: all {files} files of 2 trials",
    )
    made = called("bundle", run.path, "--out", tmp_path / "one.zip")
    assert made.returncode == 0, made.stderr
    done = called("check", tmp_path / "one.zip", "--rerun", "--sample", "1")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "all is well")
    assert "files of 1 trial\n" in done.stdout
    assert "jobs: those of the plan\n" in done.stdout


@pytest.mark.nightly
def test_numbers_that_were_made_better_are_found(run: RunDirectory, tmp_path: Path) -> None:
    forged = RunDirectory(shutil.copytree(run.path, tmp_path / run.path.name))
    file = next(forged.raw("contended/1").glob("ping*"))
    file.write_text(file.read_text().replace("time=1", "time=0"))
    forged.finish("contended/1", TrialRecord(status="done", exit_code=0))
    called("report", forged.path)
    assert called("bundle", forged.path, "--out", tmp_path / "two.zip").returncode == 0
    done = called("check", tmp_path / "two.zip", "--rerun", "--arms", "contended")
    assert done.returncode in (1, 4)
    assert f"first in trials/contended/1/raw/{file.name}: line " in done.stdout
    assert done.stdout.splitlines()[-1] == "not all is well: see above"
