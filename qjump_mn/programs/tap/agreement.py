"""Whether the frames that a tap saw agree with the port that sent them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.programs.base import WorkloadPlan
from qjump_mn.programs.measures_api import Crossed, Said
from qjump_mn.programs.tap.program import FRAME, TapPlan, trace_name


def agrees(said: Said) -> Iterator[str]:
    """A frame leaves after it has come, one at a time, and is handed over when its last bit is there: what
    the port itself computed, exact to the ns on any clock."""
    plan: TapPlan = said.plan
    network = said.trial.network
    frames = FRAME.findall(said.read(trace_name(plan)))
    for device, flow in plan.ports(network).items():
        rows = [tuple(map(int, row[1:])) for row in frames if row[0] == device]
        if not rows:
            continue
        arrival, start, handover = np.array(sorted(rows, key=lambda row: row[1]), dtype=np.int64).T
        link, name = network.by_device()[device], ">".join(flow)
        if early := np.count_nonzero(start < arrival):
            yield f"{name}: {early} frames left before they had come"
        each_ns = theory.occupancy_ns(plan.frame_bytes, link.rate_bps)
        if close := np.count_nonzero(np.diff(start) < each_ns):
            yield f"{name}: {close} frames left sooner after another than the {each_ns} ns that one takes"
        takes_ns = theory.delivery_ns(plan.frame_bytes, link.rate_bps) + link.delay_ns + link.host_ns
        off_ns = handover - start - takes_ns
        # Rounded once more than here, up to whole ns; what a host draws comes on top.
        if np.any(wrong := (off_ns < 0) | ((off_ns > 2) & (not link.host_jitter))):
            first = int(np.argmax(wrong))
            yield (
                f"{name}: {np.count_nonzero(wrong)} frames were handed over {off_ns[first]} ns from when "
                "their last bit was there"
            )


def crossed(plan: TapPlan, trial: Trial) -> dict[str, Crossed]:
    """The port by which each flow leaves the switch, at the level of who sends such frames on that flow."""
    found = {}
    for flow in plan.flows:
        levels = {
            other.level
            for other in trial.arm.workloads
            if other.SENDS and flow in other.flows and _frame_bytes(other) == plan.frame_bytes
        }
        if len(levels) == 1:
            (level,) = levels
            ports = (port for port in trial.network.path(*flow) if port[0] == plan.at)
            found[">".join(flow)] = tuple((port, level) for port in ports)
    return found


def _frame_bytes(workload: WorkloadPlan) -> int | None:
    return None if workload.packet_bytes is None else theory.frame_bytes(workload.packet_bytes)
