"""How long frames were in a switch, in ms."""

from __future__ import annotations

import pyarrow as pa

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.programs.measured import Measures, OnTheWire, by_flow
from qjump_mn.programs.statistics import of_latencies
from qjump_mn.programs.tap.agreement import agrees, crossed
from qjump_mn.programs.tap.program import TapPlan
from qjump_mn.results.tables import TrialFacts


def values(table: pa.Table, plan: TapPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of all frames together; one that the switch dropped is not seen."""
    return of_latencies(table)


def wire(table: pa.Table, plan: TapPlan, trial: Trial) -> OnTheWire:
    """A frame's own time on the link by which it leaves."""
    ports, links = plan.ports(trial.network), trial.network.by_device()
    least_us = {
        ">".join(flow): theory.delivery_ns(plan.frame_bytes, links[device].rate_bps) / 1e3
        for device, flow in ports.items()
    }
    return OnTheWire(table["latency_us"].to_numpy(), by_flow(table, least_us))


MEASURES = Measures(values=values, wire=wire, agrees=agrees, crossed=crossed)
