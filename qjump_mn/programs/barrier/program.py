"""barrier (native/barrier): processes on several hosts repeatedly wait for each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

import msgspec

from qjump_mn import theory
from qjump_mn.errors import LostError, UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration
from qjump_mn.programs.base import (
    LATENCIES,
    Flow,
    Program,
    Read,
    WorkloadPlan,
    WorkloadSpec,
    all_pairs,
    bounded,
    check_interval,
)
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.text import log, transposed

CONNECTING_NS = 10**9
"""Time for the processes to connect and agree on a start, through full buffers at 10 Mb/s
(measured: 0.5 s)."""

LEAST_INTERVAL_NS = 10**6
"""The shortest interval that one processor, running all processes, keeps in real time."""

MESSAGE_BYTES = 144
"""Bytes that timely 0.29 sends to each other process at a barrier (measured: 3 frames of 214 B,
without FCS, from each of four hosts)."""


class BarrierPlan(
    WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="barrier"
):
    """A process on each of ``hosts`` and ``count`` barriers, one every ``interval_ns``, or back to
    back if that is 0. ``flows`` are all ordered pairs of hosts."""

    MEASURES: ClassVar = LATENCIES | {"sent": "barriers", "received": "passed"}
    ONE_WAY: ClassVar = True

    hosts: tuple[str, ...]
    interval_ns: int
    count: int
    lasts_ns: int
    """The most that all barriers together may take."""
    connecting_ns: int = CONNECTING_NS

    def constants(self, network: Network) -> dict[str, float]:
        """Time of the last message over the longest path of an idle network, after its host has
        sent all others; without processing."""
        frame = theory.frame_bytes(theory.TCP_HEADERS_BYTES + MESSAGE_BYTES)
        others_ns = (len(self.hosts) - 2) * theory.occupancy_ns(frame, network.link.rate_bps)
        one_way_ns = max(theory.one_way_ns(frame, network.speeds(*flow)) for flow in self.flows)
        return {"analytic_ms": (others_ns + one_way_ns) / 1e6}

    def scaled(self, time_scale: int) -> Self:
        return msgspec.structs.replace(self, connecting_ns=CONNECTING_NS // time_scale)

    def check_real_time(self, where: str) -> None:
        if self.interval_ns:
            check_interval(self, where, self.interval_ns, LEAST_INTERVAL_NS)

    @property
    def longest_ns(self) -> int:
        return self.lasts_ns + self.connecting_ns

    @property
    def phase_ns(self) -> int:
        return self.interval_ns

    def describe(self) -> str:
        interval = f"one every {self.interval_ns / 1e6:g} ms, or " if self.interval_ns else ""
        return f"barrier among {', '.join(self.hosts)}, {interval}when the previous one has ended"


class Barrier(WorkloadSpec, frozen=True, forbid_unknown_fields=True, tag="barrier", kw_only=True):
    """A process on each of ``hosts``. All wait at a barrier every ``interval``, or after the
    previous barrier if that ends later. Without an interval there are ``count`` barriers back to
    back, in at most the trial's duration.

    A barrier's latency counts from when it was due; without an interval, from when the process
    arrived.
    """

    hosts: list[str]
    interval: Duration = Duration(0)
    count: int | None = None

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        return all_pairs(f"{where}.hosts", self.hosts, required=True)

    def check(self, where: str, network: Network) -> None:
        if (self.count is None) != bool(self.interval):
            raise UsageError(f"{where}: give either interval, or count for barriers back to back")
        if self.interval:
            bounded(f"{where}.interval", self.interval, 10**3, 10**10, "1us to 10s")
        else:
            bounded(f"{where}.count", self.count or 0, 2, 10**6, "2 to 1000000")

    def planned(
        self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int
    ) -> BarrierPlan:
        count = self.count or max(2, duration_ns // int(self.interval))
        return BarrierPlan(
            **common,
            hosts=tuple(self.hosts),
            interval_ns=int(self.interval),
            count=count,
            lasts_ns=count * int(self.interval) or duration_ns,
        )


COLUMNS = {
    "host": "string",
    "iteration": "int32",
    "due_ns": "int64",
    "start_ns": "int64",
    "latency_us": "double",
}
"""A row for each barrier and process. ``latency_us`` is the time from when the barrier was due
until the process had heard from all others.

It does not count from ``start_ns``, when the process arrived: after a slow barrier, overdue ones
follow at once, while the network is free. With a barrier due every 20 ms beside a job, one in five
took longer than 10 ms, but the median from ``start_ns`` was 1.7 ms.
"""


def shortest_frame(plan: BarrierPlan) -> int:
    """Length of the shortest frame that can tell one process of another's arrival.

    MESSAGE_BYTES is measured among four hosts. Among others it may be less, but no segment is
    shorter than an empty one.
    """
    return theory.frame_bytes(
        theory.TCP_HEADERS_BYTES + (MESSAGE_BYTES if len(plan.hosts) == 4 else 0)
    )


def output_name(plan: BarrierPlan, host: str) -> str:
    """The log of the process on ``host``."""
    return f"{plan.name}-{host}.barrier.txt"


def launches(plan: BarrierPlan, trial: Trial) -> Iterator[Launch]:
    """A process on each host; they wait for each other."""
    addresses = ",".join(f"{trial.network.addresses[host]}:{plan.port}" for host in plan.hosts)
    for process, host in enumerate(plan.hosts):
        argv = (
            "barrier",
            "--hosts",
            addresses,
            "--process",
            str(process),
            "--iterations",
            str(plan.count),
            "--interval",
            str(plan.interval_ns),
        )
        yield Launch("probe", host, argv, output_name(plan, host), longest_s=plan.longest_ns / 1e9)


def columns(plan: BarrierPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every barrier of every process."""
    rows: list[tuple[str, int, int, int, float]] = []
    for host in plan.hosts:
        process_log = log(read(output_name(plan, host)), "barrier")
        starts, ends = process_log.columns["start_ns"], process_log.columns["end_ns"]
        if len(starts) != plan.count:
            raise LostError(f"the process on {host} passed {len(starts)} of {plan.count} barriers")
        first_ns = int(process_log.end["first_due_ns"])
        planned_ns = [first_ns + number * plan.interval_ns for number in range(plan.count)]
        due = planned_ns if plan.interval_ns else starts
        rows += [
            (host, number, due[number], starts[number], (ends[number] - due[number]) / 1e3)
            for number in range(plan.count)
        ]
    return transposed(rows, COLUMNS)


PROGRAM = Program(
    spec=Barrier,
    plan=BarrierPlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.barrier.measures:MEASURES",
    simulated="qjump_mn.programs.barrier.simulated:SIMULATED",
)
