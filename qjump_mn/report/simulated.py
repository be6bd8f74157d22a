"""Describe a simulated run: the settings of each scheme, and the fate of each arm's packets."""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

import msgspec

from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.programs import counters
from qjump_mn.programs.counters import DROPS, Counters
from qjump_mn.results.directory import RunDirectory


class Packets(NamedTuple):
    """A table: columns, and a row of medians for each arm with data."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def schemes(run: RunDirectory, plan: Plan) -> list[tuple[str, list[str]]]:
    """Return the label of each simulated scheme, with a line for each of its parts in
    ``qjump_sim``."""
    parts_of: dict[str, list[str]] = {}
    for trial in plan.unperturbed.trials():
        path = run.asbuilt(trial.name) / "scenario.json"
        label = plan.shown.schemes[trial.arm.scheme.name].label
        if label not in parts_of and run.is_done(trial.name) and path.is_file():
            parts_of[label] = [
                _line(name, part)
                for name, part in msgspec.json.decode(path.read_bytes())["scheme"].items()
            ]
    return list(parts_of.items())


def packets(run: RunDirectory, plan: Plan) -> Packets:
    """Count each arm's packets, sent and lost by kind and reason; columns of zeros are left out."""
    counted = {arm.name: found for arm in plan.run.arms if (found := _counters(run, plan, arm))}
    columns: dict[str, dict[str, float]] = {}
    for arm, trials in counted.items():
        columns.setdefault("sent", {})[arm] = _median(trials, "sent")
        for fate, reason in DROPS.items():
            dropped = trials[0][fate]
            for kind in dropped if isinstance(dropped, dict) else ():
                columns.setdefault(f"{kind}: {reason}", {})[arm] = _median(trials, fate, kind)
        for name in ("marked", "retransmitted", "timeouts"):
            columns.setdefault(name, {})[arm] = _median(trials, name)
    shown = {head: values for head, values in columns.items() if any(values.values())}
    labels = {arm.name: f"{arm.label} ({arm.name})" for arm in plan.run.arms}
    rows = tuple(
        (labels[arm], *(f"{values.get(arm, 0):.0f}" for values in shown.values()))
        for arm in counted
    )
    return Packets(tuple(shown), rows)


def _counters(run: RunDirectory, plan: Plan, arm: ArmPlan) -> list[Counters]:
    trials = plan.unperturbed.trials()
    folders = [
        run.raw(trial.name) for trial in trials if trial.arm == arm and run.is_done(trial.name)
    ]
    return [counters.read(folder) for folder in folders if (folder / counters.NAME).is_file()]


def _median(trials: list[Counters], name: str, kind: str = "") -> float:
    counts = [one[name] for one in trials]
    return float(
        statistics.median(
            count[kind] if kind and isinstance(count, dict) else counters.total(count)
            for count in counts
        )
    )


def _line(name: str, part: Any) -> str:
    if not isinstance(part, dict):
        return f"{name}: {part}"
    rest = {
        key: value for key, value in part.items() if key != "kind" and not isinstance(value, dict)
    }
    return f"{name}: {part['kind']}" + "".join(f", {key} {value}" for key, value in rest.items())
