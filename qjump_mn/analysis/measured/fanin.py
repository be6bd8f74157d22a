"""One-way times of datagrams in ms, and the fraction that did not arrive."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.analysis.measured.statistics import of_latencies
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import FaninPlan
from qjump_mn.results.tables import TrialFacts


def values(table: pa.Table, plan: FaninPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of all flows together; ``late_ms`` is how long after its time a sender was, at most, ``bound_ms`` is the network's."""
    late = pc.subtract(table["sent_ns"], table["due_ns"]).to_numpy()
    return of_latencies(table) | {"late_ms": float(np.max(late, initial=0)) / 1e6, **plan.constants(trial.network)}
