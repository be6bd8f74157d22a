"""A run that is handed in: verified here, bundled, checked and run again; and one that was
forged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qjump_mn.results import directory
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import TrialRecord
from tests.guest.command import qjump_mn, succeeds

pytestmark = [pytest.mark.guest, pytest.mark.smoke, pytest.mark.fresh]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    out = tmp_path_factory.mktemp("handed")
    words = "fig3a --preset smoke --arms idle,contended -s duration=1s --out"
    qjump_mn(*words.split(), out)
    return directory.existing(out / "last")


def test_a_run_is_verified_file_by_file(run: RunDirectory, tmp_path: Path) -> None:
    done = qjump_mn("verify", run.path)
    files = len(run.manifest.files)
    last = f"identical: all {files} files of 2 trials"
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, last)
    succeeds("bundle", run.path, "--out", tmp_path / "one.zip")
    done = qjump_mn("check", tmp_path / "one.zip", "--rerun", "--sample", "1")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "all is well")
    assert "files of 1 trial\n" in done.stdout


@pytest.mark.nightly
def test_numbers_that_were_made_better_are_found(run: RunDirectory, tmp_path: Path) -> None:
    forged = RunDirectory(shutil.copytree(run.path, tmp_path / run.path.name))
    file = next(forged.raw("contended/1").glob("ping*"))
    file.write_text(file.read_text().replace("time=1", "time=0"))
    forged.finish("contended/1", TrialRecord(status="done", exit_code=0))
    qjump_mn("report", forged.path)
    succeeds("bundle", forged.path, "--out", tmp_path / "two.zip")
    done = qjump_mn("check", tmp_path / "two.zip", "--rerun", "--arms", "contended")
    assert done.returncode in (1, 4)
    assert f"first in trials/contended/1/raw/{file.name}: line " in done.stdout
    assert done.stdout.splitlines()[-1] == "not all is well: see above"
