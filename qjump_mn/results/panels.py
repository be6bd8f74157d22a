"""What a panel of a figure shows of an arm; figures and the report's tables take it from here."""

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
    """A measure of the arm called ``arm``, or its ratio to another arm's, seed by seed, where the panel asks
    for one; None if there is none.

    The other may be a series: then it is that of its arms which has the same x.
    """
    workload, measure = entry.split(".")
    spread = _measured(arms, arm, workload, measure)
    if spread is None or workload not in panel.relative_to:
        return spread
    return spread.over(_measured(arms, _base(plan, panel.relative_to[workload], arm), workload, measure))


def series(plan: Plan, name: str) -> list[ArmPlan]:
    """The arms of a series, or the arm, that were run, by x."""
    return sorted(
        (arm for arm in plan.run.arms if name in (arm.series, arm.name)), key=lambda arm: arm.x or 0.0
    )


def compared(plan: Plan, panel: PanelSpec) -> list[str]:
    """The names of the panel's arms and series without those that the others are relative to."""
    return [name for name in panel.arms or plan.shown.figure.arms if name not in panel.relative_to.values()]


def point(arm: ArmPlan) -> str:
    """The value of its sweep that an arm of a series has, as the experiment writes it."""
    return arm.label.rpartition(", ")[2]


def has_names(arms: Iterable[ArmPlan]) -> bool:
    """Whether the arms' values of their sweep are names: places on an axis, and no numbers."""
    return any(arm.series and not re.fullmatch(NUMBER, point(arm)) for arm in arms)


def _base(plan: Plan, name: str, arm: str) -> str:
    x = next((one.x for one in plan.arms if one.name == arm), None)
    return next((one.name for one in plan.arms if one.series == name and one.x == x), name)


def _measured(arms: Mapping[str, ArmSummary], arm: str, workload: str, measure: str) -> Spread | None:
    return arms[arm].measures.get(workload, {}).get(measure) if arm in arms else None
