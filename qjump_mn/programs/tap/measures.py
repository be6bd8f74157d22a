"""How long frames were in a switch, in ms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.programs.measures_api import Measures, OnTheWire, by_flow
from qjump_mn.programs.statistics import of_latencies
from qjump_mn.programs.tap.agreement import agrees, crossed
from qjump_mn.programs.tap.program import TapPlan
from qjump_mn.programs.tracks import Track, floats, split, took
from qjump_mn.results.tables import TrialFacts


def values(table: pa.Table, plan: TapPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of all frames together; one that the switch dropped is not seen."""
    return of_latencies(table)


def wire(table: pa.Table, plan: TapPlan, trial: Trial) -> OnTheWire:
    """A frame's own time on the link by which it leaves."""
    ports, links = plan.ports(trial.network), trial.network.by_device()
    least_us = {
        ">".join(flow): theory.delivery_ns(plan.frame_bytes, links[device].rate_bps) / 1e3
        for device, flow in ports.items()
    }
    return OnTheWire(table["latency_us"].to_numpy(), by_flow(table, least_us))


def tracks(table: pa.Table, plan: TapPlan, trial: Trial, facts: TrialFacts) -> Iterator[Track]:
    """Every frame from when it came, and what left its port before it did: the wait times the link's rate,
    which is the queue before a frame as long as the port is not paused."""
    flows = table["flow"].to_pylist()
    yield from took(table, "arrival_ns", facts.began_ns, flows, f"time of frames through {plan.at}")
    links, devices = (
        trial.network.by_device(),
        {flow: name for name, flow in plan.ports(trial.network).items()},
    )
    rates = np.array([links[devices[tuple(flow.split(">"))]].rate_bps for flow in flows], dtype=np.float64)
    waited_ns = floats(table, "start_ns") - floats(table, "arrival_ns")
    sizes = waited_ns * rates / 8e9
    at_ns = table["arrival_ns"].to_numpy() - facts.began_ns
    ports = [f"level {plan.level}, {devices[tuple(flow.split('>'))]}" for flow in flows]
    whole = Track(f"left {plan.at} before a frame", "B", "instant", "", at_ns, sizes)
    note = (
        "A frame's wait times the rate of its link: the queue that it found, where nothing paused the port."
    )
    yield from split(whole._replace(note=note), ports)


MEASURES = Measures(values=values, wire=wire, agrees=agrees, crossed=crossed, tracks=tracks)
