"""What memcaslap's statistics tell: throughput, the ends and the mean of the latencies, and of everything
between them a bound."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.model.plan import Trial
from qjump_mn.programs.measures_api import Measures
from qjump_mn.programs.memcached.measures import MINIMUM_RTO_MS
from qjump_mn.programs.memcaslap.agreement import agrees
from qjump_mn.programs.memcaslap.program import MemcaslapPlan
from qjump_mn.results.tables import TrialFacts


def values(table: pa.Table, plan: MemcaslapPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of all flows together. A percentile is known by its bucket: it is at most the bucket's
    end, or the maximum if that is less, and more than half of the bucket's end.

    Of requests that took more than 200 ms only the least and the greatest number that the buckets allow are
    known; a maximum below 200 ms says that there were none. What was never answered is in no measure."""
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
    buckets = (
        table.filter((pc.field("kind") == "bucket") & (pc.field("op") == "TOTAL"))
        .group_by("at_most_us")
        .aggregate([("ops", "sum")])
    )
    buckets = buckets.sort_by("at_most_us")
    at_most_ms, counts = buckets["at_most_us"].to_numpy() / 1e3, buckets["ops_sum"].to_numpy()
    answers, below = int(np.sum(counts)), np.cumsum(counts)
    for name, percent in (("p50_at_most_ms", 50), ("p99_at_most_ms", 99)):
        # The bucket that has the value of nearest rank: percent x answers is an integer, so nothing is
        # rounded.
        numbers[name] = min(
            float(at_most_ms[np.searchsorted(below * 100, percent * answers)]), numbers["max_ms"]
        )
    longer = numbers["max_ms"] > MINIMUM_RTO_MS
    surely = int(np.sum(counts[at_most_ms / 2 >= MINIMUM_RTO_MS]))
    numbers["over_200ms_at_least"] = max(surely, int(longer)) / answers
    numbers["over_200ms_at_most"] = (
        int(np.sum(counts[at_most_ms > MINIMUM_RTO_MS])) / answers if longer else 0.0
    )
    for op, name in (("GET", "get_mean_ms"), ("SET", "set_mean_ms")):
        one = runs.filter(pc.field("op") == op)
        if one.num_rows:
            numbers[name] = _mean_ms(one)
    return numbers


def _mean_ms(runs: pa.Table) -> float:
    """The mean over the flows, each by its answers."""
    return float(np.average(runs["avg_us"].to_numpy(), weights=runs["ops"].to_numpy())) / 1e3


MEASURES = Measures(values=values, agrees=agrees)
