"""iputils ping: what is asked of it, and its plan."""

from __future__ import annotations

from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model.programs.base import LATENCIES, FlowSpec, WorkloadPlan
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration, Size


class PingPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="ping"):
    """``count`` echo requests for each flow, one every ``interval_ns``."""

    MEASURES: ClassVar = LATENCIES

    interval_ns: int
    payload_bytes: int
    reply_level: int
    count: int

    @property
    def levels(self) -> set[int]:
        return {self.level, self.reply_level}

    @property
    def echo_replies(self) -> tuple[tuple[str, int], ...]:
        return tuple((destination, self.reply_level) for _, destination in self.flows) if self.reply_level else ()

    def constants(self, network: Network) -> dict[str, float]:
        rtt = theory.ping_rtt_ns(self.payload_bytes, network.speeds(*self.flows[0]))
        return {"analytic_ms": rtt / 1e6, "interval_ms": self.interval_ns / 1e6}

    @property
    def longest_ns(self) -> int:
        """When no reply comes ping waits longer than it was asked to, below 10 ms; and it may begin an interval later."""
        return self.count * max(self.interval_ns, theory.PING_UNANSWERED_NS) + self.interval_ns

    @property
    def phase_ns(self) -> int:
        return self.interval_ns

    def describe(self) -> str:
        requests = f"ping, {self.count} requests of {self.payload_bytes} B every {self.interval_ns / 1e6:g} ms"
        if not theory.PING_SHORTEST_NS <= self.interval_ns < theory.PING_UNANSWERED_NS:
            return requests
        return f"{requests}; {theory.PING_UNANSWERED_NS / 1e6:g} ms after one that was not answered by then"


class Ping(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="ping", kw_only=True):
    """iputils ping: one echo request every ``interval`` for the length of the trial; measured from start to end.

    Replies have the requests' level, unless ``reply_level`` is given.
    """

    interval: Duration
    payload: Size = Size(56)
    reply_level: int | None = None

    def check(self, where: str, network: Network) -> None:
        if self.reply_level is not None and not 0 <= self.reply_level <= 7:
            raise UsageError(f"{where}.reply_level: {self.reply_level} is no level: an 802.1Q priority is 0 to 7, 7 the most urgent")
        if not 1_000 <= self.interval <= 10**10:
            raise UsageError(f"{where}.interval: {self.interval} is out of range: use 1us to 10s")
        most = network.mtu_bytes - theory.IP_HEADER_BYTES - theory.ICMP_HEADER_BYTES
        if not 16 <= self.payload <= most:
            raise UsageError(f"{where}.payload: {self.payload} is out of range: use 16B (it carries a time stamp) to {most}B")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> PingPlan:
        return PingPlan(
            **common,
            interval_ns=int(self.interval),
            payload_bytes=int(self.payload),
            reply_level=(common["level"] if self.reply_level is None else self.reply_level) if uses_levels else 0,
            count=max(2, duration_ns // int(self.interval)),
        )
