"""Measures of memcaslap: throughput, minimum, mean and maximum of the latencies, and bounds of
percentiles."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.measures_api import Measures
from qjump_mn.programs.memcached.measures import MINIMUM_RTO_MS
from qjump_mn.programs.memcaslap.program import MemcaslapPlan


def values(
    table: pa.Table, plan: MemcaslapPlan, trial: Trial, facts: TrialFacts
) -> dict[str, float]:
    """The measures of all flows together. A percentile is known by its bucket: it is at most the
    bucket's upper end, or the maximum if that is less, and more than half of the bucket's end.

    Of requests that took more than 200 ms, only the smallest and the largest number that the
    buckets allow are known; with a maximum below 200 ms there were none. Unanswered requests are in
    no measure.
    """
    periods = table.filter((pc.field("kind") == "period") & (pc.field("op") == "TOTAL"))
    runs = table.filter(pc.field("kind") == "run")
    total = runs.filter(pc.field("op") == "TOTAL")
    numbers = {
        "requests_per_s": pc.sum(periods["ops"], min_count=0).as_py() / plan.seconds,
        "min_ms": pc.min(total["min_us"]).as_py() / 1e3,
        "mean_ms": _mean_ms(total),
        "max_ms": pc.max(total["max_us"]).as_py() / 1e3,
        "misses": float(pc.sum(total["misses"]).as_py()),
    }
    numbers |= _bounds(table, numbers["max_ms"])
    for op, name in (("GET", "get_mean_ms"), ("SET", "set_mean_ms")):
        op_runs = runs.filter(pc.field("op") == op)
        if op_runs.num_rows:
            numbers[name] = _mean_ms(op_runs)
    return numbers


def _bounds(table: pa.Table, max_ms: float) -> dict[str, float]:
    """Bounds from the buckets of all flows: percentiles, and requests that took more than 200
    ms."""
    buckets = (
        table.filter((pc.field("kind") == "bucket") & (pc.field("op") == "TOTAL"))
        .group_by("at_most_us")
        .aggregate([("ops", "sum")])
        .sort_by("at_most_us")
    )
    at_most_ms, counts = buckets["at_most_us"].to_numpy() / 1e3, buckets["ops_sum"].to_numpy()
    answers, cumulative = int(np.sum(counts)), np.cumsum(counts)
    numbers = {}
    for name, percent in (("p50_at_most_ms", 50), ("p99_at_most_ms", 99)):
        # The bucket with the value of nearest rank. Integers on both sides: nothing is rounded.
        bucket = np.searchsorted(cumulative * 100, percent * answers)
        numbers[name] = min(float(at_most_ms[bucket]), max_ms)
    has_longer = max_ms > MINIMUM_RTO_MS
    least = max(int(np.sum(counts[at_most_ms / 2 >= MINIMUM_RTO_MS])), int(has_longer))
    most = int(np.sum(counts[at_most_ms > MINIMUM_RTO_MS])) if has_longer else 0
    return numbers | {"over_200ms_at_least": least / answers, "over_200ms_at_most": most / answers}


def _mean_ms(runs: pa.Table) -> float:
    """The mean over the flows, weighted by their answers."""
    return float(np.average(runs["avg_us"].to_numpy(), weights=runs["ops"].to_numpy())) / 1e3


MEASURES = Measures(values=values)
