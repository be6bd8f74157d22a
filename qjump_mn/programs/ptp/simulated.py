"""ptp in the simulator: exchanges, without a program's filters."""

from __future__ import annotations

from collections.abc import Sequence

import qjump_sim
from qjump_mn import theory
from qjump_mn.programs.ptp.plan import EVENT_BYTES, PtpPlan
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


def _applications(plan: PtpPlan, stage: Stage) -> Apps:
    slaves, interval = (
        [stage.numbers[slave] for slave, _ in plan.flows],
        plan.interval_ns * qjump_sim.NS,
    )
    count = max(1, stage.trial.duration_ns // plan.interval_ns)
    return [
        apps.Ptp(
            stage.numbers[plan.master],
            slaves,
            wire_bytes(theory.UDP_HEADERS_BYTES + EVENT_BYTES),
            interval,
            count,
            stage.began,
            level(plan),
        )
    ]


def _rows(
    plan: PtpPlan, stage: Stage, results: Sequence[apps.PtpResult], outcome: qjump_sim.Outcome
) -> Rows:
    """Two rows for each completed exchange, Sync and Delay_Req. The offset is of this exchange
    alone, without a program's filters."""
    (result,) = results
    for start, slave, offset, delay in zip(
        *(getattr(result, name).tolist() for name in ("start", "slave", "offset", "delay")),
        strict=True,
    ):
        if delay >= 0:
            flow = plan.flows[slave]
            at, offset_us = start // qjump_sim.NS, offset / qjump_sim.US
            yield flow_name(flow), at, offset_us, us(delay + offset, stage.gaps(flow)), None
            yield flow_name(flow), at, offset_us, None, us(delay - offset, stage.gaps(flow))


SIMULATED = Simulated(apps=_applications, rows=_rows)
