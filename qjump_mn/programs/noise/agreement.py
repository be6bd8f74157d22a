"""Whether bursts agree with the links that they crossed."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from qjump_mn.programs import arrivals
from qjump_mn.programs.measures_api import Moved, Said
from qjump_mn.programs.noise.program import NoisePlan

LONGEST_PAUSE = 2
"""Of the intervals of bursts: between the last one and the end of the measurement."""


def agrees(said: Said) -> Iterator[str]:
    """As :func:`qjump_mn.programs.arrivals.agrees`; and while something is measured there are bursts."""
    yield from arrivals.agrees(said, said.trial.network.mtu_bytes)
    plan: NoisePlan = said.plan
    began_ns, ended_ns = said.facts.window_ns
    for flow in plan.flows:
        starts = said.table.filter(pc.field("flow") == ">".join(flow))["start_ns"]
        last_ns = pc.max(starts).as_py() or began_ns
        # What is measured began late, such as a connection whose SYN was lost.
        if ended_ns - last_ns > LONGEST_PAUSE * plan.interval_ns:
            yield (
                f"the last burst of {'>'.join(flow)} began {(last_ns - began_ns) / 1e9:.4g} s after the "
                f"measurement, which went on to {(ended_ns - began_ns) / 1e9:.4g} s: the rest was not "
                "disturbed"
            )


def moved(said: Said) -> Iterator[Moved]:
    """What was sent, and what of it arrived."""
    plan: NoisePlan = said.plan
    for flow in plan.flows:
        rows = said.table.filter(pc.field("flow") == ">".join(flow))
        sent, arrived = (int(pc.sum(rows[name]).as_py() or 0) for name in ("sent", "arrived"))
        yield Moved.datagrams(flow, plan.level, said.trial.network.mtu_bytes, arrived, sent)
