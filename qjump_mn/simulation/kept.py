"""A trial simulated, and the files that are kept of it: the same bytes on every machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

import qjump_sim
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.model.programs import FlowsPlan
from qjump_mn.simulation.scenario import numbered, scenario
from qjump_mn.workloads import flows, mapreduce, simulated
from qjump_sim import apps

COUNTERS = "raw/counters.json"


def check(plan: Plan) -> None:
    """Raise :class:`UsageError` for a trial that the simulator cannot run; none is run for longer than its first instant."""
    for trial in plan.trials()[: len(plan.arms_run)]:  # another seed changes nothing of that
        _run(dataclasses.replace(scenario(trial), stop=0), trial)


def simulate(trial: Trial) -> dict[str, bytes]:
    """What is kept of a trial, by the path in its folder; raise :class:`UsageError` as :func:`check` does."""
    asked = scenario(trial)
    outcome = _run(asked, trial)
    (workload,) = trial.arm.workloads
    if isinstance(workload, FlowsPlan):
        text = simulated.text(flows.COLUMNS, _flows(outcome, numbered(trial.network)))
    else:
        text = simulated.text(mapreduce.COLUMNS, [_job(outcome)])
    counters = {key: value._asdict() if isinstance(value, tuple) else value for key, value in outcome.counters.items()}  # type: ignore[attr-defined]
    facts = {"cpu_busy": 0.0, "window_s": (0.0, outcome.end / qjump_sim.S), "began_ns": 0, "began_utc_ns": 0}
    return {
        f"raw/{simulated.output_name(workload.name)}": text.encode(),
        COUNTERS: _json({**counters, "end_ps": outcome.end}),
        "asbuilt/scenario.json": _json({**_told(asked), "seed": asked.seed}),
        "trial.json": _json({"trial": trial, **facts}),
    }


def _flows(outcome: qjump_sim.Outcome, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    columns = (column.tolist() for column in (outcome.start, outcome.finish, outcome.src, outcome.dst, outcome.packets))
    for start, finish, source, destination, packets in zip(*columns, strict=True):
        yield names[source], names[destination], packets, start, None if finish < 0 else finish


def _job(outcome: qjump_sim.Outcome) -> tuple[Any, ...]:
    """The one row of a job's table, in the order of its columns."""
    (job,) = outcome.apps
    assert isinstance(job, apps.MapReduceResult)
    counted = outcome.counters
    shuffled = int(job.shuffled.max()) - job.first if (job.shuffled >= 0).all() else None
    lost = [sum(dropped) for dropped in zip(*(counted[fate] for fate in ("full", "pushed_out", "early", "limited")), strict=True)]
    dropped = qjump_sim.ByKind(*lost)
    packets = counted["latency"].packets + counted["latency_again"].packets
    latency = (counted["latency"].sum + counted["latency_again"].sum) / packets if packets else None
    sent, delivered = sum(counted["sent"]), counted["delivered"].data
    drops = (dropped.data, dropped.acks, dropped.syns + dropped.syn_acks)
    return (job.runtime, shuffled, job.throughput, sent, latency, *drops, delivered, counted["marked"], counted["timeouts"])


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=1) + b"\n"


def _told(asked: qjump_sim.Scenario) -> dict[str, object]:
    """Everything of a scenario but its network, which the trial has, with the kind of what has several."""
    scheme = asked.scheme
    assert isinstance(scheme, qjump_sim.Scheme)
    parts = {
        "queue": scheme.queue,
        "host_queue": scheme.host_queue,
        "pause": scheme.pause,
        "transport": scheme.transport,
        "congestion": scheme.transport.congestion,
        "limiter": scheme.limiter,
    }
    told = {name: {"kind": type(part).__name__, **dataclasses.asdict(part)} for name, part in parts.items() if part is not None}
    return {"scheme": {**told, "routing": scheme.routing, "levels": scheme.levels}}


def _run(asked: qjump_sim.Scenario, trial: Trial) -> qjump_sim.Outcome:
    try:
        return qjump_sim.run(asked)
    except ValueError as error:
        raise UsageError(f"arms.{trial.arm.name}: {error}") from None
