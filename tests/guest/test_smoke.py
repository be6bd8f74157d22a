"""The smoke preset of every experiment, by the command line, as a user calls it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from qjump_mn.model import loading
from qjump_mn.results import directory, outcome, reference

pytestmark = [pytest.mark.guest, pytest.mark.smoke]


@pytest.mark.parametrize("experiment", loading.names("experiments"))
def test_every_claim_of_the_smoke_run_holds(experiment: str, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "qjump_mn.run", experiment, "--preset", "smoke", "--out", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    run = directory.existing(tmp_path / "last")
    manifest, found = run.manifest, outcome.read(run.path)
    assert all(record.status == "done" for record in manifest.trials.values())
    assert {row.verdict for row in found.verdicts} == {"REPRODUCED"}
    assert (run.path / "report.html").stat().st_size > 50_000
    assert (run.path / "fig").glob("*.png")
    # A stored reference of the same image must be met to the bit; another image is another machine, which the report says.
    assert "same plan, same image" not in reference.sentence(manifest, reference.find(experiment, "smoke"))
