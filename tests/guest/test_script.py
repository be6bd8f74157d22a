"""The script of ``--dry-run`` builds the same network as a run, and leaves only the same files."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import msgspec
import pytest

from qjump_mn.executor.shell import inside
from qjump_mn.executor.steps import Read, Run, Start
from qjump_mn.guest import Image, Job, Setup
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.resolve import plan
from qjump_mn.results import tables
from qjump_mn.steps import asbuilt, openvswitch, readback, script
from qjump_mn.steps.compile import trial_steps
from qjump_mn.steps.network import bring_up
from tests.guest.laboratory import run_well

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

SHORT = ["duration=200ms", "warmup=200ms"]


def fig3a(model: str, arms: tuple[str, ...], schemes: tuple[str, ...] = ()) -> Plan:
    return plan(
        "fig3a", "smoke", [*SHORT, f"link.model={model}"], replicates=1, only=arms, schemes=schemes
    )


PLANS = {
    "wire": fig3a("wire", ("qjump", "window_only", "dctcp", "pause"), ("dctcp", "pause")),
    "htb": fig3a("htb", ("qjump",)),
    "tbf": fig3a("tbf", ("qjump",)),
}
TRIALS = {
    (name, trial.arm.name): trial for name, resolved in PLANS.items() for trial in resolved.trials()
}


@pytest.fixture(scope="module")
def out(image: Image, booted: Setup, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What script_job.py leaves, from one guest for all scripts."""
    folder = tmp_path_factory.mktemp("scripts")
    files = {
        f"{name}.sh": "\n".join([*script.lines(resolved), ""]) for name, resolved in PLANS.items()
    }
    files["openvswitch.json"] = msgspec.json.encode(openvswitch.start()).decode()
    code = Path(__file__).with_name("script_job.py").read_text()
    run_well(image, booted, Job(script=code, files=files, virtual_deadline_s=1000), folder)
    return folder


@pytest.mark.parametrize("name", PLANS)
def test_script_succeeds_and_leaves_only_its_files(name: str, out: Path) -> None:
    result = json.loads((out / "results.json").read_text())[name]
    assert (result["code"], (out / name / "stderr").read_text()) == (0, "")
    assert result["after"] == result["before"]
    assert (result["after"]["namespaces"], result["after"]["bridges"]) == ("", "")


@pytest.mark.parametrize(("name", "arm"), TRIALS)
def test_script_builds_the_planned_network(name: str, arm: str, out: Path) -> None:
    trial = TRIALS[name, arm]
    folder = out / name / "trials" / trial.name
    assert asbuilt.differences(folder / readback.BEFORE, trial.arm) == []
    for workload in trial.arm.workloads:
        assert tables.table(workload, trial, folder / "raw").num_rows


@pytest.mark.parametrize(("name", "arm"), TRIALS)
def test_script_has_every_command_of_a_trial(name: str, arm: str) -> None:
    trial: Trial = TRIALS[name, arm]
    text = "\n".join(script.lines(PLANS[name]))
    for step in (*bring_up(trial.network.skeleton()), *trial_steps(trial)):
        if isinstance(step, Run | Read | Start):
            assert shlex.join(inside(step.node, step.argv)) in text
