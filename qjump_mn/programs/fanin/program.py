"""fanin (native/fanin): many hosts send small datagrams at set times to one receiver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration, Size
from qjump_mn.programs import datagrams
from qjump_mn.programs.base import (
    LATENCIES,
    FlowSpec,
    Program,
    Read,
    WorkloadPlan,
    bounded,
    check_interval,
)
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.text import transposed

LEAST_INTERVAL_NS = 100_000
"""The shortest interval that one processor keeps in real time."""


class FaninPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="fanin"):
    """Each of ``streams`` of each flow sends a datagram of ``payload_bytes`` every ``interval_ns``:
    each at its own phase, or all together ``at_ns`` after each multiple of the interval on the
    clock."""

    MEASURES: ClassVar = {
        **LATENCIES,
        "late_ms": "latest start, ms",
        "bound_ms": "bound, ms",
        "of_bound": "slowest, of the bound",
    }

    interval_ns: int
    streams: int
    payload_bytes: int
    at_ns: int | None = None

    @property
    def packet_bytes(self) -> int:
        return theory.UDP_HEADERS_BYTES + self.payload_bytes

    @property
    def frame_bytes(self) -> int:
        """Length of a datagram's frame."""
        return theory.frame_bytes(self.packet_bytes)

    def constants(self, network: Network) -> dict[str, float]:
        """The longest time of a datagram, whatever is sent at lower levels, if the senders' epoch
        is long enough."""
        return {"bound_ms": self.bound_ms(network, alone=False)}

    def bound_ms(self, network: Network, *, alone: bool) -> float:
        """The same in ms; ``alone`` if nothing else is sent."""
        full = 0 if alone else theory.frame_bytes(network.mtu_bytes)
        paths = (network.speeds(*flow) for flow in self.flows)
        bounds = (
            theory.fan_in_bound_ns(len(self.flows), self.streams, self.frame_bytes, full, links)
            for links in paths
        )
        return max(bounds) / 1e6

    @property
    def answer_bytes(self) -> int:
        return 0

    def packets(self, trial: Trial) -> float:
        return len(self.flows) * self.streams * trial.duration_ns / self.interval_ns

    def check_real_time(self, where: str) -> None:
        check_interval(self, where, self.interval_ns, LEAST_INTERVAL_NS)

    def describe(self) -> str:
        streams = f"{self.streams} stream{'s' if self.streams > 1 else ''} a flow"
        return (
            f"fanin, {streams} of one {self.payload_bytes} B datagram every "
            f"{self.interval_ns / 1e6:g} ms, "
            + ("at random phases" if self.at_ns is None else "all at once")
        )


class Fanin(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="fanin", kw_only=True):
    """``streams`` senders for each flow, all to one host, each sending a datagram every
    ``interval``; one-way times are exact.

    ``phase`` makes all of them send at once, the worst case, so long after each multiple of the
    interval on the hosts' common clock; they then start after up to two intervals. Without it, each
    has a random phase.
    """

    interval: Duration
    streams: int = 1
    payload: Size = Size(230)
    phase: Duration | None = None

    def check(self, where: str, network: Network) -> None:
        bounded(f"{where}.interval", self.interval, 10**3, 10**10, "1us to 10s")
        bounded(f"{where}.streams", self.streams, 1, 64, "1 to 64")
        if self.phase is not None:
            bounded(f"{where}.phase", self.phase, 0, self.interval, f"0ns to {self.interval}")
        most = network.mtu_bytes - theory.UDP_HEADERS_BYTES
        bounded(f"{where}.payload", self.payload, 24, most, f"24B to {most}B")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> FaninPlan:
        if self.phase is not None and duration_ns < 3 * self.interval:
            raise UsageError(
                f"workloads.{common['name']}.phase: it starts after up to two intervals of "
                f"{self.interval}: set duration to at least {Duration(3 * self.interval)}"
            )
        return FaninPlan(
            **common,
            interval_ns=int(self.interval),
            streams=self.streams,
            payload_bytes=int(self.payload),
            at_ns=None if self.phase is None else int(self.phase),
        )


COLUMNS = {
    "flow": "string",
    "stream": "int32",
    "sequence": "int32",
    "due_ns": "int64",
    "sent_ns": "int64",
    "latency_us": "double",
}
"""A row for each datagram that was to be sent. ``latency_us``, from the sender's call to the
receiver's socket, is null if it did not arrive."""

LINGER_S = 0.5
"""Receivers are stopped after their senders; datagrams on their way have this long to arrive."""


def launches(plan: FaninPlan, trial: Trial) -> Iterator[Launch]:
    """A receiver for each destination, a sender for each flow."""
    most = 2 * len(plan.flows) * plan.streams * (trial.duration_ns // plan.interval_ns + 2)
    yield from datagrams.receivers(plan, rows=most, linger_s=LINGER_S)
    streams = (
        "--interval",
        str(plan.interval_ns),
        "--streams",
        str(plan.streams),
        "--payload",
        str(plan.payload_bytes),
        *(() if plan.at_ns is None else ("--phase", str(plan.at_ns))),
    )
    yield from datagrams.senders(plan, trial, "probe", streams, duration_ns=trial.duration_ns)


def columns(plan: FaninPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every datagram of every flow."""
    arrivals = datagrams.arrivals(plan, trial, read)
    rows = []
    for flow in plan.flows:
        arrival_ns = {(stream, sequence): at_ns for stream, sequence, at_ns in arrivals[flow]}
        sent = datagrams.sent(plan, flow[0], read)
        for stream, sequence, due, start in zip(
            *(sent[name] for name in ("stream", "sequence", "due_ns", "start_ns")), strict=True
        ):
            at_ns = arrival_ns.get((stream, sequence))
            latency_us = None if at_ns is None else (at_ns - start) / 1e3
            rows.append((">".join(flow), stream, sequence, due, start, latency_us))
    return transposed(rows, COLUMNS)


PROGRAM = Program(
    spec=Fanin,
    plan=FaninPlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.fanin.measures:MEASURES",
    simulated="qjump_mn.programs.fanin.simulated:SIMULATED",
)
