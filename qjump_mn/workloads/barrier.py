"""barrier: what each process measured of each barrier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import BarrierPlan
from qjump_mn.workloads.launch import Launch
from qjump_mn.workloads.text import log, transposed

COLUMNS = {"host": "string", "iteration": "int32", "due_ns": "int64", "start_ns": "int64", "latency_us": "double"}
"""A row for each barrier and process. ``latency_us`` is from when it was due until the process had heard from all others.

Not from ``start_ns``, when the process came: after a barrier that took long those that are overdue follow one upon the other, in the moment in
which the network is free. With one due every 20 ms, that made the median 1.7 ms beside a job with which one in five takes longer than 10 ms.
"""


def output_name(plan: BarrierPlan, host: str) -> str:
    """The log of the process on ``host``."""
    return f"{plan.name}-{host}.barrier.txt"


def launches(plan: BarrierPlan, trial: Trial) -> Iterator[Launch]:
    """A process on each host; they wait for each other."""
    meeting = ",".join(f"{trial.network.addresses[host]}:{plan.port}" for host in plan.hosts)
    for process, host in enumerate(plan.hosts):
        argv = ("barrier", "--hosts", meeting, "--process", str(process), "--iterations", str(plan.count), "--interval", str(plan.interval_ns))
        yield Launch("probe", host, argv, output_name(plan, host), longest_s=plan.longest_ns / 1e9)


def columns(plan: BarrierPlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """Every barrier of every process."""
    rows: list[tuple[str, int, int, int, float]] = []
    for host in plan.hosts:
        found = log(read(output_name(plan, host)), "barrier")
        starts, ends = found.columns["start_ns"], found.columns["end_ns"]
        if len(starts) != plan.count:
            raise LostError(f"the process on {host} has passed {len(starts)} of {plan.count} barriers")
        due = [int(found.end["first_due_ns"]) + number * plan.interval_ns for number in range(plan.count)]
        rows += [(host, number, due[number], starts[number], (ends[number] - due[number]) / 1e3) for number in range(plan.count)]
    return transposed(rows, COLUMNS)
