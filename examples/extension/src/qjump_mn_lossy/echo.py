"""The program `echo`: UDP datagrams that the other host sends back.

This module is read to make a plan: the standard library, msgspec and what qjump-mn has for such
modules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration, Size
from qjump_mn.programs.base import LATENCIES, Flow, FlowSpec, Program, Read, WorkloadPlan, bounded
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.text import transposed

SOURCE = Path(__file__).with_name("udp.py").read_text(encoding="utf-8")
LEAST_BYTES, LINGER_S = 12, 1.0
"""Of udp.py: a datagram's number and time, and how long it waits for the last replies."""

COLUMNS = {"flow": "string", "sequence": "int32", "latency_us": "double"}
"""A row for each datagram of each flow; ``latency_us``, the round trip, is null for what was
lost."""


class EchoPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="echo"):
    """For each flow ``count`` datagrams, one every ``interval_ns``."""

    MEASURES: ClassVar = LATENCIES

    interval_ns: int
    payload_bytes: int
    count: int

    def least_ns(self, network: Network, flow: Flow) -> int:
        """What the wire takes for a datagram and its reply; UDP's header is as long as ICMP's."""
        return theory.ping_rtt_ns(self.payload_bytes, network.speeds(*flow))

    def constants(self, network: Network) -> dict[str, float]:
        return {"analytic_ms": self.least_ns(network, self.flows[0]) / 1e6}

    @property
    def longest_ns(self) -> int:
        return self.count * self.interval_ns

    @property
    def phase_ns(self) -> int:
        return self.interval_ns

    def describe(self) -> str:
        return (
            f"echo, {self.count} datagrams of {self.payload_bytes} B every "
            f"{self.interval_ns / 1e6:g} ms"
        )


class Echo(FlowSpec, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="echo"):
    """What an experiment writes: a datagram every ``interval`` for the length of the trial."""

    interval: Duration
    payload: Size = Size(64)

    def check(self, where: str, network: Network) -> None:
        bounded(f"{where}.interval", self.interval, 10**6, 10**10, "1ms to 10s")
        most = network.mtu_bytes - theory.IP_HEADER_BYTES - theory.UDP_HEADER_BYTES
        bounded(f"{where}.payload", self.payload, LEAST_BYTES, most, f"{LEAST_BYTES}B to {most}B")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> EchoPlan:
        return EchoPlan(
            **common,
            interval_ns=int(self.interval),
            payload_bytes=int(self.payload),
            count=max(2, duration_ns // int(self.interval)),
        )


def output_name(plan: EchoPlan, flow: Flow) -> str:
    """The raw file of one flow."""
    return f"{plan.name}-{'-'.join(flow)}.echo.txt"


def launches(plan: EchoPlan, trial: Trial) -> Iterator[Launch]:
    """A server on each destination, then a client for each flow."""
    run = ("python3", "-c", SOURCE)
    for host in dict.fromkeys(destination for _, destination in plan.flows):
        server, output = (*run, "serve", str(plan.port)), f"{plan.name}-{host}.server.txt"
        yield Launch("serve", host, server, output, listens=("udp", plan.port), itself=False)
    for flow in plan.flows:
        numbers = (plan.port, plan.count, plan.interval_ns, plan.payload_bytes)
        client = (*run, "ask", trial.network.addresses[flow[1]], *map(str, numbers))
        longest_s = plan.longest_ns / 1e9 + LINGER_S
        yield Launch("probe", flow[0], client, output_name(plan, flow), longest_s=longest_s)


def columns(plan: EchoPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """The table of all flows; a flow is "h1>h3"."""
    rows = [
        (">".join(flow), number, latency_us)
        for flow in plan.flows
        for number, latency_us in enumerate(parse(read(output_name(plan, flow)), plan.count), 1)
    ]
    return transposed(rows, COLUMNS)


def parse(text: str, count: int) -> list[float | None]:
    """The round trips in us, None for what was lost; raise :class:`LostError` unless there are
    ``count``."""
    words = [line.split() for line in text.splitlines()]
    if [number for number, _ in words] != [str(number) for number in range(1, count + 1)]:
        raise LostError(f"it has {len(words)} lines, which are not those of {count} datagrams")
    latencies = [None if latency == "lost" else float(latency) for _, latency in words]
    if any(latency is not None and not math.isfinite(latency) for latency in latencies):
        raise LostError("it has round trips that are no numbers")
    return latencies


PROGRAM = Program(
    spec=Echo,
    plan=EchoPlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn_lossy.echo_measures:MEASURES",
)
