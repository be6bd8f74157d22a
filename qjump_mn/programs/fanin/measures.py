"""Measures of fanin: one-way times of datagrams in ms, and their loss."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.model import hooks
from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.fanin.program import FaninPlan
from qjump_mn.programs.measures_api import Crossed, Measures, Moved, OnTheWire, Said, by_flow
from qjump_mn.programs.statistics import of_latencies
from qjump_mn.programs.tracks import Track, took


def values(table: pa.Table, plan: FaninPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of all flows together. ``late_ms`` is the most by which a sender was late.
    ``bound_ms`` is the network's bound with everything else that the trial sends, and ``of_bound``
    the slowest datagram's share of it; they have no value if that includes another fanin."""
    others = [
        other for other in trial.arm.workloads if hooks.sends(other) and other.name != plan.name
    ]
    late_ns = pc.subtract(table["sent_ns"], table["due_ns"]).to_numpy()
    numbers = of_latencies(table) | {"late_ms": float(np.max(late_ns, initial=0)) / 1e6}
    if not any(isinstance(other, FaninPlan) for other in others):
        numbers["bound_ms"] = plan.bound_ms(trial.network, alone=not others)
        if "max_ms" in numbers:
            numbers["of_bound"] = numbers["max_ms"] / numbers["bound_ms"]
    return numbers


def wire(table: pa.Table, plan: FaninPlan, trial: Trial) -> OnTheWire:
    """A datagram's one-way time, from the sender's call."""
    frame, network = plan.frame_bytes, trial.network
    least_us = {
        ">".join(flow): theory.one_way_ns(frame, network.speeds(*flow)) / 1e3 for flow in plan.flows
    }
    return OnTheWire(table["latency_us"].to_numpy(zero_copy_only=False), by_flow(table, least_us))


def tracks(table: pa.Table, plan: FaninPlan, trial: Trial, facts: TrialFacts) -> Iterator[Track]:
    """Every datagram, from when it was due."""
    flows = table["flow"].to_pylist()
    yield from took(
        table, "due_ns", facts.began_ns, flows, "one-way time of datagrams, from when they were due"
    )


def moved(said: Said) -> Iterator[Moved]:
    """The datagrams that were sent, and those that arrived."""
    plan: FaninPlan = said.plan
    for flow in plan.flows:
        rows = said.table.filter(pc.field("flow") == ">".join(flow))
        arrived = rows.num_rows - rows["latency_us"].null_count
        yield Moved.datagrams(flow, plan.level, plan.packet_bytes, arrived, rows.num_rows)


def crossed(plan: FaninPlan, trial: Trial) -> dict[str, Crossed]:
    """The path, one way."""
    return {
        ">".join(flow): tuple((port, plan.level) for port in trial.network.path(*flow))
        for flow in plan.flows
    }


MEASURES = Measures(values=values, wire=wire, moved=moved, crossed=crossed, tracks=tracks)
