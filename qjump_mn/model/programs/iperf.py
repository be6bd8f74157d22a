"""iperf3: what is asked of it, and its plan."""

from __future__ import annotations

from typing import Any, ClassVar

from qjump_mn.errors import UsageError
from qjump_mn.model.programs.base import FlowSpec, WorkloadPlan
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Rate


class IperfPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="iperf"):
    """``streams`` TCP connections for each flow, or UDP streams of ``udp_rate_bps`` each."""

    MEASURES: ClassVar = {"goodput_mbps": "goodput, Mb/s", "offered_mbps": "offered, Mb/s", "retransmits": "retransmits"}
    BACKGROUND: ClassVar = True

    streams: int
    congestion_control: str | None
    udp_rate_bps: int | None

    def describe(self) -> str:
        many = f"{self.streams} {{}} stream{'s' if self.streams > 1 else ''} a flow"
        if self.udp_rate_bps is not None:
            return f"iperf3, {many.format('UDP')} of {self.udp_rate_bps / 1e6:g} Mb/s"
        return f"iperf3, {many.format('TCP')}" + (f", {self.congestion_control}" if self.congestion_control else "")


class Iperf(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="iperf", kw_only=True):
    """iperf3: each flow with ``streams`` parallel TCP connections, or UDP streams of ``udp_rate`` each, from the warm-up to the trial's end.

    A datagram fills the MTU; its rate counts the payload.
    """

    streams: int = 1
    congestion_control: str | None = None
    udp_rate: Rate | None = None

    def check(self, where: str, network: Network) -> None:
        if not 1 <= self.streams <= 64:
            raise UsageError(f"{where}.streams: {self.streams} is out of range: use 1 to 64")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> IperfPlan:
        return IperfPlan(
            **common,
            streams=self.streams,
            congestion_control=self.congestion_control,
            udp_rate_bps=None if self.udp_rate is None else int(self.udp_rate),
        )
