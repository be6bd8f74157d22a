"""Measures of barrier: how long barriers took, in ms; each counts once for every process."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.programs.barrier.program import BarrierPlan, shortest_frame
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.measures_api import Floats, Measures, OnTheWire
from qjump_mn.programs.statistics import of_latencies
from qjump_mn.programs.tracks import Track, took


def values(table: pa.Table, plan: BarrierPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of all processes together.

    None is ever lost: a process that misses a barrier ends, and the trial with it.
    """
    return of_latencies(table)


def wire(table: pa.Table, plan: BarrierPlan, trial: Trial) -> OnTheWire | None:
    """A process passes a barrier when the message of the farthest other process has arrived; all
    processes arrive when the barrier is due, or later.

    None without an interval: a process may then arrive last and find all messages there.
    """
    if not plan.interval_ns:
        return None
    frame = shortest_frame(plan)
    least_us = {
        host: max(
            theory.one_way_ns(frame, trial.network.speeds(*flow))
            for flow in plan.flows
            if flow[1] == host
        )
        / 1e3
        for host in plan.hosts
    }
    least: Floats = np.array(
        [least_us[host] for host in table["host"].to_pylist()], dtype=np.float64
    )
    return OnTheWire(table["latency_us"].to_numpy(), least)


def tracks(table: pa.Table, plan: BarrierPlan, trial: Trial, facts: TrialFacts) -> Iterator[Track]:
    """Every barrier of every process, from when it was due."""
    yield from took(table, "due_ns", facts.began_ns, table["host"].to_pylist(), "time of barriers")


MEASURES = Measures(values=values, wire=wire, tracks=tracks)
