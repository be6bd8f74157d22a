"""memcached, loaded by memload (native/memload): what is asked of them, and their plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from qjump_mn import theory
from qjump_mn.errors import LostError, UsageError
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration, Size
from qjump_mn.programs.base import LATENCIES, FlowSpec, Program, Read, WorkloadPlan, bounded
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.text import log, transposed

if TYPE_CHECKING:
    from qjump_mn.model.plan import Trial


BINARY_HEADER_BYTES = 24
"""Of memcached's binary protocol, in requests and in answers; an answer to GET has 4 bytes of flags more."""

MOST_REQUESTS_PER_S = 100_000


class MemcachedPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="memcached"):
    """For each flow a client with ``connections``; open loop at ``rate_per_s`` in all, or closed with
    ``think_ns`` where that is None."""

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
        """The bytes that TCP carries of a request and of its answer, by operation: a GET's answer has flags,
        a SET flags and a time to live."""
        header = BINARY_HEADER_BYTES
        return {
            "GET": (header + self.key_bytes, header + 4 + self.value_bytes),
            "SET": (header + 8 + self.key_bytes + self.value_bytes, header),
        }

    @property
    def ip_bytes(self) -> dict[str, tuple[int, int]]:
        """The lengths of their IP packets, were they one each."""
        headers = theory.TCP_HEADERS_BYTES
        return {op: (headers + asked, headers + told) for op, (asked, told) in self.message_bytes.items()}

    def constants(self, network: Network) -> dict[str, float]:
        """A GET's round trip in an idle network, without anybody's processing; None where a value needs
        several frames."""
        sizes = self.ip_bytes["GET"]
        if max(sizes) > network.mtu_bytes:
            return {}
        links = network.speeds(*self.flows[0])
        ways = (theory.one_way_ns(theory.frame_bytes(size), links) for size in sizes)
        return {"analytic_ms": sum(ways) / 1e6}

    @property
    def busy(self) -> float:
        # Requests at a given rate are few; only the closed loop sends what the guest's processor can.
        return 1.5 if self.rate_per_s is None else 0.0

    def packets(self, trial: Trial) -> float:
        rate_per_s = self.rate_per_s or self.connections * 1e9 / self.think_ns
        return 2 * len(self.flows) * trial.duration_ns / 1e9 * rate_per_s

    def describe(self) -> str:
        loop = (
            f"closed loop, {self.think_ns / 1e6:g} ms between requests"
            if self.rate_per_s is None
            else f"open loop, {self.rate_per_s:g} requests/s"
        )
        many = f"{self.connections} connection{'s' if self.connections > 1 else ''}"
        return (
            f"memcached, {many} a flow, {loop}, {self.get_fraction:.0%} GET, values of {self.value_bytes} B"
        )


class Memcached(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="memcached", kw_only=True):
    """A memcached on each destination, and for each flow a client that logs every request.

    With ``rate`` (requests/s) requests become due by a Poisson process whether or not earlier ones were
    answered; without it each connection sends its next request ``think`` after the last answer, as memcaslap
    does."""

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
                f"{where}: without a rate and without time to think a client keeps the virtual CPU busy: "
                "give rate or think"
            )
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


COLUMNS = {"flow": "string", "op": "string", "due_ns": "int64", "sent_ns": "int64", "latency_us": "double"}
"""A row for each request; ``latency_us`` counts from when it was due, and is null if no answer came in
time."""

OPERATIONS = ("GET", "SET")
ERROR = 2
LINGER_NS, LEAST_LINGER_NS = 5 * 10**9, 10**9
"""How long a client waits for the last answers, on the machine's clock, and the least on the network's: a
full buffer at 10 Mb/s holds 0.12 s, and TCP's least timeout is 0.2 s at any rate."""


def output_name(plan: MemcachedPlan, flow: tuple[str, str], end: str) -> str:
    """The raw file of one flow's ``end``: "load" has the requests."""
    return f"{plan.name}-{flow[0]}-{flow[1]}.{end}.txt"


def servers(plan: WorkloadPlan, trial: Trial) -> Iterator[Launch]:
    """A memcached on each destination, whoever loads it."""
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
    """The servers, and for each flow a client that stores the keys, and one that measures."""
    yield from servers(plan, trial)
    loop = (
        ("--closed", "--think", str(plan.think_ns))
        if plan.rate_per_s is None
        else ("--rate", f"{plan.rate_per_s:g}")
    )
    for index, (source, destination) in enumerate(plan.flows):
        sizes = (
            *(
                "memload",
                "--server",
                f"{trial.network.addresses[destination]}:{plan.port}",
                "--connections",
                str(plan.connections),
            ),
            *(
                "--key-bytes",
                str(plan.key_bytes),
                "--value-bytes",
                str(plan.value_bytes),
                "--keys",
                str(plan.keys),
            ),
        )
        flow, linger_ns = (source, destination), max(LINGER_NS // trial.arm.time_scale, LEAST_LINGER_NS)
        duration_s = (trial.duration_ns + linger_ns) / 1e9
        # Before anything disturbs: through a full buffer it would take longer than the measurement.
        yield Launch("serve", source, (*sizes, "--store"), output_name(plan, flow, "store"), longest_s=60.0)
        client = (
            *(
                *sizes,
                "--stored",
                *loop,
                "--get-fraction",
                f"{plan.get_fraction:g}",
                "--duration",
                str(trial.duration_ns),
            ),
            *("--linger", str(linger_ns), "--seed", str(1000 * trial.seed + index)),
        )
        yield Launch("probe", source, client, output_name(plan, flow, "load"), longest_s=duration_s)


def columns(plan: MemcachedPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every request of every flow."""
    rows = []
    for flow in plan.flows:
        requests = log(read(output_name(plan, flow, "load")), "memload").columns
        if ERROR in requests["status"] or 1 in requests["status"]:
            raise LostError(
                f"memcached answered {requests['status'].count(ERROR)} requests with an error and missed "
                f"{requests['status'].count(1)} keys"
            )
        rows += [
            (f"{flow[0]}>{flow[1]}", OPERATIONS[op], due, sent, (done - due) / 1e3 if done else None)
            for op, due, sent, done in zip(
                requests["op"], requests["due_ns"], requests["sent_ns"], requests["done_ns"], strict=True
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
