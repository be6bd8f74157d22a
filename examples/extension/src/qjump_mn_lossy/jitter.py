"""A measure of qjump-mn's own program ping: by how much a round trip differs from the one
before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.model.plan import Trial
from qjump_mn.programs.base import Measure
from qjump_mn.programs.facts import TrialFacts


def jitter_ms(table: pa.Table, plan: Any, trial: Trial, facts: TrialFacts) -> float | None:
    """The mean absolute difference of successive round trips, of all flows; None if no two came
    back."""
    differences_us = []
    for flow in map(">".join, plan.flows):
        trips_us = table.filter(pc.field("flow") == flow)["latency_us"].to_numpy(
            zero_copy_only=False
        )
        apart_us = np.abs(np.diff(trips_us))  # nan where one of the two was lost
        differences_us.append(apart_us[~np.isnan(apart_us)])
    pooled_us = np.concatenate(differences_us)
    return float(pooled_us.mean()) / 1e3 if len(pooled_us) else None


JITTER = Measure("jitter, ms", jitter_ms)
