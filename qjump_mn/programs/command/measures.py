"""Measures of command: statistics of the numbers in its output."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.model.plan import Trial
from qjump_mn.programs.command.program import PERCENTILES, CommandPlan
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.measures_api import Floats, Measures
from qjump_mn.programs.statistics import of_latencies, percentile


def values(table: pa.Table, plan: CommandPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """Statistics of each number over all hosts and flows. A number with a single value also has
    that value under its own name."""
    numbers: dict[str, float] = {}
    for name in plan.numbers:
        ascending = np.sort(table.filter(pc.field("number") == name)["value"].to_numpy())
        numbers[f"{name}_count"] = float(len(ascending))
        if len(ascending):
            numbers |= {f"{name}_{key}": value for key, value in _statistics(ascending).items()}
        if len(ascending) == 1:
            numbers[name] = float(ascending[0])
    if plan.latency:
        latencies = of_latencies(requests(table))
        numbers |= {name: latencies[name] for name in PERCENTILES if name in latencies}
    return numbers


def _statistics(ascending: Floats) -> dict[str, float]:
    return {
        "mean": float(np.mean(ascending)),
        "p50": percentile(ascending, 50),
        "p99": percentile(ascending, 99),
        "min": float(ascending[0]),
        "max": float(ascending[-1]),
    }


def requests(table: pa.Table) -> pa.Table:
    """The rows of the number that is a latency."""
    return table.filter(pc.is_valid(table["latency_us"]))


MEASURES = Measures(values=values, requests=requests)
