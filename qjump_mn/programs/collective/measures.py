"""Measures of collective: how long iterations took in ms, and what that is in bandwidth."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.model.plan import Trial
from qjump_mn.programs.collective.program import CollectivePlan
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.measures_api import Measures
from qjump_mn.programs.statistics import of_latencies
from qjump_mn.programs.tracks import Track, took


def values(
    table: pa.Table, plan: CollectivePlan, trial: Trial, facts: TrialFacts
) -> dict[str, float]:
    """All measures, of the iterations that began after the warm-up; of all if none did.

    ``bus_gbps`` is the payload that a host must send, 2 (n - 1) / n of its data for an all-reduce,
    by the median time. ``of_ideal`` is that time over Thakur's formula.
    """
    later = table.filter(pc.greater_equal(table["start_ns"], facts.began_ns))
    numbers = of_latencies(later if later.num_rows else table)
    if not numbers["received"]:
        return {"iterations": 0.0}
    times = {name: value for name, value in numbers.items() if name.endswith("_ms")}
    times["iterations"] = numbers["received"]
    if plan.goal is not None:
        return times
    ranks = len(plan.hosts or trial.network.hosts)
    shares = ranks - 1 if plan.pattern == "all-to-all" else 2 * (ranks - 1) / ranks
    median_ns = numbers["p50_ms"] * 1e6
    return times | {
        "bus_gbps": shares * plan.size_bytes * 8 / median_ns,
        "of_ideal": median_ns / plan.ideal_ns(trial.network),
    }


def tracks(
    table: pa.Table, plan: CollectivePlan, trial: Trial, facts: TrialFacts
) -> Iterator[Track]:
    """Every iteration, from its start."""
    names = ["all"] * table.num_rows
    yield from took(table, "start_ns", facts.began_ns, names, "time of iterations")


MEASURES = Measures(values=values, tracks=tracks)
