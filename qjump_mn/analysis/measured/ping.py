"""Round trips in ms, and the fraction of requests that had no reply."""

from __future__ import annotations

import pyarrow as pa

from qjump_mn.analysis.measured.statistics import of_latencies
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import PingPlan
from qjump_mn.results.tables import TrialFacts


def values(table: pa.Table, plan: PingPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of a ping, of all its flows."""
    return of_latencies(table)
