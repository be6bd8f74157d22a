"""How long the messages of the Precision Time Protocol were under way, and how wrong the clocks would have been."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.analysis.measured.statistics import percentile
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import PtpPlan
from qjump_mn.results.ptp import measured, offsets_us
from qjump_mn.results.tables import TrialFacts


def values(table: pa.Table, plan: PtpPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of the messages that were timed within the trial's duration.

    Delays, of both directions together, are what claims are about: each is of one message alone. An offset is not: ptpd averages what it
    has heard, and 2 s of load make its offset wrong by 13 ms for longer than 5 s after them.
    """
    inside = measured(table, facts, trial)
    found = {"samples": float(inside.num_rows)}
    if inside.num_rows:
        delays = np.sort(pc.coalesce(inside["master_to_slave_us"], inside["slave_to_master_us"]).to_numpy() / 1e3)
        found |= {f"delay_{name}_ms": percentile(delays, percent) for name, percent in (("p50", 50), ("p99", 99), ("max", 100))}
    offsets = offsets_us(inside)["offset_us"].to_numpy() / 1e3
    if len(offsets):
        found |= {"offset_rms_ms": float(np.sqrt(np.mean(offsets**2))), "offset_mean_ms": float(np.mean(offsets))}
        found |= {"offset_min_ms": float(np.min(offsets)), "offset_max_ms": float(np.max(offsets))}
    return found
