"""The plan of ptp, for both implementations."""

from __future__ import annotations

from typing import ClassVar, Literal

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration
from qjump_mn.programs.base import Flow, WorkloadPlan

Implementation = Literal["ptpd", "ptp4l"]

EVENT_BYTES = 44
"""Bytes of the messages that are timed: Sync from the master, and a slave's Delay_Req."""


INTERVALS_NS = {theory.NS_PER_S >> -log: log for log in range(-7, 1)}
"""Intervals of Syncs that both programs support, with the logarithm that they take as an option."""


class PtpPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="ptp"):
    """A slave at the source of each flow, and their master at the destination: a Sync every
    ``interval_ns``, and about as many Delay_Req.

    ``delay`` is a message's one-way time, caused by the network alone and exact, because all hosts
    have one clock. ``offset`` is what the slave computed from it with each Sync, behind its
    filters. ptp4l takes the sending time when a message's first bit leaves the host; ptpd, which
    cannot do that here (native/ptp-stamps), before any queue of the host.
    """

    MEASURES: ClassVar = {
        "samples": "messages",
        "delay_p50_ms": "delay median, ms",
        "delay_p99_ms": "delay p99, ms",
        "delay_max_ms": "delay max, ms",
        "offset_rms_ms": "offset RMS, ms",
        "offset_mean_ms": "offset mean, ms",
        "offset_min_ms": "offset least, ms",
        "offset_max_ms": "offset greatest, ms",
    }
    ONE_WAY: ClassVar = True
    MULTICAST: ClassVar = True

    implementation: Implementation
    interval_ns: int

    @property
    def log_interval(self) -> int:
        """Binary logarithm of the interval in seconds, as the programs take it."""
        return INTERVALS_NS[self.interval_ns]

    @property
    def master(self) -> str:
        """The host whose clock the others follow."""
        return self.flows[0][1]

    def constants(self, network: Network) -> dict[str, float]:
        """One-way time of a message in an idle network, without processing."""
        return {"analytic_ms": self.one_way_ns(network, self.flows[0]) / 1e6}

    def one_way_ns(self, network: Network, flow: Flow) -> int:
        """One-way time of a message between the ends of a flow, in ns."""
        frame = theory.frame_bytes(theory.UDP_HEADERS_BYTES + EVENT_BYTES)
        return theory.one_way_ns(frame, network.speeds(*flow))

    def check_emulated(self, where: str) -> None:
        if self.interval_ns not in INTERVALS_NS:
            raise UsageError(
                f"{where}.interval: ptpd and ptp4l send 1, 2, 4, ... or 128 Syncs a second: use "
                f"{', '.join(str(Duration(ns)) for ns in INTERVALS_NS)}, or --backend simulator"
            )

    def describe(self) -> str:
        slaves = ", ".join(source for source, _ in self.flows)
        interval = (
            "second" if self.interval_ns == theory.NS_PER_S else f"{self.interval_ns / 1e6:g} ms"
        )
        return (
            f"{self.implementation}, master {self.master}, "
            f"slave{'s' if len(self.flows) > 1 else ''} {slaves}, a Sync every {interval}, no "
            "clock adjusted"
        )
