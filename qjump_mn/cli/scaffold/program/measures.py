"""What is computed of the program's table, with numpy and pyarrow."""

from __future__ import annotations

import pyarrow as pa

from qjump_mn.model.plan import Trial
from qjump_mn.programs.measures_api import Measures, OnTheWire, by_flow
from qjump_mn.programs.statistics import of_latencies
from qjump_mn.results.tables import TrialFacts

from .program import Plan, least_us


def values(table: pa.Table, plan: Plan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of one trial, by the names in Plan.MEASURES; one that has no value is left out."""
    return of_latencies(table)


def wire(table: pa.Table, plan: Plan, trial: Trial) -> OnTheWire:
    """So that every run is checked: none was away for less than the wire takes."""
    latencies_us = table["latency_us"].to_numpy(zero_copy_only=False)
    return OnTheWire(latencies_us, by_flow(table, least_us(plan, trial.network)))


MEASURES = Measures(values=values, wire=wire)
