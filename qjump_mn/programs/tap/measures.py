"""Measures of tap: how long frames were in a switch, in ms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from qjump_mn import theory
from qjump_mn.model import hooks
from qjump_mn.model.plan import Trial
from qjump_mn.programs.base import WorkloadPlan
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.measures_api import Crossed, Measures, OnTheWire, by_flow
from qjump_mn.programs.statistics import of_latencies
from qjump_mn.programs.tap.program import TapPlan, switch_ns
from qjump_mn.programs.tracks import Track, floats, split, took


def values(table: pa.Table, plan: TapPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of all frames together. Frames that the switch dropped are not seen."""
    return of_latencies(table)


def wire(table: pa.Table, plan: TapPlan, trial: Trial) -> OnTheWire:
    """The switch's declared time and a frame's transmission time on its outgoing link."""
    ports, links = plan.ports(trial.network), trial.network.by_device()
    least_us = {
        ">".join(flow): (
            switch_ns(trial.network) + theory.delivery_ns(plan.frame_bytes, links[device].rate_bps)
        )
        / 1e3
        for device, flow in ports.items()
    }
    return OnTheWire(table["latency_us"].to_numpy(), by_flow(table, least_us))


def tracks(table: pa.Table, plan: TapPlan, trial: Trial, facts: TrialFacts) -> Iterator[Track]:
    """Every frame from its arrival; and the bytes that left its port before it did: its wait times
    the link's rate, which is the queue that it found unless the port was paused."""
    flows = table["flow"].to_pylist()
    yield from took(table, "arrival_ns", facts.began_ns, flows, f"time of frames through {plan.at}")
    links = trial.network.by_device()
    devices = {flow: name for name, flow in plan.ports(trial.network).items()}
    rates = np.array(
        [links[devices[tuple(flow.split(">"))]].rate_bps for flow in flows], dtype=np.float64
    )
    waited_ns = floats(table, "start_ns") - floats(table, "arrival_ns") - switch_ns(trial.network)
    sizes = waited_ns * rates / 8e9
    at_ns = table["arrival_ns"].to_numpy() - facts.began_ns
    ports = [f"level {plan.level}, {devices[tuple(flow.split('>'))]}" for flow in flows]
    note = (
        "A frame's wait times the rate of its link: the queue that it found, unless the port "
        "was paused."
    )
    track = Track(f"left {plan.at} before a frame", "B", "instant", "", at_ns, sizes, note=note)
    yield from split(track, ports)


def crossed(plan: TapPlan, trial: Trial) -> dict[str, Crossed]:
    """The port by which each flow leaves the switch, at the level of the workload that sends such
    frames on that flow."""
    by_flow_name = {}
    for flow in plan.flows:
        levels = {
            other.level
            for other in trial.arm.workloads
            if hooks.sends(other)
            and flow in other.flows
            and _frame_bytes(other) == plan.frame_bytes
        }
        if len(levels) == 1:
            (level,) = levels
            ports = (port for port in trial.network.path(*flow) if port[0] == plan.at)
            by_flow_name[">".join(flow)] = tuple((port, level) for port in ports)
    return by_flow_name


def _frame_bytes(workload: WorkloadPlan) -> int | None:
    length = hooks.packet_bytes(workload)
    return None if length is None else theory.frame_bytes(length)


MEASURES = Measures(values=values, wire=wire, crossed=crossed, tracks=tracks)
