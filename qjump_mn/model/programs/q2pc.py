"""q2pc (native/q2pc): two-phase commits between one coordinator and its clients."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model.programs.base import LATENCIES, Flow, FlowSpec, WorkloadPlan, bounded
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration, Size

Transport = Literal["tcp", "udp", "broadcast"]

MOST_CLIENTS = 64


class Q2PCPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="q2pc"):
    """The source of all flows makes a request of two phases at most every ``interval_ns``; it needs the answers of all destinations.

    Over UDP it asks again after ``rto_ns``; over a broadcast nothing is sent again, and a phase without all answers has failed after ``wait_ns``.
    """

    MEASURES: ClassVar = {**LATENCIES, "requests_per_s": "completed, 1/s", "retries": "sent again", "failed": "failed"}

    transport: Transport
    message_bytes: int
    interval_ns: int
    rto_ns: int
    wait_ns: int

    @property
    def coordinator(self) -> str:
        """The host that makes the requests."""
        return self.flows[0][0]

    @property
    def clients(self) -> tuple[str, ...]:
        """The hosts that answer, in the order of their numbers."""
        return tuple(destination for _, destination in self.flows)

    def constants(self, network: Network) -> dict[str, float]:
        """A request's time in an idle network, without anybody's processing: what the farthest client takes, of orders that leave at once."""
        headers = theory.IP_HEADER_BYTES + (theory.TCP_HEADER_BYTES if self.transport == "tcp" else theory.UDP_HEADER_BYTES)
        frame = theory.frame_bytes(headers + self.message_bytes)
        return {"analytic_ms": 4 * max(theory.one_way_ns(frame, network.speeds(*flow)) for flow in self.flows) / 1e6}

    def describe(self) -> str:
        how = {"tcp": "TCP", "udp": f"UDP, asked again after {self.rto_ns / 1e6:g} ms", "broadcast": "a broadcast, nothing sent again"}[self.transport]
        pace = f"a request every {self.interval_ns / 1e6:g} ms at most" if self.interval_ns else "requests back to back"
        return f"q2pc, {len(self.flows)} clients over {how}, messages of {self.message_bytes} B, {pace}"


class Q2PC(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="q2pc", kw_only=True):
    """q2pc: all ``flows`` go from the coordinator, each to a client; ``interval`` is the least time between the starts of two requests."""

    transport: Transport
    message: Size = Size(16)
    interval: Duration = Duration(0)
    rto: Duration = Duration(200 * 10**6)
    wait: Duration = Duration(5 * 10**9)

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        found = super().pairs(where)
        if len({source for _, (source, _) in found}) > 1:
            raise UsageError(f"{where}.flows: there is one coordinator: begin every flow at the same host")
        return found

    def check(self, where: str, network: Network) -> None:
        bounded(f"{where}.flows", len(self.flows), 1, MOST_CLIENTS, f"1 to {MOST_CLIENTS} clients")
        most = network.mtu_bytes - theory.IP_HEADER_BYTES - theory.UDP_HEADER_BYTES
        bounded(f"{where}.message", self.message, 16, min(1472, most), f"16B to {min(1472, most)}B")
        bounded(f"{where}.interval", self.interval, 0, 10**10, "at most 10s")
        bounded(f"{where}.rto", self.rto, 10**6, 10**11, "1ms to 100s")
        bounded(f"{where}.wait", self.wait, 10**6, 10**11, "1ms to 100s")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> Q2PCPlan:
        return Q2PCPlan(
            **common,
            transport=self.transport,
            message_bytes=int(self.message),
            interval_ns=int(self.interval),
            rto_ns=int(self.rto),
            wait_ns=int(self.wait),
        )
