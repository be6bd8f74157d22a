"""Whether datagrams agree with the links that they crossed."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from qjump_mn.model.plan import Trial
from qjump_mn.programs import arrivals
from qjump_mn.programs.fanin.program import FaninPlan
from qjump_mn.programs.measures_api import Crossed, Moved, Said


def agrees(said: Said) -> Iterator[str]:
    """As :func:`qjump_mn.programs.arrivals.agrees`."""
    yield from arrivals.agrees(said, said.plan.packet_bytes)


def moved(said: Said) -> Iterator[Moved]:
    """What was sent, and what of it arrived."""
    plan: FaninPlan = said.plan
    for flow in plan.flows:
        rows = said.table.filter(pc.field("flow") == ">".join(flow))
        arrived = rows.num_rows - rows["latency_us"].null_count
        yield Moved.datagrams(flow, plan.level, plan.packet_bytes, arrived, rows.num_rows)


def crossed(plan: FaninPlan, trial: Trial) -> dict[str, Crossed]:
    """One way."""
    return {
        ">".join(flow): tuple((port, plan.level) for port in trial.network.path(*flow)) for flow in plan.flows
    }
