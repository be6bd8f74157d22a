"""barrier in the simulator: one row for each barrier, for all hosts together."""

from __future__ import annotations

from collections.abc import Sequence

import qjump_sim
from qjump_mn.programs.barrier.program import MESSAGE_BYTES, BarrierPlan
from qjump_mn.programs.simulated_api import Apps, Rows, Simulated, Stage, level, segments_bytes, us
from qjump_sim import apps


def _applications(plan: BarrierPlan, stage: Stage) -> Apps:
    """The next barrier is due an interval after the last host passed, not after the previous one
    was due."""
    hosts, pause = [stage.numbers[host] for host in plan.hosts], plan.interval_ns * qjump_sim.NS
    return [
        apps.Barrier(
            hosts,
            segments_bytes(MESSAGE_BYTES, stage.trial.network.mtu_bytes),
            plan.count,
            pause,
            stage.began,
            level(plan),
        )
    ]


def _rows(
    plan: BarrierPlan,
    stage: Stage,
    results: Sequence[apps.BarrierResult],
    outcome: qjump_sim.Outcome,
) -> Rows:
    """A row for each barrier, from when its first host arrived to when its last host had heard from
    all."""
    (result,) = results
    gaps = max(stage.gaps(flow) for flow in plan.flows)
    for iteration, (start, latency) in enumerate(
        zip(result.start.tolist(), result.latency.tolist(), strict=True)
    ):
        if start < stage.ended:
            yield "all", iteration, start // qjump_sim.NS, start // qjump_sim.NS, us(latency, gaps)


SIMULATED = Simulated(apps=_applications, rows=_rows)
