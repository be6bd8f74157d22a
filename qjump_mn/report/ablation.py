"""List how each arm differs from the most similar arm before it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from qjump_mn import theory
from qjump_mn.model.clock import ClockPlan
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.model.units import Duration, told_rate
from qjump_mn.model.workload import WorkloadPlan
from qjump_mn.results import formatting, result_tables
from qjump_mn.results.outcome import Outcome

MOST_LETTERS = 40
"""Of a value."""

_NOT_TOLD = {"name", "label", "flows", "port"}
_LEVELS = {"level", "reply_level"}

Settings = dict[str, Any]


class Step(NamedTuple):
    """An arm, the arm it is compared with, what differs between them, and a measure in both."""

    arm: str
    beside: str
    otherwise: str
    there: str
    here: str


def heads(plan: Plan) -> list[str]:
    """Return the column headings of :func:`steps`."""
    measure = result_tables.heads(plan)[0]
    return ["arm", "compared with", "what it has otherwise", f"{measure}: there", "here"]


def steps(plan: Plan, outcome: Outcome) -> list[Step]:
    """Return a step for every arm that was run, but the first; the arms of a series count as
    one."""
    firsts: dict[str, ArmPlan] = {}
    values: dict[str, list[float]] = {}
    for arm in plan.run.arms:
        firsts.setdefault(arm.series or arm.name, arm)
        values.setdefault(arm.series or arm.name, []).append(arm.x or 0.0)
    labels = {name: _label(arm, values[name]) for name, arm in firsts.items()}
    alike = Counter(labels.values())
    labels = {
        name: f"{label}, {name}" if alike[label] > 1 else label for name, label in labels.items()
    }
    names, found = list(firsts), []
    for place, name in enumerate(names[1:], 1):
        differences = {
            other: list(_between(plan, firsts[other], firsts[name])) for other in names[:place]
        }
        near = min(differences, key=lambda other: len(differences[other]))
        cells = [_first(plan, outcome, firsts[one]) for one in (near, name)]
        told = "; ".join(differences[near]) or "nothing but its name"
        found.append(Step(labels[name], labels[near], told, *cells))
    return found


def _label(arm: ArmPlan, values: list[float]) -> str:
    if not arm.series or len(values) < 2:
        return arm.label
    return (
        f"{formatting.series_label(arm)} ({len(values)} values, {min(values):g} to {max(values):g})"
    )


def _first(plan: Plan, outcome: Outcome, arm: ArmPlan) -> str:
    """Return the first column of the table of arms; empty for a series, which has many."""
    measured = outcome.arm(arm.name)
    return (
        formatting.NONE if arm.series or measured is None else result_tables.row(plan, measured)[0]
    )


def _between(plan: Plan, first: ArmPlan, other: ArmPlan) -> Iterator[str]:
    """Return in words how ``other`` differs."""
    if first.scheme != other.scheme:
        before, now = (plan.shown.schemes[arm.scheme.name].label for arm in (first, other))
        yield f"scheme '{now}' instead of '{before}'" if before != now else "settings of its scheme"
    yield from _limiter(first, other)
    if first.uses_levels != other.uses_levels:
        yield "levels" if other.uses_levels else "no levels"
    yield from _workloads(first, other)
    links, trunks = (list(_fields("", *sides)) for sides in _sides(first, other))
    yield from (f"links' {told}" for told in links)
    yield from (f"{told} between switches" for told in trunks if told not in links)
    yield from _fields("TCP's ", *(msgspec.to_builtins(arm.tcp) for arm in (first, other)))
    yield from _fields(
        "hosts' ", *(msgspec.to_builtins(arm.clock or ClockPlan()) for arm in (first, other))
    )
    if first.network.topology != other.network.topology:
        yield f"topology {other.network.topology} instead of {first.network.topology}"


def _sides(first: ArmPlan, other: ArmPlan) -> Iterator[tuple[Settings, Settings]]:
    """Return both arms' links of hosts, and those between switches."""
    for what in ("link", "trunk"):
        before, now = (msgspec.to_builtins(getattr(arm.network, what)) for arm in (first, other))
        yield before, now


def _workloads(first: ArmPlan, other: ArmPlan) -> Iterator[str]:
    before, now = (
        {workload.name: workload for workload in arm.workloads} for arm in (first, other)
    )
    yield from (f"with {name}" for name in now if name not in before)
    yield from (f"without {name}" for name in before if name not in now)
    left_out = _NOT_TOLD | (_LEVELS if first.uses_levels != other.uses_levels else set())
    for name in (name for name in now if name in before):
        if before[name].flows != now[name].flows:
            yield f"other flows of {name}"
        yield from _fields(
            f"{name}'s ", _settings(before[name], left_out), _settings(now[name], left_out)
        )


def _limiter(first: ArmPlan, other: ArmPlan) -> Iterator[str]:
    if first.qjump is None or other.qjump is None:
        if first.qjump is not other.qjump:
            yield "with a limiter" if other.qjump else "without a limiter"
        return
    before, now = (msgspec.to_builtins(arm.qjump) for arm in (first, other))
    budgets = before.pop("budget_bytes"), now.pop("budget_bytes")
    yield from _fields("limiter's ", before, now)
    changed = [level for level in reversed(theory.LEVELS) if budgets[0][level] != budgets[1][level]]
    if len(changed) == 1:
        old, new = (budget[changed[0]] for budget in budgets)
        yield f"limiter's budget of level {changed[0]} {new} B instead of {old} B"
    elif changed:
        yield f"limiter's budgets of levels {', '.join(map(str, changed))}"


def _settings(workload: WorkloadPlan, left_out: set[str]) -> Settings:
    return {
        key: value for key, value in msgspec.to_builtins(workload).items() if key not in left_out
    }


def _fields(whose: str, first: Settings, other: Settings) -> Iterator[str]:
    for key in dict.fromkeys([*first, *other]):
        if first.get(key) != other.get(key):
            before, now = (_shown(key, side.get(key)) for side in (first, other))
            name = re.sub(r"_(ns|bytes|bps)$", "", key).replace("_", " ")
            yield f"{whose}{name} {now} instead of {before}"


def _shown(key: str, value: Any) -> str:
    """Format a value by the unit that its name ends with."""
    if value is None or value in ([], {}, ""):
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        units = {
            "ns": lambda: str(Duration(value)),
            "bytes": lambda: f"{value} B",
            "bps": lambda: told_rate(value),
        }
        return units.get(key.rpartition("_")[2], lambda: str(value))()
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
