"""memcaslap: memcached, loaded by the paper's own client (libmemcached's memaslap)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Size
from qjump_mn.programs.base import FlowSpec, Program, Read, WorkloadPlan, bounded
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.memcached import program as memcached
from qjump_mn.programs.memcaslap.parse import check_version, parse
from qjump_mn.programs.text import transposed

START_NS = 10**9
"""Time before the first request: memcaslap generates its keys and values, which takes 0.9 s of the
virtual CPU."""

WINDOW_UNIT = 1024
"""A window must be a multiple of this."""

MOST_ITEMS = 1 << 22
"""Maximum for all connections together; each item takes memcaslap 40 B, and the guest has 1 GB."""


class MemcaslapPlan(
    WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="memcaslap"
):
    """A client for each flow, with ``threads`` and a total of ``connections``, each of which sends
    its next request as soon as it has the last answer.

    ``window_items`` is the number of keys that a connection has stored and asks for.
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

    def packets(self, trial: Trial) -> float:
        """Each connection's requests take about 100 us, or fill the link."""
        values = trial.network.link.rate_bps / 8 / (self.key_bytes + self.value_bytes)
        requests = min(self.connections * 1e4, values)
        return 2 * len(self.flows) * trial.length_ns / 1e9 * requests

    def describe(self) -> str:
        return (
            f"memcaslap, {self.connections} connections of {self.threads} threads a flow, closed "
            f"loop without a pause, {self.get_fraction:.0%} GET, keys of {self.key_bytes} B, "
            f"values of {self.value_bytes} B"
        )


class Memcaslap(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="memcaslap", kw_only=True):
    """A memcached on each destination, and for each flow the paper's client, with the binary
    protocol and statistics every second.

    It sends as fast as the network lets it; use ``memcached`` for a given rate, or for the latency
    of each request. The defaults are its own and the paper's; ``window`` is a number of keys. The
    experiment's duration must be a whole number of seconds.
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
            raise UsageError(
                f"{where}.connections: {self.connections} connections cannot be divided among "
                f"{self.threads} threads: use a multiple of {self.threads}"
            )
        bounded(
            f"{where}.get_fraction",
            self.get_fraction,
            0,
            0.99,
            "0 to 0.99: keys must be stored before they can be asked for",
        )
        bounded(f"{where}.key_size", self.key_size, 16, 250, "16B to 250B")
        bounded(f"{where}.value_size", self.value_size, 1, 10**6, "1B to 1MB")
        if self.window < WINDOW_UNIT or self.window % WINDOW_UNIT:
            raise UsageError(
                f"{where}.window: {self.window} keys are not a valid window: use a multiple of "
                f"{WINDOW_UNIT}"
            )
        bounded(
            f"{where}.window",
            self.window * self.connections,
            1,
            MOST_ITEMS,
            f"at most {MOST_ITEMS} keys in all connections together",
        )

    def planned(
        self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int
    ) -> MemcaslapPlan:
        if duration_ns % 10**9:
            raise UsageError(
                f"workloads.{common['name']}: memcaslap needs a duration of whole seconds (got "
                f"{duration_ns / 1e9:g} s)"
            )
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


COLUMNS = {
    "flow": "string",
    "kind": "string",
    "op": "string",
    "end_s": "int32",
    "ops": "int64",
    "tps": "int64",
    "net_mib_s": "double",
    "misses": "int64",
    "min_us": "int64",
    "max_us": "int64",
    "avg_us": "int64",
    "std_us": "double",
    "geo_us": "double",
    "at_most_us": "int64",
}
"""A row of kind "period" for each second, one of kind "run" for the whole run, and a "bucket" for
each power of two in the distribution of latencies; for GET, SET and TOTAL each, as memcaslap prints
them. ``end_s`` counts from its start, ``ops`` are answers, ``net_mib_s`` are keys and values,
``avg_us`` is truncated to whole us. A bucket holds latencies above half of ``at_most_us``. Values
that a kind does not have, or that need an answer, are null.

"run" and "bucket" include answers in the second after the end. Requests unanswered even then are in
no number, as memcaslap does not report them.
"""


def output_name(plan: MemcaslapPlan, flow: tuple[str, str], end: str) -> str:
    """A raw file of one flow: "txt" is what memcaslap prints, "cnf" its configuration."""
    return f"{plan.name}-{flow[0]}-{flow[1]}.memcaslap.{end}"


def launches(plan: MemcaslapPlan, trial: Trial) -> Iterator[Launch]:
    """A server for each destination; a configuration and a client for each flow."""
    yield from memcached.servers(plan, trial)
    yield Launch("serve", plan.flows[0][0], ("memcaslap", "-V"), version_name(plan))
    for flow in plan.flows:
        # Without a configuration it reads, or writes, a file in the user's home. Commands are 0
        # (SET) and 1 (GET), each with its share.
        sizes = (
            f"key\\n{plan.key_bytes} {plan.key_bytes} 1\\nvalue\\n{plan.value_bytes} "
            f"{plan.value_bytes} 1"
        )
        settings = f"{sizes}\\ncmd\\n0 {1 - plan.get_fraction:g}\\n1 {plan.get_fraction:g}\\n"
        yield Launch("serve", flow[0], ("printf", settings), output_name(plan, flow, "cnf"))
        # It must end by its time limit: interrupted by SIGINT, it prints no distribution.
        client = (
            *("memcaslap", "-s", f"{trial.network.addresses[flow[1]]}:{plan.port}"),
            *("-F", output_name(plan, flow, "cnf"), "-B", "-S", "1s", "-T", str(plan.threads)),
            *("-c", str(plan.connections), "-w", f"{plan.window_items // 1024}k"),
            *("-t", f"{plan.seconds}s"),
        )
        yield Launch(
            "probe",
            flow[0],
            client,
            output_name(plan, flow, "txt"),
            longest_s=plan.longest_ns / 1e9 + 1,
        )


def version_name(plan: MemcaslapPlan) -> str:
    """The raw file with memcaslap's version."""
    return f"{plan.name}.memcaslap.version.txt"


def columns(plan: MemcaslapPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """The statistics of every flow."""
    check_version(read(version_name(plan)))
    rows = [
        (f"{flow[0]}>{flow[1]}", *row)
        for flow in plan.flows
        for row in parse(read(output_name(plan, flow, "txt")), plan.seconds)
    ]
    return transposed(rows, COLUMNS)


PROGRAM = Program(
    spec=Memcaslap,
    plan=MemcaslapPlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.memcaslap.measures:MEASURES",
)
