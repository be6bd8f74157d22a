"""What came after QJump, by the command line: a run of the smoke preset, all of its arms, and a
scheme of theirs on the testbed."""

from __future__ import annotations

from pathlib import Path

import pytest

from qjump_mn.results import directory
from qjump_mn.results.directory import RunDirectory
from tests.simulator.short import command
from tests.support.processes import execute

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("package")]

RIVALS = ("swift", "bbr", "dcqcn", "dcqcn_pfc", "homa", "aequitas")


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    out = tmp_path_factory.mktemp("rivals")
    done = execute(command(out, "rivals", "--preset", "smoke"))
    assert done.returncode == 0, done.stdout + done.stderr
    return directory.existing(out / "last")


def test_every_scheme_runs_and_is_drawn(smoke: RunDirectory) -> None:
    arms = {name.split("/")[0] for name in smoke.manifest.trials}
    assert {f"{rival}_0_{load}" for rival in RIVALS for load in (2, 6)} <= arms
    assert all(record.status == "done" for record in smoke.manifest.trials.values())
    assert (smoke.path / "fig" / "sweep.png").is_file()


def test_a_scheme_of_theirs_has_its_settings(smoke: RunDirectory) -> None:
    built = (smoke.path / "trials" / "homa_0_2" / "1" / "asbuilt" / "scenario.json").read_text()
    assert '"kind": "Homa"' in built and '"scheduled": 6' in built
    built = (
        smoke.path / "trials" / "dcqcn_pfc_0_2" / "1" / "asbuilt" / "scenario.json"
    ).read_text()
    assert '"kind": "LevelRed"' in built and '"kind": "Pfc"' in built and '"kind": "Dcqcn"' in built
    built = (smoke.path / "trials" / "aequitas_0_2" / "1" / "asbuilt" / "scenario.json").read_text()
    assert '"kind": "Aequitas"' in built and '"kind": "Swift"' in built and '"kind": "Wfq"' in built


def test_the_testbed_runs_them_too(smoke: RunDirectory, tmp_path: Path) -> None:
    short = ("-s", "replicates=1", "-s", "duration=5ms", "-s", "workloads.job.map_size=1MB")
    argv = command(tmp_path, "fig7", "--preset", "10g", "--scheme", "homa", *short)
    done = execute(argv)
    found = directory.existing(tmp_path / "last")
    assert found.manifest.trials["homa/1"].status == "done", done.stdout + done.stderr
