"""Look up the values that a figure's panel shows; figures and the report's tables share this."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from qjump_mn.model.axis import NUMBER
from qjump_mn.model.experiment import PanelSpec
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.results.outcome import ArmSummary, Spread


def value(
    plan: Plan, panel: PanelSpec, entry: str, arm: str, arms: Mapping[str, ArmSummary]
) -> Spread | None:
    """Return a measure of an arm, or its ratio to another arm's, seed by seed; None if missing.

    If the panel is relative to a series, the other arm is that of the series with the same x.
    """
    workload, measure = entry.split(".")
    spread = _measured(arms, arm, workload, measure)
    if spread is None or workload not in panel.relative_to:
        return spread
    return spread.over(
        _measured(arms, _base(plan, panel.relative_to[workload], arm), workload, measure)
    )


def series(plan: Plan, name: str) -> list[ArmPlan]:
    """Return the arms of a series, ordered by x, or the one arm of that name."""
    return sorted(
        (arm for arm in plan.run.arms if name in (arm.series, arm.name)),
        key=lambda arm: arm.x or 0.0,
    )


def compared(plan: Plan, panel: PanelSpec) -> list[str]:
    """Return the panel's arms and series without the baselines that others are relative to."""
    return [
        name
        for name in panel.arms or plan.shown.figure.arms
        if name not in panel.relative_to.values()
    ]


def point(arm: ArmPlan) -> str:
    """Return an arm's value of the sweep, as the experiment writes it."""
    return arm.label.rpartition(", ")[2]


def has_names(arms: Iterable[ArmPlan]) -> bool:
    """Whether the sweep's values are names rather than numbers."""
    return any(arm.series and not re.fullmatch(NUMBER, point(arm)) for arm in arms)


def _base(plan: Plan, name: str, arm: str) -> str:
    x = next((each.x for each in plan.arms if each.name == arm), None)
    return next((each.name for each in plan.arms if each.series == name and each.x == x), name)


def _measured(
    arms: Mapping[str, ArmSummary], arm: str, workload: str, measure: str
) -> Spread | None:
    return arms[arm].measures.get(workload, {}).get(measure) if arm in arms else None
