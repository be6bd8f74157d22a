"""Compute the program's measures from its table, with numpy and pyarrow."""

from __future__ import annotations

import pyarrow as pa

from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.measures_api import Measures, OnTheWire, by_flow
from qjump_mn.programs.statistics import of_latencies

from .program import Plan, least_us


def values(table: pa.Table, plan: Plan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """Return the measures of one trial, by the names in Plan.MEASURES; leave out those without a
    value."""
    return of_latencies(table)


def wire(table: pa.Table, plan: Plan, trial: Trial) -> OnTheWire:
    """Return each latency and the least that the links take, which every run is checked against."""
    latencies_us = table["latency_us"].to_numpy(zero_copy_only=False)
    return OnTheWire(latencies_us, by_flow(table, least_us(plan, trial.network)))


MEASURES = Measures(values=values, wire=wire)
