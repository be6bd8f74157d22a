"""Numbers at both ends of each range, and names of arms, workloads and measures that must exist."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from qjump_mn.errors import UsageError
from qjump_mn.model import hooks
from qjump_mn.model.experiment import ExperimentSpec, PanelSpec
from qjump_mn.model.units import Duration
from qjump_mn.resolve import checks, loading, plan

SPEC = loading.experiment("fig3a", "course", [])[0]
ARMS = plan("fig3a", "course", []).arms
LAST = 2**31


@pytest.mark.parametrize(
    ("first", "replicates", "perturb", "seeds"),
    [
        (0, 1, 0, (0,)),
        (3, 2, 7, (3, 4)),
        (LAST - 2, 2, 0, (LAST - 2, LAST - 1)),
        (LAST - 5, 2, 3, (LAST - 5, LAST - 4)),
        (1, checks.MAX_REPLICATES, 0, tuple(range(1, checks.MAX_REPLICATES + 1))),
    ],
)
def test_seeds_count_from_the_first(
    first: int, replicates: int, perturb: int, seeds: tuple[int, ...]
) -> None:
    assert checks.seeds(first, replicates, perturb) == seeds


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ((1, 0, 0), "replicates must be 1 to 1000 (got 0)"),
        ((1, 1001, 0), "(got 1001)"),
        ((-1, 1, 0), f"seed -1 is out of range: use 0 to {LAST - 1}"),
        ((LAST - 4, 2, 3), f"use 0 to {LAST - 5}"),
        ((1, 1, -1), "-1 perturbed runs are out of range"),
    ],
)
def test_seeds_out_of_range_are_refused(numbers: tuple[int, int, int], sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        checks.seeds(*numbers)


def changed(**changes: Any) -> ExperimentSpec:
    return msgspec.structs.replace(SPEC, **changes)


def without_lasting() -> dict[str, Any]:
    """Workloads that end by themselves."""
    return {key: load for key, load in SPEC.workloads.items() if not hooks.is_lasting(load)}


@pytest.mark.parametrize(
    "spec",
    [
        changed(duration=Duration(1000)),
        changed(duration=Duration(3600 * 10**9), warmup=Duration(600 * 10**9)),
        changed(duration=Duration(0), workloads=without_lasting()),
    ],
)
def test_times_at_the_ends_of_their_ranges_are_allowed(spec: ExperimentSpec) -> None:
    checks.times("here", spec)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (changed(duration=Duration(0)), "here: its workloads need a duration"),
        (changed(duration=Duration(999)), "here: a duration of 999ns is out of range"),
        (changed(duration=Duration(3600 * 10**9 + 1)), "here: a duration of"),
        (changed(duration=Duration(1), workloads={}), "here: a duration of 1ns is out of range"),
        (changed(warmup=Duration(600 * 10**9 + 1)), "here: a warmup of"),
    ],
)
def test_times_out_of_range_are_refused(spec: ExperimentSpec, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        checks.times("here", spec)


def figure(**changes: Any) -> ExperimentSpec:
    return changed(figure=msgspec.structs.replace(SPEC.figure, **changes))


def panel(**changes: Any) -> ExperimentSpec:
    return figure(panels=[PanelSpec(measures=["ping.p50_ms"], label="L", **changes)])


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (changed(compare="nosuch"), "here: compare: there is no arm 'nosuch'"),
        (changed(compare=["idle", "nosuch"]), "here: compare: there is no arm 'nosuch'"),
        (figure(workload="nosuch"), "here: figure.workload: there is no workload 'nosuch'"),
        (figure(arms=["nosuch"]), "here: figure: there is no arm 'nosuch'"),
        (figure(detail=["nosuch"]), "here: figure: there is no arm 'nosuch'"),
        (figure(table=["ping.nosuch"]), "here: figure: no arm has 'ping.nosuch'"),
        (panel(arms=["nosuch"]), "here: figure: there is no arm 'nosuch'"),
        (panel(arms=["limiter_drop"]), "panels: 'limiter_drop' is not one of the figure's arms"),
        (panel(relative_to={"ping": "nosuch"}), "here: figure: there is no arm 'nosuch'"),
        (panel(relative_to={"nosuch": "idle"}), "relative_to: there is no workload 'nosuch'"),
        (
            changed(workloads={**SPEC.workloads, "links": SPEC.workloads["ping"]}),
            "here: workloads.links: this name is taken",
        ),
    ],
)
def test_names_that_nothing_has_are_refused(spec: ExperimentSpec, sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        checks.names("here", spec, ARMS)


def test_names_allows_what_exists_and_no_comparison() -> None:
    checks.names("here", panel(arms=["idle"], relative_to={"ping": "idle"}), ARMS)
    checks.names("here", changed(compare="", figure=SPEC.figure), ARMS)
    checks.names("here", changed(compare=["idle", "qjump"]), ARMS)


@pytest.mark.parametrize(
    ("only", "names"),
    [
        ([], [arm.name for arm in ARMS]),
        (["qjump-drop", "idle"], ["idle", "qjump_drop"]),
        (["qjump_drop"], ["qjump_drop"]),
    ],
)
def test_asked_arms_are_those_named_or_all(only: list[str], names: list[str]) -> None:
    asked = checks.asked("here", SPEC, ARMS, only)
    assert [arm.name for arm, run in zip(ARMS, asked, strict=True) if run] == names
    with pytest.raises(UsageError, match="here: there is no arm 'idel': did you mean 'idle'"):
        checks.asked("here", SPEC, ARMS, ["idel"])


def test_asked_series_is_all_of_its_arms() -> None:
    arms = tuple(msgspec.structs.replace(arm, series="s") for arm in ARMS[:2]) + ARMS[2:3]
    assert checks.asked("here", SPEC, arms, ["s"]) == [True, True, False]
