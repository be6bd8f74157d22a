"""memcached, loaded by memload (native/memload): what is asked of them, and their plan."""

from __future__ import annotations

from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model.programs.base import LATENCIES, FlowSpec, WorkloadPlan, bounded
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration, Size

BINARY_HEADER_BYTES = 24
"""Of memcached's binary protocol, in requests and in answers; an answer to GET has 4 bytes of flags more."""

MOST_REQUESTS_PER_S = 100_000


class MemcachedPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="memcached"):
    """For each flow a client with ``connections``; open loop at ``rate_per_s`` in all, or closed with ``think_ns`` where that is None."""

    MEASURES: ClassVar = {
        **LATENCIES,
        "requests_per_s": "answered, 1/s",
        "over_200ms": "over 200 ms",
        "get_p50_ms": "GET median, ms",
        "set_mean_ms": "SET mean, ms",
        "rms_ms": "RMS, ms",
    }

    rate_per_s: float | None
    think_ns: int
    connections: int
    get_fraction: float
    key_bytes: int
    value_bytes: int
    keys: int

    def constants(self, network: Network) -> dict[str, float]:
        """A GET's round trip in an idle network, without anybody's processing; None where a value needs several frames."""
        headers = theory.IP_HEADER_BYTES + theory.TCP_HEADER_BYTES + BINARY_HEADER_BYTES
        request, answer = headers + self.key_bytes, headers + 4 + self.value_bytes
        if answer > network.mtu_bytes:
            return {}
        links = network.speeds(*self.flows[0])
        ways = (theory.one_way_ns(theory.frame_bytes(size), links) for size in (request, answer))
        return {"analytic_ms": sum(ways) / 1e6}

    def describe(self) -> str:
        loop = f"closed loop, {self.think_ns / 1e6:g} ms between requests" if self.rate_per_s is None else f"open loop, {self.rate_per_s:g} requests/s"
        many = f"{self.connections} connection{'s' if self.connections > 1 else ''}"
        return f"memcached, {many} a flow, {loop}, {self.get_fraction:.0%} GET, values of {self.value_bytes} B"


class Memcached(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="memcached", kw_only=True):
    """A memcached on each destination, and for each flow a client that logs every request.

    With ``rate`` (requests/s) requests become due by a Poisson process whether or not earlier ones were answered; without it each connection
    sends its next request ``think`` after the last answer, as memcaslap does.
    """

    rate: float | None = None
    think: Duration = Duration(0)
    connections: int = 1
    get_fraction: float = 0.9
    key_size: Size = Size(64)
    value_size: Size = Size(1024)
    keys: int = 100

    def check(self, where: str, network: Network) -> None:
        if self.rate is not None:
            bounded(f"{where}.rate", self.rate, 0.1, MOST_REQUESTS_PER_S, f"0.1 to {MOST_REQUESTS_PER_S} requests/s, or leave it out for the closed loop")
        elif not self.think:
            raise UsageError(f"{where}: without a rate and without time to think a client keeps the virtual CPU busy: give rate or think")
        bounded(f"{where}.connections", self.connections, 1, 1000, "1 to 1000")
        bounded(f"{where}.get_fraction", self.get_fraction, 0, 1, "0 to 1")
        bounded(f"{where}.key_size", self.key_size, 8, 250, "8B to 250B")
        bounded(f"{where}.value_size", self.value_size, 1, 10**6, "1B to 1MB")
        bounded(f"{where}.keys", self.keys, 1, 10**6, "1 to 1000000")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> MemcachedPlan:
        return MemcachedPlan(
            **common,
            rate_per_s=self.rate,
            think_ns=int(self.think),
            connections=self.connections,
            get_fraction=self.get_fraction,
            key_bytes=int(self.key_size),
            value_bytes=int(self.value_size),
            keys=self.keys,
        )
