"""Whether bursts agree with the links that they crossed."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from qjump_mn.programs import arrivals
from qjump_mn.programs.measured import Moved, Said
from qjump_mn.programs.noise.program import NoisePlan


def agrees(said: Said) -> Iterator[str]:
    """As :func:`qjump_mn.programs.arrivals.agrees`."""
    yield from arrivals.agrees(said, said.trial.network.mtu_bytes)


def moved(said: Said) -> Iterator[Moved]:
    """What was sent, and what of it arrived."""
    plan: NoisePlan = said.plan
    for flow in plan.flows:
        rows = said.table.filter(pc.field("flow") == ">".join(flow))
        sent, arrived = (int(pc.sum(rows[name]).as_py() or 0) for name in ("sent", "arrived"))
        yield Moved.datagrams(flow, plan.level, said.trial.network.mtu_bytes, arrived, sent)
