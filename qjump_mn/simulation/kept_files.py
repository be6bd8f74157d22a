"""Simulate a trial and return the content of its files: the same bytes on every machine."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

import qjump_sim
from qjump_mn.errors import UsageError
from qjump_mn.model import filenames
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.programs import counters, registry, simulated_text
from qjump_mn.results import series
from qjump_mn.simulation import recording, sampling
from qjump_mn.simulation.scenario import Staged


def check(plan: Plan) -> None:
    """Raise :class:`UsageError` if the simulator cannot run a trial. Each trial is only started."""
    for trial in plan.trials()[: len(plan.run.arms)]:  # other seeds give the same answer
        staged = Staged(trial)
        _run(dataclasses.replace(staged.scenario, stop=0), trial)
        recording.check(staged)


def simulate(
    trial: Trial, progress: Callable[[qjump_sim.Progress], None] | None = None
) -> dict[str, bytes]:
    """Simulate a trial and return its files by their paths in its folder. ``progress`` is called
    twice a second. Raise :class:`UsageError` like :func:`check`.
    """
    staged = Staged(trial)
    scenario = staged.scenario
    outcome = _run(scenario, trial, sampling.watch(trial.network, staged.end), progress)
    counted = {
        key: value._asdict() if isinstance(value, tuple) else value  # type: ignore[attr-defined]
        for key, value in outcome.counters.items()
        if key != counters.FAILED or any(outcome.counters["failed"])
    }
    facts = {
        "cpu_busy": 0.0,
        "window_s": staged.window_s(outcome),
        "began_ns": staged.began_ns,
        "began_utc_ns": staged.began_ns,
    }
    return {
        **{
            f"raw/{simulated_text.output_name(plan.name)}": simulated_text.text(
                registry.of(plan).columns, rows
            ).encode()
            for plan, rows in staged.tables(outcome)
        },
        f"raw/{counters.NAME}": _json({**counted, "end_ps": outcome.end}),
        **(
            {}
            if outcome.series is None
            else {
                series.NAME: msgspec.json.encode(sampling.series(trial.network, outcome.series))
                + b"\n"
            }
        ),
        **({filenames.FRAMES: recording.record(staged, outcome)} if trial.watch else {}),
        "asbuilt/scenario.json": _json({**_described(scenario), "seed": scenario.seed}),
        "trial.json": _json({"trial": trial, **facts}),
    }


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=1) + b"\n"


def _described(scenario: qjump_sim.Scenario) -> dict[str, object]:
    """Return all settings of a scenario except its network, which the trial has; each part with its
    kind.
    """
    scheme = scenario.scheme
    assert isinstance(scheme, qjump_sim.Scheme)
    parts = {
        "queue": scheme.queue,
        "host_queue": scheme.host_queue,
        "pause": scheme.pause,
        "shared_buffer": scheme.shared_buffer,
        "transport": scheme.transport,
        "congestion": scheme.transport.congestion,
        "limiter": scheme.limiter,
    }
    described = {
        name: {"kind": type(part).__name__, **dataclasses.asdict(part, dict_factory=_with_units)}
        for name, part in parts.items()
        if part is not None
    }
    return {"scheme": {**described, "routing": scheme.routing, "levels": scheme.levels}}


def _with_units(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """Write a limit in time as {"ps": …}, to distinguish it from one in bytes; and the hash of a
    law, whose code the trial has."""
    return {name: _described_value(value) for name, value in items}


def _described_value(value: Any) -> Any:
    if isinstance(value, qjump_sim.Time):
        return {"ps": int(value)}
    if isinstance(value, bytes):
        return {"sha256": hashlib.sha256(value).hexdigest()}
    return value


def _run(
    scenario: qjump_sim.Scenario,
    trial: Trial,
    watch: qjump_sim.Watch | None = None,
    progress: Callable[[qjump_sim.Progress], None] | None = None,
) -> qjump_sim.Outcome:
    try:
        return qjump_sim.run(scenario, watch=watch, progress=progress)
    except ValueError as error:
        raise UsageError(f"arms.{trial.arm.name}: {error}") from None
