"""Your own program: it sends UDP datagrams, which the other host returns, and measures their
latency.

Spec are the settings in an experiment, and Plan is what they mean in numbers. launches lists the
processes on the hosts, and table parses their output. This file is imported whenever a plan is
made: use only the standard library, msgspec and these modules of qjump-mn. More is in
docs/programs.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration
from qjump_mn.programs.base import LATENCIES, FlowSpec, Program, Read, WorkloadPlan, bounded
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.text import transposed

NAME = __name__.split(".")[-2]
"""The name of this folder, which experiments write as program = "NAME"."""

# The program for the hosts. They get its text, as they have Python but not this folder.
SOURCE = Path(__file__).with_name("hosts.py").read_text(encoding="utf-8")

PAYLOAD_BYTES = 64
LAST_S = 1.0
"""How long hosts.py waits for the last answers."""

# A row for each datagram of each flow. latency_us is null for one that did not come back.
COLUMNS = {"flow": "string", "sequence": "int32", "latency_us": "double"}


class Plan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag=NAME):
    """The settings in numbers: ``count`` datagrams a flow, one every ``interval_ns``."""

    # The measures for claims and tables, each with its heading: here the usual ones of latencies.
    MEASURES: ClassVar = LATENCIES

    interval_ns: int
    count: int

    # Optional, as are others: docs/programs.md lists them.
    @property
    def longest_ns(self) -> int:
        return self.count * self.interval_ns

    @property
    def phase_ns(self) -> int:
        # The seed delays the first datagram by a part of this.
        return self.interval_ns

    def packets(self, trial: Trial) -> float:
        # For the estimate of the simulator's time: each datagram goes there and back.
        return 2 * len(self.flows) * self.count

    def describe(self) -> str:
        return f"{NAME}, {self.count} datagrams, one every {self.interval_ns / 1e6:g} ms"


class Spec(FlowSpec, frozen=True, forbid_unknown_fields=True, kw_only=True, tag=NAME):
    """The settings in an experiment: a datagram every ``interval``, as long as the trial takes."""

    interval: Duration = Duration(10_000_000)

    def check(self, where: str, network: Network) -> None:
        bounded(f"{where}.interval", self.interval, 10**6, 10**10, "1ms to 10s")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> Plan:
        interval_ns = int(self.interval)
        return Plan(**common, interval_ns=interval_ns, count=max(2, duration_ns // interval_ns))


def launches(plan: Plan, trial: Trial) -> Iterator[Launch]:
    """Yield an answering process for each destination, then an asking one for each flow."""
    run = ("python3", "-c", SOURCE)
    for host in dict.fromkeys(destination for _, destination in plan.flows):
        answer = (*run, "answer", str(plan.port))
        yield Launch(
            "serve",
            host,
            answer,
            f"{plan.name}-{host}.txt",
            listens=("udp", plan.port),
            itself=False,
        )
    for source, destination in plan.flows:
        numbers = (plan.port, plan.count, plan.interval_ns, PAYLOAD_BYTES)
        ask = (*run, "ask", trial.network.addresses[destination], *map(str, numbers))
        longest_s = plan.longest_ns / 1e9 + LAST_S
        yield Launch("probe", source, ask, _output(plan, source, destination), longest_s=longest_s)


def table(plan: Plan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Parse the output of the processes into columns; raise LostError if it is incomplete."""
    rows: list[tuple[str, int, float | None]] = []
    for source, destination in plan.flows:
        lines = [line.split() for line in read(_output(plan, source, destination)).splitlines()]
        if len(lines) != plan.count:
            raise LostError(f"it has {len(lines)} lines, and {plan.count} datagrams were sent")
        rows += [
            (f"{source}>{destination}", int(number), None if latency == "lost" else float(latency))
            for number, latency in lines
        ]
    return transposed(rows, COLUMNS)


def least_us(plan: Plan, network: Network) -> dict[str, float]:
    """Return the round-trip time of the links alone, by flow, in us.

    A datagram is as long as a ping with the same payload.
    """
    return {
        ">".join(flow): theory.ping_rtt_ns(PAYLOAD_BYTES, network.speeds(*flow)) / 1e3
        for flow in plan.flows
    }


def _output(plan: Plan, source: str, destination: str) -> str:
    """Return the name of the file with a process's output."""
    return f"{plan.name}-{source}-{destination}.txt"


PROGRAM = Program(
    spec=Spec,
    plan=Plan,
    columns=COLUMNS,
    launches=launches,
    table=table,
    measures=f"{__package__}.measures:MEASURES",
    simulated=f"{__package__}.simulated:SIMULATED",  # leave this out if the simulator cannot run it
)
