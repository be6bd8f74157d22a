"""fanin (native/fanin): many senders of small datagrams at set times, and the receiver where they meet."""

from __future__ import annotations

from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.model.programs.base import LATENCIES, FlowSpec, WorkloadPlan, bounded
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration, Size


class FaninPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="fanin"):
    """Each of ``streams`` a flow sends one datagram of ``payload_bytes`` every ``interval_ns``, at a phase of its own."""

    MEASURES: ClassVar = {**LATENCIES, "late_ms": "latest start, ms", "bound_ms": "bound, ms"}

    interval_ns: int
    streams: int
    payload_bytes: int

    def constants(self, network: Network) -> dict[str, float]:
        """The latest that a datagram may arrive while the senders' epoch is long enough, and what the receiver's port is asked to carry."""
        frame = theory.frame_bytes(theory.IP_HEADER_BYTES + theory.UDP_HEADER_BYTES + self.payload_bytes)
        full = theory.frame_bytes(network.mtu_bytes)
        ways = (network.speeds(*flow) for flow in self.flows)
        return {"bound_ms": max(theory.fan_in_bound_ns(len(self.flows), self.streams, frame, full, links) for links in ways) / 1e6}

    def describe(self) -> str:
        streams = f"{self.streams} stream{'s' if self.streams > 1 else ''} a flow"
        return f"fanin, {streams} of one {self.payload_bytes} B datagram every {self.interval_ns / 1e6:g} ms, at random phases"


class Fanin(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="fanin", kw_only=True):
    """fanin: ``streams`` senders for each flow, all to one host, each with one datagram every ``interval``; one-way times are exact."""

    interval: Duration
    streams: int = 1
    payload: Size = Size(230)

    def check(self, where: str, network: Network) -> None:
        bounded(f"{where}.interval", self.interval, 10**3, 10**10, "1us to 10s")
        bounded(f"{where}.streams", self.streams, 1, 64, "1 to 64")
        most = network.mtu_bytes - theory.IP_HEADER_BYTES - theory.UDP_HEADER_BYTES
        bounded(f"{where}.payload", self.payload, 24, most, f"24B to {most}B")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> FaninPlan:
        return FaninPlan(**common, interval_ns=int(self.interval), streams=self.streams, payload_bytes=int(self.payload))
