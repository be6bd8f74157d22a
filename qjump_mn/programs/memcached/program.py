"""memcached, loaded by a client that logs every request (native/memload)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.errors import LostError, UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration, Size
from qjump_mn.programs.base import LATENCIES, FlowSpec, Program, Read, WorkloadPlan, bounded
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.text import log, transposed

BINARY_HEADER_BYTES = 24
"""Header of memcached's binary protocol, in requests and answers; an answer to GET has 4 more bytes
of flags."""

MOST_REQUESTS_PER_S = 100_000


class MemcachedPlan(
    WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="memcached"
):
    """A client with ``connections`` for each flow: open loop with a total of ``rate_per_s``, or
    closed loop with ``think_ns`` if that is None."""

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

    @property
    def message_bytes(self) -> dict[str, tuple[int, int]]:
        """TCP payload of a request and of its answer, by operation. A GET's answer has flags; a SET
        has flags and a time to live."""
        header = BINARY_HEADER_BYTES
        return {
            "GET": (header + self.key_bytes, header + 4 + self.value_bytes),
            "SET": (header + 8 + self.key_bytes + self.value_bytes, header),
        }

    @property
    def ip_bytes(self) -> dict[str, tuple[int, int]]:
        """Lengths of the request's and the answer's IP packet, assuming one packet each."""
        headers = theory.TCP_HEADERS_BYTES
        return {
            op: (headers + request, headers + answer)
            for op, (request, answer) in self.message_bytes.items()
        }

    def constants(self, network: Network) -> dict[str, float]:
        """A GET's round trip in an idle network, without processing; none if a value needs several
        frames."""
        sizes = self.ip_bytes["GET"]
        if max(sizes) > network.mtu_bytes:
            return {}
        links = network.speeds(*self.flows[0])
        times_ns = (theory.one_way_ns(theory.frame_bytes(size), links) for size in sizes)
        return {"analytic_ms": sum(times_ns) / 1e6}

    def packets(self, trial: Trial) -> float:
        # A request of the closed loop takes about 100 us, and a server answers so many a second.
        closed_per_s = min(self.connections * 1e9 / (self.think_ns + 100_000), 300_000)
        rate_per_s = self.rate_per_s or closed_per_s
        return 2 * len(self.flows) * trial.duration_ns / 1e9 * rate_per_s

    def describe(self) -> str:
        loop = (
            f"closed loop, {self.think_ns / 1e6:g} ms between requests"
            if self.rate_per_s is None
            else f"open loop, {self.rate_per_s:g} requests/s"
        )
        connections = f"{self.connections} connection{'s' if self.connections > 1 else ''} a flow"
        return (
            f"memcached, {connections}, {loop}, {self.get_fraction:.0%} GET, values of "
            f"{self.value_bytes} B"
        )


class Memcached(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="memcached", kw_only=True):
    """A memcached on each destination, and for each flow a client that logs every request.

    With ``rate`` (requests/s), requests become due by a Poisson process, whether or not earlier
    ones have been answered. Without it, each connection sends its next request ``think`` after the
    last answer, as memcaslap does.
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
            bounded(
                f"{where}.rate",
                self.rate,
                0.1,
                MOST_REQUESTS_PER_S,
                f"0.1 to {MOST_REQUESTS_PER_S} requests/s, or leave it out for the closed loop",
            )
        elif not self.think:
            raise UsageError(
                f"{where}: without rate and think, a client never leaves the virtual CPU: give one "
                "of them"
            )
        bounded(f"{where}.connections", self.connections, 1, 1000, "1 to 1000")
        bounded(f"{where}.get_fraction", self.get_fraction, 0, 1, "0 to 1")
        bounded(f"{where}.key_size", self.key_size, 8, 250, "8B to 250B")
        bounded(f"{where}.value_size", self.value_size, 1, 10**6, "1B to 1MB")
        bounded(f"{where}.keys", self.keys, 1, 10**6, "1 to 1000000")

    def planned(
        self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int
    ) -> MemcachedPlan:
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


