"""Bursts of full-size datagrams (native/fanin), as the paper's generators sent them to disturb others."""

from __future__ import annotations

from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.model.programs.base import FlowSpec, WorkloadPlan, bounded
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration


class NoisePlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="noise"):
    """Each flow sends ``burst`` datagrams that fill the MTU back to back in every ``interval_ns``, at a phase of its own."""

    MEASURES: ClassVar = {"offered_mbps": "offered, Mb/s", "goodput_mbps": "goodput, Mb/s", "bursts": "bursts", "loss": "loss"}
    BACKGROUND: ClassVar = True

    interval_ns: int
    burst: int

    def constants(self, network: Network) -> dict[str, float]:
        """The interval in times that a full buffer takes to drain."""
        return {"drains": self.interval_ns * network.rate_bps / (network.buffer_bytes * 8e9)}

    def describe(self) -> str:
        return f"fanin, bursts of {self.burst} full-size datagrams every {self.interval_ns / 1e6:g} ms"


class Noise(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="noise", kw_only=True):
    """Bursts of ``burst`` full-size datagrams, one in every ``interval``, from the warm-up to the trial's end."""

    interval: Duration
    burst: int

    def check(self, where: str, network: Network) -> None:
        full = theory.occupancy_ns(theory.frame_bytes(network.mtu_bytes), network.rate_bps)
        bounded(f"{where}.interval", self.interval, 10**6, 6 * 10**10, "1ms to 60s")
        most = int(self.interval) // full
        bounded(f"{where}.burst", self.burst, 1, most, f"1 to {most}, what the link carries in an interval")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> NoisePlan:
        return NoisePlan(**common, interval_ns=int(self.interval), burst=self.burst)
