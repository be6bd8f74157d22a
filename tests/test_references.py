"""The reference runs that are committed: each is of its experiment and preset as they are now."""

from __future__ import annotations

from pathlib import Path

import pytest

import qjump_mn
from qjump_mn.model import loading, resolve
from qjump_mn.results import reference

FOLDER = Path(qjump_mn.__file__).parents[1] / "experiments/reference"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def test_there_are_reference_runs() -> None:
    assert "fig3a-smoke" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_reference_run_is_of_the_plan_as_it_is(name: str) -> None:
    experiment, _, preset = name.rpartition("-")
    assert preset in loading.presets(experiment)
    plan, kept = resolve.plan(experiment, preset, []), reference.read(FOLDER / f"{name}.json")
    assert kept.plan_sha256 == plan.hash
    assert {trial: entry.run_sha256 for trial, entry in kept.trials.items()} == {
        trial.name: trial.hash for trial in plan.trials()
    }
