"""Run the program in the simulator, by its applications (qjump_sim.apps); Ping is one with
answers."""

from __future__ import annotations

from collections.abc import Sequence

import qjump_sim
from qjump_mn import theory
from qjump_mn.programs.simulated_api import (
    Apps,
    Rows,
    Simulated,
    Stage,
    flow_name,
    level,
    us,
    wire_bytes,
)
from qjump_sim import apps

from .program import PAYLOAD_BYTES, Plan


def applications(plan: Plan, stage: Stage) -> Apps:
    """Return an application for each flow; times are in ps, and sizes are bytes on the wire."""
    size, gap = (
        wire_bytes(theory.UDP_HEADERS_BYTES + PAYLOAD_BYTES),
        plan.interval_ns * qjump_sim.NS,
    )
    return [
        apps.Ping(
            stage.numbers[source],
            stage.numbers[destination],
            size,
            gap,
            plan.count,
            stage.began,
            level(plan),
        )
        for source, destination in plan.flows
    ]


def rows(
    plan: Plan, stage: Stage, results: Sequence[apps.PingResult], outcome: qjump_sim.Outcome
) -> Rows:
    """Yield a row of the table for each datagram, from the applications' results, in their
    order."""
    for flow, result in zip(plan.flows, results, strict=True):
        gaps = stage.gaps(flow, flow[::-1])
        for number, latency in enumerate(result.latency.tolist(), 1):
            yield flow_name(flow), number, us(latency, gaps)


SIMULATED = Simulated(apps=applications, rows=rows)
