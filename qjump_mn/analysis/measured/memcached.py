"""Latencies of requests in ms, from when each was due."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.analysis.measured.statistics import milliseconds, of_latencies, percentile
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import MemcachedPlan
from qjump_mn.results.tables import TrialFacts

MINIMUM_RTO_MS = 200.0
"""Linux's least retransmission timeout: a request that takes longer has lost a packet at the end of a burst."""


def values(table: pa.Table, plan: MemcachedPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of all flows together; ``over_200ms`` is a share of all requests, those without an answer among them.

    ``requests_per_s`` counts the answers that came within the trial's duration since the first request was due.
    """
    found = milliseconds(table)
    measures = of_latencies(table)
    measures["requests_per_s"] = 0.0
    if table.num_rows:
        # What comes after the end of the load is an answer, but not of this throughput: behind a small budget it would be a third of all.
        answered = table.filter(pc.is_valid(table["latency_us"]))
        done = answered["due_ns"].to_numpy() + answered["latency_us"].to_numpy() * 1e3
        inside = np.count_nonzero(done <= pc.min(table["due_ns"]).as_py() + trial.duration_ns)
        measures["requests_per_s"] = int(inside) / (trial.duration_ns / 1e9)
        measures["over_200ms"] = (int(np.count_nonzero(found > MINIMUM_RTO_MS)) + table.num_rows - len(found)) / table.num_rows
    if len(found):
        measures["rms_ms"] = float(np.sqrt(np.mean(found**2)))
    gets, sets = (np.sort(milliseconds(table.filter(pc.field("op") == op))) for op in ("GET", "SET"))
    if len(gets):
        measures["get_p50_ms"] = percentile(gets, 50)
    if len(sets):
        measures["set_mean_ms"] = float(np.mean(sets))
    return measures
