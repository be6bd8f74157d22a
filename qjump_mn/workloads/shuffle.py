"""shuffle: a MapReduce job's copies, each with its time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import ShufflePlan
from qjump_mn.workloads.launch import Launch
from qjump_mn.workloads.text import log, transposed

COLUMNS = {"round": "int32", "step": "string", "source": "string", "destination": "string", "bytes": "int64", "start_ns": "int64", "end_ns": "int64"}
"""A row for each copy, and one of step "round" for each whole round, whose source and destination are the master."""

STEPS = ("distribute", "shuffle", "aggregate", "round")
ROUND_S = 60.0
"""How long the round may take that is under way when no other is to begin."""


def output_name(plan: ShufflePlan) -> str:
    """The master's log."""
    return f"{plan.name}-{plan.master}.shuffle.txt"


def launches(plan: ShufflePlan, trial: Trial) -> Iterator[Launch]:
    """The workers, and the master, which goes on for as long as anything is measured."""
    for host in plan.workers:
        worker = ("shuffle", "worker", "--listen", str(plan.port))
        yield Launch("serve", host, worker, f"{plan.name}-{host}.worker.txt", listens=("tcp", plan.port), itself=False)
    addresses = ",".join(f"{trial.network.addresses[host]}:{plan.port}" for host in plan.workers)
    master = (
        *("shuffle", "master", "--workers", addresses, "--duration", str(trial.background_s * 10**9)),
        *("--distribute", str(plan.distribute_bytes), "--shuffle", str(plan.shuffle_bytes), "--aggregate", str(plan.aggregate_bytes)),
        *("--parallel", str(plan.parallel), "--map", str(plan.map_ns), "--jitter", f"{plan.jitter:g}", "--seed", str(trial.seed)),
    )
    yield Launch("load", plan.master, master, output_name(plan), longest_s=trial.background_s + ROUND_S)


def columns(plan: ShufflePlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """Every copy of every round."""
    found = log(read(output_name(plan)), "shuffle").columns
    if not found["round"]:
        raise LostError("shuffle's log has no rows: nothing was copied")
    nodes = (plan.master, *plan.workers)
    rows = (
        (number, STEPS[step], nodes[source], nodes[destination], size, start, end)
        for number, step, source, destination, size, start, end in zip(*(found[name] for name in COLUMNS), strict=True)
    )
    return transposed(rows, COLUMNS)
