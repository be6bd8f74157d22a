"""collective in the simulator: the job is one application."""

from __future__ import annotations

from collections.abc import Sequence

import qjump_sim
from qjump_mn.errors import UsageError
from qjump_mn.programs.collective.program import CollectivePlan
from qjump_mn.programs.simulated_api import Apps, Rows, Simulated, Stage, level, segments_bytes, us
from qjump_sim import apps

MAX_ITERATIONS = 2**29 - 1
"""The most that the simulator counts."""


def _applications(plan: CollectivePlan, stage: Stage) -> Apps:
    """One job, on the given hosts or on all, from the beginning on."""
    if plan.window_bytes is not None:
        raise UsageError(
            f"workloads.{plan.name}: a job in the simulator cannot have its own window: use "
            "another scheme, or leave window out"
        )
    hosts = [stage.numbers[host] for host in plan.hosts] or range(len(stage.numbers))
    mtu_bytes, ranks = stage.trial.network.mtu_bytes, len(hosts)
    message = segments_bytes(plan.message_bytes(ranks), mtu_bytes)
    pattern: apps.RingAllReduce | apps.TreeAllReduce | apps.AllToAll | apps.Goal
    match plan.pattern:
        case "ring":
            pattern = apps.RingAllReduce(ranks * message)
        case "tree":
            pattern = apps.TreeAllReduce(message)
        case "goal":
            pattern = _operations(plan)
        case _:
            pattern = apps.AllToAll(message)
    job = apps.Collective(
        hosts,
        pattern,
        iterations=_most(plan, stage),
        pause=plan.pause_ns * qjump_sim.NS,
        level=level(plan),
        until=stage.ended,
    )
    return [job]


def _operations(plan: CollectivePlan) -> apps.Goal:
    try:
        return apps.Goal.parse(f"workloads.{plan.name}.goal", plan.goal or "")
    except ValueError as error:
        raise UsageError(str(error)) from None


def _most(plan: CollectivePlan, stage: Stage) -> int:
    """More iterations than fit the trial: each takes more than its pause, and than 1 us."""
    least = max(qjump_sim.US, plan.pause_ns * qjump_sim.NS)
    return min(MAX_ITERATIONS, 1 + stage.ended // least)


def _rows(
    plan: CollectivePlan,
    stage: Stage,
    results: Sequence[apps.CollectiveResult],
    outcome: qjump_sim.Outcome,
) -> Rows:
    """A row for each iteration."""
    (result,) = results
    for iteration, (start, latency) in enumerate(
        zip(result.start.tolist(), result.latency.tolist(), strict=True)
    ):
        yield iteration, start // qjump_sim.NS, us(latency, 0)


SIMULATED = Simulated(apps=_applications, rows=_rows)
