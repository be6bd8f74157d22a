"""What is computed of echo's table. Its measures are those of everything that has latencies."""

from __future__ import annotations

import pyarrow as pa

from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.measures_api import Measures, OnTheWire, by_flow
from qjump_mn.programs.statistics import of_latencies

from .echo import EchoPlan


def values(table: pa.Table, plan: EchoPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """Percentiles of the round trips in ms, and the share that was lost."""
    return of_latencies(table)


def wire(table: pa.Table, plan: EchoPlan, trial: Trial) -> OnTheWire:
    """Lets qjump-mn check that no round trip is shorter than the wire allows."""
    least_us = {">".join(flow): plan.least_ns(trial.network, flow) / 1e3 for flow in plan.flows}
    return OnTheWire(table["latency_us"].to_numpy(zero_copy_only=False), by_flow(table, least_us))


MEASURES = Measures(values=values, wire=wire)
