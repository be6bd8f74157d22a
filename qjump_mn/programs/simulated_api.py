"""Hosts and times of a simulated trial, and sizes of packets on the wire. Times are in ps."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import qjump_sim
from qjump_mn import theory
from qjump_mn.model import hooks
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.programs.base import WorkloadPlan
from qjump_sim import apps

Rows = Iterator[tuple[Any, ...]]
Apps = list[apps.App]


def wire_bytes(ip_bytes: int) -> int:
    """Return the wire bytes of an IP packet of ``ip_bytes``, including preamble and gap."""
    return theory.AROUND_FRAME_BYTES + theory.frame_bytes(ip_bytes)


def segments_bytes(payload: int, mtu_bytes: int) -> int:
    """Return the wire bytes of ``payload`` bytes in TCP segments, of which all but the last are
    full.
    """
    full, rest = divmod(payload, mtu_bytes - theory.TCP_HEADERS_BYTES)
    return full * wire_bytes(mtu_bytes) + (
        wire_bytes(theory.TCP_HEADERS_BYTES + rest) if rest else 0
    )


def level(plan: WorkloadPlan) -> int:
    """Return the simulator's level: there 0 is the most urgent, in 802.1Q it is 7."""
    return 7 - plan.level


def flow_name(flow: tuple[str, str]) -> str:
    """Return a flow as tables show it: "h8>h10"."""
    return ">".join(flow)


def us(latency: int, gaps: int) -> float | None:
    """Return a latency in us without its ``gaps`` (:meth:`Stage.gaps`); None if nothing arrived."""
    return None if latency < 0 else (latency - gaps) / qjump_sim.US


@dataclass(frozen=True)
class Stage:
    """The times of a trial, and the simulator's number of each host.

    Background traffic begins at 0. Measured workloads begin at ``began`` and send nothing new from
    ``ended`` on. Background traffic goes on ``until`` their last requests have passed all queues in
    both directions, even if all are full. A packet of the scheme's transport has ``data_bytes``.
    """

    trial: Trial
    numbers: Mapping[str, int]
    data_bytes: int
    began: int
    ended: int
    until: int

    @classmethod
    def of(cls, trial: Trial, numbers: Mapping[str, int], data_bytes: int) -> Stage:
        """Return the times of a trial. As in the emulation, the seed shifts the begin of the
        measurement within the shortest phase of a workload.
        """
        workloads, network = trial.arm.workloads, trial.network
        phases = [hooks.phase_ns(workload) for workload in workloads if hooks.phase_ns(workload)]
        phase_ns = random.Random(str(trial.seed)).randrange(min(phases)) if phases else 0
        began = (trial.warmup_ns + phase_ns) * qjump_sim.NS
        ended = began + trial.duration_ns * qjump_sim.NS
        links = max(
            (len(network.path(*flow)) for workload in workloads for flow in workload.flows),
            default=0,
        )
        return cls(
            trial, numbers, data_bytes, began, ended, ended + 2 * links * full_buffer(network)
        )

    def chance(self, workload: str) -> random.Random:
        """Return a workload's own random generator, which does not depend on other workloads."""
        return random.Random(f"{self.trial.seed} {workload}")

    def gaps(self, *ways: tuple[str, str]) -> int:
        """Return the time of the interframe gaps on all links of these paths.

        A simulated frame arrives when its gap has passed, a real one before the gap. Without the
        gaps, an idle round trip is exactly that of store and forward.
        """
        rates = (rate_bps for way in ways for rate_bps, _ in self.trial.network.speeds(*way))
        return sum(
            8 * theory.INTERFRAME_GAP_BYTES * theory.PS_PER_S // rate_bps for rate_bps in rates
        )


def full_buffer(network: Network) -> int:
    """Return the longest time that a port needs to send a full buffer, in ps."""
    return max(
        link.buffer_bytes * 8 * theory.PS_PER_S // link.rate_bps
        for link in (network.link, network.trunk)
    )


@dataclass(frozen=True)
class Simulated:
    """A program in the simulator: turns a workload's plan into applications, and their results into
    rows.

    Rows are in the order of the program's columns. ``flows`` is for traffic that the simulator
    draws itself, or gets as a list. Network stacks take no time: a latency comes from the network,
    the host times of links, and the host's limiter.
    """

    apps: Callable[[Any, Stage], Apps]
    rows: Callable[[Any, Stage, Sequence[Any], qjump_sim.Outcome], Rows]
    flows: (
        Callable[[Any, Stage], qjump_sim.Poisson | qjump_sim.Published | qjump_sim.Flows] | None
    ) = None
