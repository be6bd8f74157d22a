"""q2pc (native/q2pc): two-phase commits between a coordinator and its clients."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import PREFIX_BITS, Network
from qjump_mn.model.units import Duration, Size
from qjump_mn.programs.base import LATENCIES, Flow, FlowSpec, Program, Read, WorkloadPlan, bounded
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.text import log, transposed

Transport = Literal["tcp", "udp", "broadcast"]

MOST_CLIENTS = 64


class Q2PCPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="q2pc"):
    """The source of all flows makes a request of two phases at most every ``interval_ns``, and
    needs the answers of all destinations.

    Over UDP it retries after ``rto_ns``. Over a broadcast it never retries; a phase without all
    answers fails after ``wait_ns``.
    """

    MEASURES: ClassVar = {
        **LATENCIES,
        "requests_per_s": "completed, 1/s",
        "retries": "sent again",
        "failed": "failed",
    }

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
        """A request's time in an idle network, without processing: that of the farthest client, if
        all orders leave at once."""
        headers = theory.TCP_HEADERS_BYTES if self.transport == "tcp" else theory.UDP_HEADERS_BYTES
        frame = theory.frame_bytes(headers + self.message_bytes)
        return {
            "analytic_ms": 4
            * max(theory.one_way_ns(frame, network.speeds(*flow)) for flow in self.flows)
            / 1e6
        }

    @property
    def copied(self) -> bool:
        return self.transport == "broadcast"

    def packets(self, trial: Trial) -> float:
        """Of requests as short as an idle network allows: two phases, each with an answer."""
        idle_ns = self.constants(trial.network)["analytic_ms"] * 1e6
        return 4 * len(self.flows) * trial.length_ns / max(self.interval_ns, idle_ns)

    def describe(self) -> str:
        transport = {
            "tcp": "TCP",
            "udp": f"UDP, asked again after {self.rto_ns / 1e6:g} ms",
            "broadcast": "a broadcast, nothing sent again",
        }[self.transport]
        pace = (
            f"a request every {self.interval_ns / 1e6:g} ms at most"
            if self.interval_ns
            else "requests back to back"
        )
        return (
            f"q2pc, {len(self.flows)} clients over {transport}, messages of "
            f"{self.message_bytes} B, {pace}"
        )


class Q2PC(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="q2pc", kw_only=True):
    """Two-phase commits. All ``flows`` start at the coordinator, each going to a client;
    ``interval`` is the minimum time between the starts of two requests."""

    transport: Transport
    message: Size = Size(16)
    interval: Duration = Duration(0)
    rto: Duration = Duration(200 * 10**6)
    wait: Duration = Duration(5 * 10**9)

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        pairs = super().pairs(where)
        if len({source for _, (source, _) in pairs}) > 1:
            raise UsageError(
                f"{where}.flows: there can be only one coordinator: start all flows at the same "
                "host"
            )
        return pairs

    def check(self, where: str, network: Network) -> None:
        bounded(f"{where}.flows", len(self.flows), 1, MOST_CLIENTS, f"1 to {MOST_CLIENTS} clients")
        most = network.mtu_bytes - theory.UDP_HEADERS_BYTES
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


COLUMNS = {"start_ns": "int64", "votes_ns": "int64", "retries": "int32", "latency_us": "double"}
"""A row for each request that was completed or failed. ``votes_ns`` is null if a vote was missing,
``latency_us`` if the request failed."""


def output_name(plan: Q2PCPlan, host: str) -> str:
    """The raw file of a host; the coordinator's has the requests."""
    return f"{plan.name}-{host}.q2pc.txt"


def launches(plan: Q2PCPlan, trial: Trial) -> Iterator[Launch]:
    """A client on each destination, and the coordinator."""
    sizes = ("--transport", plan.transport, "--message", str(plan.message_bytes))
    for number, host in enumerate(plan.clients):
        identity = ("--client", str(number)) if plan.transport == "broadcast" else ()
        serve = ("q2pc", "serve", *sizes, "--port", str(plan.port), *identity)
        listens: tuple[Literal["tcp", "udp"], int] = (
            "tcp" if plan.transport == "tcp" else "udp",
            plan.port,
        )
        yield Launch("serve", host, serve, output_name(plan, host), listens=listens, itself=False)
    coordinate = (
        "q2pc",
        "coordinate",
        *sizes,
        "--duration",
        str(trial.duration_ns),
        "--interval",
        str(plan.interval_ns),
        *_towards(plan, trial),
    )
    yield Launch(
        "probe",
        plan.coordinator,
        coordinate,
        output_name(plan, plan.coordinator),
        longest_s=trial.duration_ns / 1e9,
    )


def _towards(plan: Q2PCPlan, trial: Trial) -> tuple[str, ...]:
    """Options for the clients' addresses, and for clients that do not answer."""
    addresses = trial.network.addresses
    if plan.transport == "broadcast":
        interface = ipaddress.ip_interface(f"{addresses[plan.coordinator]}/{PREFIX_BITS}")
        return (
            *("--broadcast", f"{interface.network.broadcast_address}:{plan.port}"),
            *("--clients", str(len(plan.clients)), "--wait", str(plan.wait_ns)),
        )
    peers = ("--peers", ",".join(f"{addresses[host]}:{plan.port}" for host in plan.clients))
    return (*peers, "--rto", str(plan.rto_ns)) if plan.transport == "udp" else peers


def columns(plan: Q2PCPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every request."""
    requests = log(read(output_name(plan, plan.coordinator)), "q2pc").columns
    rows = (
        (start, votes or None, retries, None if failed else (end - start) / 1e3)
        for start, votes, end, retries, failed in zip(
            *(requests[name] for name in ("start_ns", "votes_ns", "end_ns", "retries", "failed")),
            strict=True,
        )
    )
    return transposed(rows, COLUMNS)


PROGRAM = Program(
    spec=Q2PC,
    plan=Q2PCPlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.q2pc.measures:MEASURES",
)
