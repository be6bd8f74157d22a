"""ping in the simulator: echoes; hosts answer in no time."""

from __future__ import annotations

from collections.abc import Sequence

import qjump_sim
from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.programs.ping.program import PingPlan
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


def _applications(plan: PingPlan, stage: Stage) -> Apps:
    if plan.reply_level != plan.level:
        raise UsageError(
            f"workloads.{plan.name}.reply_level: replies in the simulator have the requests' "
            "level: leave it out"
        )
    size = wire_bytes(theory.PING_HEADERS_BYTES + plan.payload_bytes)
    gap = plan.interval_ns * qjump_sim.NS
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


def _rows(
    plan: PingPlan, stage: Stage, results: Sequence[apps.PingResult], outcome: qjump_sim.Outcome
) -> Rows:
    for flow, result in zip(plan.flows, results, strict=True):
        gaps = stage.gaps(flow, flow[::-1])
        for sequence, (start, latency) in enumerate(
            zip(result.start.tolist(), result.latency.tolist(), strict=True), 1
        ):
            yield (
                flow_name(flow),
                sequence,
                None if latency < 0 else (start + latency) / qjump_sim.S,
                us(latency, gaps),
            )


SIMULATED = Simulated(apps=_applications, rows=_rows)
