"""How long barriers took, in ms: each as often as there are processes, for each has its own time."""

from __future__ import annotations

import pyarrow as pa

from qjump_mn.analysis.measured.statistics import of_latencies
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import BarrierPlan
from qjump_mn.results.tables import TrialFacts


def values(table: pa.Table, plan: BarrierPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of all processes together. None is ever lost: a process that misses one ends, and the trial with it."""
    return of_latencies(table)
