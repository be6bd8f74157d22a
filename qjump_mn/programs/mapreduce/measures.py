"""Measures of mapreduce: the job's runtime, its hosts' throughput, and the fate of its packets."""

from __future__ import annotations

import pyarrow as pa

from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.mapreduce.program import DROPPED, MapReducePlan
from qjump_mn.programs.measures_api import Measures


def values(
    table: pa.Table, plan: MapReducePlan, trial: Trial, facts: TrialFacts
) -> dict[str, float]:
    """All measures. Those of a job that has not ended have no value, nor do shares of dropped
    packets if none was dropped."""
    (row,) = table.to_pylist()
    dropped = sum(row[f"dropped_{kind}"] for kind in DROPPED)
    numbers = {
        "dropped": dropped / row["packets"],
        "marked": row["marked"] / row["data"],
        "timeouts": float(row["timeouts"]),
    }
    numbers |= {f"dropped_{kind}": row[f"dropped_{kind}"] / dropped for kind in DROPPED if dropped}
    scaled = (
        ("runtime_s", "runtime_ps", 1e12),
        ("shuffled_s", "shuffled_ps", 1e12),
        ("throughput_mbps", "throughput_bps", 1e6),
        ("latency_ms", "latency_ps", 1e9),
    )
    return numbers | {
        name: row[column] / unit for name, column, unit in scaled if row[column] is not None
    }


MEASURES = Measures(values=values)
