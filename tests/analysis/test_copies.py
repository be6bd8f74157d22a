"""Whose raw output must be a copy: of another seed, and on a real clock of any other trial."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from qjump_mn.analysis import copies
from qjump_mn.resolve import plan
from qjump_mn.results import contents

PLAN = plan("fig3a", "smoke", [], replicates=3, only=["idle", "contended"])
TRIALS = {trial.name: trial for trial in PLAN.trials()}


def found(
    monkeypatch: pytest.MonkeyPatch,
    outputs: dict[str, str],
    clock: str = "virtual",
    backend: str = "guest",
) -> list[str]:
    """The sentences where each trial left these bytes."""
    manifest = kept(monkeypatch, outputs, clock, backend)
    data: Any = [SimpleNamespace(trial=TRIALS[name]) for name in outputs]
    return copies.sentences(manifest, data)


def kept(
    monkeypatch: pytest.MonkeyPatch, outputs: dict[str, str], clock: str, backend: str = "guest"
) -> Any:
    """A manifest where each trial left these bytes."""
    monkeypatch.setattr(contents, "by_trial", lambda files: files)
    monkeypatch.setattr(
        contents,
        "output",
        lambda files, name: {("ping.txt", files[name])} if files.get(name) else set(),
    )
    return SimpleNamespace(files=outputs, clock=clock, backend=backend, plan=PLAN)


def copy(name: str, of: str) -> str:
    return f"{name} has the output of {of}, byte for byte: it is a copy"


def test_copy_of_another_seed_is_named_once_with_the_first_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outputs = {"idle/1": "a", "idle/2": "b", "contended/1": "a", "contended/2": "b", "idle/3": "a"}
    assert found(monkeypatch, outputs) == [copy("idle/3", "idle/1")]


def test_arms_of_a_seed_may_be_alike_on_the_virtual_clock_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outputs = {"idle/1": "a", "contended/1": "a"}
    assert found(monkeypatch, outputs) == []
    assert found(monkeypatch, outputs, clock="real") == [copy("contended/1", "idle/1")]


def test_trials_without_output_are_no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, {"idle/1": "", "idle/2": "", "idle/3": "c"}, clock="real") == []


def test_seeds_may_be_alike_where_the_simulator_draws_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert found(monkeypatch, {"idle/1": "a", "idle/2": "a"}, backend="simulator") == []


ALIKE = {f"{arm}/{seed}": str(seed) for arm in ("idle", "contended") for seed in PLAN.run.seeds}


def test_arms_with_the_same_bytes_of_every_seed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = [f"'{arm.label}'" for arm in PLAN.run.arms]
    assert copies.alike(kept(monkeypatch, ALIKE, "virtual")) == [
        f"The arms {labels[0]} and {labels[1]} left the same bytes with every seed: the setting "
        "between them did nothing."
    ]


@pytest.mark.parametrize(
    ("change", "clock"),
    [
        ({"idle/2": "other"}, "virtual"),
        ({"idle/2": "", "contended/2": ""}, "virtual"),
        ({}, "real"),
    ],
    ids=["another-seed", "no-output", "real-clock"],
)
def test_arms_are_not_alike(
    change: dict[str, str], clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert copies.alike(kept(monkeypatch, ALIKE | change, clock)) == []