COLUMNS = {
    "flow": "string",
    "op": "string",
    "due_ns": "int64",
    "sent_ns": "int64",
    "latency_us": "double",
}
"""A row for each request. ``latency_us`` counts from when it was due, and is null if no answer came
in time."""

OPERATIONS = ("GET", "SET")
ERROR = 2
LINGER_NS, LEAST_LINGER_NS = 5 * 10**9, 10**9
"""How long a client waits for the last answers, and the minimum on fast links: a full buffer at 10
Mb/s holds 0.12 s, and TCP's minimum timeout is 0.2 s at any rate."""


def output_name(plan: MemcachedPlan, flow: tuple[str, str], end: str) -> str:
    """The raw file of one flow's ``end``; "load" has the requests."""
    return f"{plan.name}-{flow[0]}-{flow[1]}.{end}.txt"


def servers(plan: WorkloadPlan, trial: Trial) -> Iterator[Launch]:
    """A memcached on each destination, whichever client loads it."""
    for host in dict.fromkeys(destination for _, destination in plan.flows):
        server = (
            "memcached",
            "-u",
            "root",
            "-m",
            "64",
            "-t",
            "1",
            "-U",
            "0",
            "-p",
            str(plan.port),
            "-l",
            trial.network.addresses[host],
        )
        yield Launch(
            "serve",
            host,
            server,
            f"{plan.name}-{host}.memcached.txt",
            listens=("tcp", plan.port),
            itself=False,
        )


def launches(plan: MemcachedPlan, trial: Trial) -> Iterator[Launch]:
    """The servers, and for each flow a client that stores the keys and one that measures."""
    yield from servers(plan, trial)
    linger_ns = max(LINGER_NS // trial.arm.time_scale, LEAST_LINGER_NS)
    for index, flow in enumerate(plan.flows):
        source, destination = flow
        common = _memload(plan, trial.network.addresses[destination])
        # Before any load starts: through a full buffer, storing would take longer than the
        # measurement.
        yield Launch(
            "serve", source, (*common, "--store"), output_name(plan, flow, "store"), longest_s=60.0
        )
        client = (
            *(*common, "--stored", *_loop(plan), "--get-fraction", f"{plan.get_fraction:g}"),
            *("--duration", str(trial.duration_ns), "--linger", str(linger_ns)),
            *("--seed", str(1000 * trial.seed + index)),
        )
        longest_s = (trial.duration_ns + linger_ns) / 1e9
        yield Launch("probe", source, client, output_name(plan, flow, "load"), longest_s=longest_s)


def _memload(plan: MemcachedPlan, address: str) -> tuple[str, ...]:
    """The command line that storing and measuring have in common."""
    return (
        *("memload", "--server", f"{address}:{plan.port}", "--connections", str(plan.connections)),
        *("--key-bytes", str(plan.key_bytes), "--value-bytes", str(plan.value_bytes)),
        *("--keys", str(plan.keys)),
    )


def _loop(plan: MemcachedPlan) -> tuple[str, ...]:
    if plan.rate_per_s is None:
        return ("--closed", "--think", str(plan.think_ns))
    return ("--rate", f"{plan.rate_per_s:g}")


def columns(plan: MemcachedPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every request of every flow."""
    rows = []
    for flow in plan.flows:
        requests = log(read(output_name(plan, flow, "load")), "memload").columns
        if ERROR in requests["status"] or 1 in requests["status"]:
            raise LostError(
                f"memcached answered {requests['status'].count(ERROR)} requests with an error and "
                f"missed {requests['status'].count(1)} keys"
            )
        rows += [
            (
                f"{flow[0]}>{flow[1]}",
                OPERATIONS[op],
                due,
                sent,
                (done - due) / 1e3 if done else None,
            )
            for op, due, sent, done in zip(
                requests["op"],
                requests["due_ns"],
                requests["sent_ns"],
                requests["done_ns"],
                strict=True,
            )
        ]
    return transposed(rows, COLUMNS)


PROGRAM = Program(
    spec=Memcached,
    plan=MemcachedPlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.memcached.measures:MEASURES",
    simulated="qjump_mn.programs.memcached.simulated:SIMULATED",
)
