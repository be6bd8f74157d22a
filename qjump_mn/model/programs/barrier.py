"""barrier (native/barrier): how long it takes until every process has heard that all others have come."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model.programs.base import LATENCIES, Flow, WorkloadPlan, WorkloadSpec, bounded
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration

CONNECTING_NS = 10**9
"""How long the processes may take to find each other and agree on a beginning, through buffers that are full (measured: 0.5 s)."""

MESSAGE_BYTES = 144
"""What timely 0.29 sends to each other process at a barrier (measured: 3 frames of 214 B, without FCS, from each of four hosts)."""


class BarrierPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="barrier"):
    """A process on each of ``hosts``, and ``count`` barriers, one every ``interval_ns``; the ``flows`` are every ordered pair of hosts."""

    MEASURES: ClassVar = LATENCIES | {"sent": "barriers", "received": "passed"}
    ONE_WAY: ClassVar = True

    hosts: tuple[str, ...]
    interval_ns: int
    count: int

    def constants(self, network: Network) -> dict[str, float]:
        """The last message over the longest way in an idle network: its host has sent all others before it. Without anybody's processing."""
        frame = theory.frame_bytes(theory.IP_HEADER_BYTES + theory.TCP_HEADER_BYTES + MESSAGE_BYTES)
        before = (len(self.hosts) - 2) * theory.occupancy_ns(frame, network.rate_bps)
        return {"analytic_ms": (before + max(theory.one_way_ns(frame, network.speeds(*flow)) for flow in self.flows)) / 1e6}

    @property
    def longest_ns(self) -> int:
        return self.count * self.interval_ns + CONNECTING_NS

    @property
    def phase_ns(self) -> int:
        return self.interval_ns

    def describe(self) -> str:
        return f"barrier among {', '.join(self.hosts)}, one every {self.interval_ns / 1e6:g} ms, or when the one before has ended"


class Barrier(WorkloadSpec, frozen=True, forbid_unknown_fields=True, tag="barrier", kw_only=True):
    """A process on each of ``hosts``; all meet at a barrier every ``interval``, or when the one before has ended, if that is later.

    A barrier's latency counts from when it was due.
    """

    hosts: list[str]
    interval: Duration

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        if len(self.hosts) < 2 or len(set(self.hosts)) < len(self.hosts):
            raise UsageError(f"{where}.hosts: name two hosts or more, each once, not {', '.join(self.hosts) or 'nobody'}")
        return [(f"{where}.hosts", pair) for pair in itertools.permutations(self.hosts, 2)]

    def check(self, where: str, network: Network) -> None:
        bounded(f"{where}.interval", self.interval, 10**6, 10**10, "1ms to 10s")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> BarrierPlan:
        return BarrierPlan(**common, hosts=tuple(self.hosts), interval_ns=int(self.interval), count=max(2, duration_ns // int(self.interval)))
