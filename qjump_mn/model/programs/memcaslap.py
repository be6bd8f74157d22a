"""memcached, loaded by memcaslap (libmemcached's memaslap), the paper's own client: what is asked of them, and their plan."""

from __future__ import annotations

from typing import Any, ClassVar

from qjump_mn.errors import UsageError
from qjump_mn.model.programs.base import FlowSpec, WorkloadPlan, bounded
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Size

START_NS = 10**9
"""Before its first request memcaslap makes up its keys and values, for which it needs 0.9 s of the virtual CPU."""

WINDOW_UNIT = 1024
"""memcaslap wants windows of a multiple of this."""

MOST_ITEMS = 1 << 22
"""Of all connections; each takes memcaslap 40 B, and the guest has 1 GB."""


class MemcaslapPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="memcaslap"):
    """For each flow a client of ``threads`` with ``connections`` in all, each of which sends its next request at once after the last answer.

    ``window_items`` is how many keys a connection has stored and asks for.
    """

    MEASURES: ClassVar = {
        "requests_per_s": "answered, 1/s",
        "min_ms": "least, ms",
        "mean_ms": "mean, ms",
        "max_ms": "max, ms",
        "p50_at_most_ms": "median at most, ms",
        "p99_at_most_ms": "p99 at most, ms",
        "over_200ms_at_least": "over 200 ms, at least",
        "over_200ms_at_most": "over 200 ms, at most",
        "get_mean_ms": "GET mean, ms",
        "set_mean_ms": "SET mean, ms",
        "misses": "misses",
    }

    seconds: int
    connections: int
    threads: int
    get_fraction: float
    key_bytes: int
    value_bytes: int
    window_items: int

    @property
    def longest_ns(self) -> int:
        return self.seconds * 10**9 + START_NS

    def describe(self) -> str:
        return (
            f"memcaslap, {self.connections} connections of {self.threads} threads a flow, closed loop without a pause, "
            f"{self.get_fraction:.0%} GET, keys of {self.key_bytes} B, values of {self.value_bytes} B"
        )


class Memcaslap(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="memcaslap", kw_only=True):
    """A memcached on each destination, and for each flow the paper's client, in the binary protocol, with statistics every second.

    It is as fast as the network lets it; use ``memcached`` for a rate, or for the latency of each request. The defaults are its own
    and the paper's; ``window`` is in keys. It counts whole seconds, which an experiment's duration must therefore be.
    """

    connections: int = 128
    threads: int = 2
    get_fraction: float = 0.9
    key_size: Size = Size(64)
    value_size: Size = Size(1024)
    window: int = 10 * WINDOW_UNIT

    def check(self, where: str, network: Network) -> None:
        bounded(f"{where}.connections", self.connections, 1, 1000, "1 to 1000")
        bounded(f"{where}.threads", self.threads, 1, 16, "1 to 16")
        if self.connections % self.threads:
            raise UsageError(f"{where}.connections: {self.connections} connections cannot be shared by {self.threads} threads: use a multiple")
        bounded(f"{where}.get_fraction", self.get_fraction, 0, 0.99, "0 to 0.99: keys must be stored before they can be asked for")
        bounded(f"{where}.key_size", self.key_size, 16, 250, "16B to 250B")
        bounded(f"{where}.value_size", self.value_size, 1, 10**6, "1B to 1MB")
        if self.window < WINDOW_UNIT or self.window % WINDOW_UNIT:
            raise UsageError(f"{where}.window: {self.window} keys make no window: use a multiple of {WINDOW_UNIT}")
        bounded(f"{where}.window", self.window * self.connections, 1, MOST_ITEMS, f"at most {MOST_ITEMS} keys in all connections together")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> MemcaslapPlan:
        if duration_ns % 10**9:
            raise UsageError(f"workloads.{common['name']}: memcaslap counts whole seconds: a duration of {duration_ns / 1e9:g} s is none")
        return MemcaslapPlan(
            **common,
            seconds=duration_ns // 10**9,
            connections=self.connections,
            threads=self.threads,
            get_fraction=self.get_fraction,
            key_bytes=int(self.key_size),
            value_bytes=int(self.value_size),
            window_items=self.window,
        )
