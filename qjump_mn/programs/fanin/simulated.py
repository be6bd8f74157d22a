"""fanin in the simulator: datagrams at set times."""

from __future__ import annotations

from collections.abc import Sequence

import qjump_sim
from qjump_mn import theory
from qjump_mn.programs.fanin.program import FaninPlan
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


def _applications(plan: FaninPlan, stage: Stage) -> Apps:
    size, gap = (
        wire_bytes(theory.UDP_HEADERS_BYTES + plan.payload_bytes),
        plan.interval_ns * qjump_sim.NS,
    )
    count, chance = stage.trial.duration_ns // plan.interval_ns, stage.chance(plan.name)
    skipped = 0 if plan.at_ns is None else 2

    def first() -> int:
        if plan.at_ns is None:
            return stage.began + chance.randrange(gap)
        return stage.began + skipped * gap - stage.began % gap + plan.at_ns * qjump_sim.NS

    return [
        apps.Datagrams(
            stage.numbers[source],
            stage.numbers[destination],
            size,
            gap,
            max(1, count - skipped),
            first(),
            level(plan),
        )
        for source, destination in plan.flows
        for _ in range(plan.streams)
    ]


def _rows(
    plan: FaninPlan,
    stage: Stage,
    results: Sequence[apps.DatagramsResult],
    outcome: qjump_sim.Outcome,
) -> Rows:
    unread = iter(results)
    for flow in plan.flows:
        gaps = stage.gaps(flow)
        for stream in range(plan.streams):
            result = next(unread)
            for sequence, (start, latency) in enumerate(
                zip(result.start.tolist(), result.latency.tolist(), strict=True)
            ):
                yield (
                    flow_name(flow),
                    stream,
                    sequence,
                    start // qjump_sim.NS,
                    start // qjump_sim.NS,
                    us(latency, gaps),
                )


SIMULATED = Simulated(apps=_applications, rows=_rows)
