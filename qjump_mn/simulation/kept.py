"""A trial simulated, and the files that are kept of it: the same bytes on every machine."""

from __future__ import annotations

import dataclasses

import msgspec

import qjump_sim
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.simulation.scenario import numbered, scenario
from qjump_mn.workloads import flows, simulated

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
    names = numbered(trial.network)
    columns = (column.tolist() for column in (outcome.start, outcome.finish, outcome.src, outcome.dst, outcome.packets))
    rows = (
        (names[source], names[destination], packets, start, None if finish < 0 else finish)
        for start, finish, source, destination, packets in zip(*columns, strict=True)
    )
    counters = {key: value._asdict() if isinstance(value, qjump_sim.ByKind) else value for key, value in outcome.counters.items()}
    facts = {"cpu_busy": 0.0, "window_s": (0.0, outcome.end / qjump_sim.S), "began_ns": 0, "began_utc_ns": 0}
    return {
        f"raw/{simulated.output_name(workload.name)}": simulated.text(flows.COLUMNS, rows).encode(),
        COUNTERS: msgspec.json.format(msgspec.json.encode({**counters, "end_ps": outcome.end}, order="sorted"), indent=1) + b"\n",
        "asbuilt/scenario.json": msgspec.json.format(msgspec.json.encode({**_told(asked), "seed": asked.seed}, order="sorted"), indent=1) + b"\n",
        "trial.json": msgspec.json.format(msgspec.json.encode({"trial": trial, **facts}, order="sorted"), indent=1) + b"\n",
    }


def _told(asked: qjump_sim.Scenario) -> dict[str, object]:
    """Everything of a scenario but its network, which the trial has, with the kind of what has several."""
    scheme = asked.scheme
    assert isinstance(scheme, qjump_sim.Scheme)
    parts = {"queue": scheme.queue, "transport": scheme.transport, "limiter": scheme.limiter, "congestion": scheme.transport.congestion}
    told = {name: {"kind": type(part).__name__, **dataclasses.asdict(part)} for name, part in parts.items() if part is not None}
    return {"scheme": {**told, "routing": scheme.routing, "levels": scheme.levels}}


def _run(asked: qjump_sim.Scenario, trial: Trial) -> qjump_sim.Outcome:
    try:
        return qjump_sim.run(asked)
    except ValueError as error:
        raise UsageError(f"arms.{trial.arm.name}: {error}") from None
