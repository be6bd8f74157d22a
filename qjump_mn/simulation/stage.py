"""Where and when the programs of a simulated trial run: hosts' numbers, the measured time, and what packets
weigh on the wire. Times are in ps."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import qjump_sim
from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.programs.base import WorkloadPlan
from qjump_sim import apps

Rows = Iterator[tuple[Any, ...]]
Apps = list[apps.App]


def wire_bytes(ip_bytes: int) -> int:
    """What the frame of an IP packet of ``ip_bytes`` keeps a link busy for: preamble and gap count as bytes
    of it."""
    return theory.AROUND_FRAME_BYTES + theory.frame_bytes(ip_bytes)


def segments_bytes(payload: int, mtu_bytes: int) -> int:
    """The same of a TCP segment with ``payload`` bytes, or of several, all but the last of which are full."""
    full, rest = divmod(payload, mtu_bytes - theory.TCP_HEADERS_BYTES)
    return full * wire_bytes(mtu_bytes) + (wire_bytes(theory.TCP_HEADERS_BYTES + rest) if rest else 0)


def level(plan: WorkloadPlan) -> int:
    """Level 0 of the simulator is the most urgent, 7 of 802.1Q is."""
    return 7 - plan.level


def flow_name(flow: tuple[str, str]) -> str:
    """As tables have it: "h8>h10"."""
    return ">".join(flow)


def us(latency: int, gaps: int) -> float | None:
    """A latency in us, None of what has not come; ``gaps`` are those of :meth:`Stage.gaps`."""
    return None if latency < 0 else (latency - gaps) / qjump_sim.US


@dataclass(frozen=True)
class Stage:
    """A trial's hosts by name, each with the simulator's number, and its times.

    What disturbs begins at 0. What is measured begins at ``began``, asks for nothing new from ``ended`` on,
    and meets what disturbs ``until`` the last that it asked for has passed all queues there and back, were
    they full. A packet of the scheme's transport has ``data_bytes``.
    """

    trial: Trial
    numbers: Mapping[str, int]
    data_bytes: int
    began: int
    ended: int
    until: int

    @classmethod
    def of(cls, trial: Trial, numbers: Mapping[str, int], data_bytes: int) -> Stage:
        """As in the emulation the seed moves the measurement's begin within the shortest phase that a
        workload has."""
        workloads, network = trial.arm.workloads, trial.network
        phases = [workload.phase_ns for workload in workloads if workload.phase_ns]
        phase_ns = random.Random(str(trial.seed)).randrange(min(phases)) if phases else 0
        began = (trial.warmup_ns + phase_ns) * qjump_sim.NS
        ended = began + trial.duration_ns * qjump_sim.NS
        links = max(
            (len(network.path(*flow)) for workload in workloads for flow in workload.flows), default=0
        )
        return cls(trial, numbers, data_bytes, began, ended, ended + 2 * links * full_buffer(network))

    def chance(self, workload: str) -> random.Random:
        """Random numbers of a workload's own: the same whatever runs beside it."""
        return random.Random(f"{self.trial.seed} {workload}")

    def gaps(self, *ways: tuple[str, str]) -> int:
        """The gaps behind a frame on each link of these ways.

        A simulated frame has arrived when its gap has passed, so that the one behind it keeps its distance; a
        real one has before. Taken off, an idle round trip is the one of store and forward to the picosecond.
        """
        rates = (rate_bps for way in ways for rate_bps, _ in self.trial.network.speeds(*way))
        return sum(8 * theory.INTERFRAME_GAP_BYTES * theory.PS_PER_S // rate_bps for rate_bps in rates)


def full_buffer(network: Network) -> int:
    """How long a port needs to send what its buffer holds, in ps: of a host's link or of one between
    switches, whichever takes longer."""
    return max(
        link.buffer_bytes * 8 * theory.PS_PER_S // link.rate_bps for link in (network.link, network.trunk)
    )


@dataclass(frozen=True)
class Simulated:
    """A program in the simulator, both ways: a workload's plan as applications, and what these yield as rows.

    Rows are in the order of the program's columns. ``flows`` is for traffic that the simulator draws itself,
    of which it has one. Stacks take no time: a latency is what the network, the links' hosts and the host's
    limiter made it.
    """

    apps: Callable[[Any, Stage], Apps]
    rows: Callable[[Any, Stage, Sequence[Any], qjump_sim.Outcome], Rows]
    flows: Callable[[Any], qjump_sim.Poisson | qjump_sim.Published] | None = None
