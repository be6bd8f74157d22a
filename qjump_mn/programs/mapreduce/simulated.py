"""mapreduce in the simulator: the job is one application."""

from __future__ import annotations

from collections.abc import Sequence

import qjump_sim
from qjump_mn.errors import UsageError
from qjump_mn.programs import counters
from qjump_mn.programs.mapreduce.program import MapReducePlan
from qjump_mn.programs.simulated_api import Apps, Rows, Simulated, Stage, level
from qjump_sim import apps


def _applications(plan: MapReducePlan, stage: Stage) -> Apps:
    """One job, on the given hosts or on all."""
    if plan.window_bytes is not None:
        raise UsageError(
            f"workloads.{plan.name}: a job in the simulator cannot have its own window: use "
            "another scheme, or leave window out"
        )
    job = apps.MapReduce(
        nodes=[stage.numbers[host] for host in plan.hosts] or range(len(stage.numbers)),
        maps=plan.maps,
        map_bytes=plan.map_bytes,
        reducers=plan.reducers,
        map_time=apps.Exponential(plan.map_mean_ns * qjump_sim.NS) if plan.map_mean_ns else 0,
        reduce_time=apps.Exponential(plan.reduce_mean_ns * qjump_sim.NS)
        if plan.reduce_mean_ns
        else 0,
        map_slots=plan.map_slots,
        parallel_copies=plan.parallel_copies,
        first=stage.began,
        level=level(plan),
    )
    return [job]


def _rows(
    plan: MapReducePlan,
    stage: Stage,
    results: Sequence[apps.MapReduceResult],
    outcome: qjump_sim.Outcome,
) -> Rows:
    """One row. Packets are those of the whole network, whoever sent them."""
    (job,) = results
    counts = outcome.counters
    shuffled = int(job.shuffled.max()) - job.first if (job.shuffled >= 0).all() else None
    by_kind = [sum(kind) for kind in zip(*(counts[fate] for fate in counters.DROPS), strict=True)]  # type: ignore[literal-required]
    dropped = qjump_sim.ByKind(*by_kind)
    packets = counts["latency"].packets + counts["latency_again"].packets
    latency = (counts["latency"].sum + counts["latency_again"].sum) / packets if packets else None
    sent, delivered = sum(counts["sent"]), counts["delivered"].data
    drops = (dropped.data, dropped.acks, dropped.syns + dropped.syn_acks)
    yield (
        job.runtime,
        shuffled,
        job.throughput,
        sent,
        latency,
        *drops,
        delivered,
        counts["marked"],
        counts["timeouts"],
    )


SIMULATED = Simulated(apps=_applications, rows=_rows)
