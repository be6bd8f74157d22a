"""Measures of a trial, of seeds, and of the line about the end of a trial."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from qjump_mn.analysis import measures
from qjump_mn.analysis.measures import TrialMeasures
from qjump_mn.errors import LostError
from qjump_mn.model import hooks
from qjump_mn.programs import registry
from qjump_mn.resolve import plan
from qjump_mn.results import tables

PLAN = plan("fig3a", "smoke", [], replicates=3, only=["contended"])
TRIAL = PLAN.trials()[0]
NOTHING: Any = None


def test_values_have_added_measures_that_have_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    own = SimpleNamespace(values=lambda *about: {"p50_ms": 1.0})
    added = {
        name: SimpleNamespace(value=lambda *about, of=of: of)
        for name, of in (("b", 0.0), ("c", None))
    }
    monkeypatch.setattr(registry, "measures", lambda workload: own)
    monkeypatch.setattr(registry, "added_measures", lambda workload: added)
    found = measures.values(TRIAL.arm.workloads[0], NOTHING, TRIAL, NOTHING)
    assert found == {"p50_ms": 1.0, "b": 0.0}


def median(
    monkeypatch: pytest.MonkeyPatch, measured: dict[str, float] | Exception, trial: Any = TRIAL
) -> str:
    def values(*about: Any) -> dict[str, float]:
        if isinstance(measured, Exception):
            raise measured
        return measured

    monkeypatch.setattr(tables, "table", lambda *about: None)
    monkeypatch.setattr(tables, "facts", lambda *about: None)
    monkeypatch.setattr(measures, "values", values)
    return measures.first_median(cast("Any", SimpleNamespace(raw=Path)), trial, "us")


def test_first_median_is_of_the_first_workload_in_the_foreground(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert median(monkeypatch, {"p50_ms": 0.0081}) == "ping: median 8.1 us"
    assert median(monkeypatch, {}) == ""
    assert median(monkeypatch, LostError("unreadable")) == ""
    bulk = [load for load in TRIAL.arm.workloads if hooks.is_background(load)]
    alone = SimpleNamespace(name="a/1", arm=SimpleNamespace(workloads=bulk))
    assert median(monkeypatch, {"p50_ms": 1.0}, alone) == ""


def test_summary_has_the_spread_of_the_seeds_that_have_a_measure() -> None:
    def measured(seed: int, **values: float) -> TrialMeasures:
        flows = {"bulk": {"h7>h10": 1.0 * seed}}
        return TrialMeasures("contended", seed, {"ping": values, "bulk": {}}, flows)

    trials = [measured(1, p50_ms=1.0, loss=0.5), measured(2, p50_ms=5.0)]
    other = TrialMeasures("idle", 3, {"ping": {"p50_ms": 99.0}}, {})
    (found,) = measures.summarise(PLAN, [*trials, other])
    assert (found.name, found.planned, found.done) == ("contended", 3, 2)
    spreads = found.measures["ping"]
    assert set(spreads) == {"p50_ms", "loss"} and found.measures["bulk"] == {}
    assert (spreads["p50_ms"].minimum, spreads["p50_ms"].maximum) == (1.0, 5.0)
    assert spreads["loss"].median == 0.5
    assert set(found.flows) == {"bulk"}
