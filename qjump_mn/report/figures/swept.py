"""Collect the points of a sweep: a measure of a series at each value of the varied parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from qjump_mn.model.experiment import PanelSpec
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.results import formatting
from qjump_mn.results import panels as values
from qjump_mn.results.outcome import ArmSummary, Spread

from . import notes
from .behind import Behind

GAIN = 0.05
"""What more of the parameter must bring of the most that it ever brings, to be worth it."""


class Line(NamedTuple):
    """A measure of a series: its spread over the seeds at each x, ascending.

    An arm outside series is drawn level. The line is broken at ``gaps``, where arms ran without
    such a measure.
    """

    series: str
    measure: str
    label: str
    points: tuple[tuple[float, Spread], ...]
    gaps: tuple[float, ...] = ()


Panels = list[tuple[PanelSpec, list[Line]]]
"""The panels that have data, each with its lines."""


def lines_of(
    plan: Plan, panel: PanelSpec, arms: Sequence[ArmSummary], published: Behind | None
) -> list[Line]:
    """Return a panel's lines, series by series; a series without data has none."""
    by_name = {arm.name: arm for arm in arms}
    lines = []
    for series in panel.arms or plan.shown.figure.arms:
        members = values.series(plan, series)
        for entry in panel.measures:
            workload, measure = entry.split(".")
            points = points_of(plan, panel, members, by_name, entry, published)
            if points:
                told = label(plan, members[0], workload, measure, panel)
                ran = [arm for arm in members if arm.name in by_name]
                lines.append(Line(series, measure, told, points, _gaps(ran, points, published)))
    return lines


def _gaps(
    ran: list[ArmPlan], points: Sequence[tuple[float, Spread]], published: Behind | None
) -> tuple[float, ...]:
    """Return where arms of a series ran but have no point."""
    placed = {published.place(arm.x) if published else arm.x for arm in ran if arm.x is not None}
    return tuple(sorted(placed - {x for x, _ in points}))


def points_of(
    plan: Plan,
    panel: PanelSpec,
    members: list[ArmPlan],
    by_name: dict[str, ArmSummary],
    entry: str,
    published: Behind | None,
) -> tuple[tuple[float, Spread], ...]:
    """Return the measure ``entry`` of a series, by x; of a single arm at every x of the others."""
    points = []
    for arm in members:
        spread = values.value(plan, panel, entry, arm.name, by_name)
        if spread:
            xs = (
                [arm.x]
                if arm.x is not None
                else sorted({other.x for other in plan.run.arms if other.x is not None})
            )
            points += [(published.place(x) if published else x, spread) for x in xs]
    return tuple(sorted(points, key=lambda point: point[0]))


def label(plan: Plan, arm: ArmPlan, workload: str, measure: str, panel: PanelSpec) -> str:
    """Return what distinguishes a line in its panel: the series, the measure, or both."""
    series = formatting.series_label(arm) or arm.series or arm.name
    alone = (
        len({entry.split(".")[0] for entry in panel.measures} & {one.name for one in arm.workloads})
        == 1
    )
    if alone and len(_measures(panel)) == 1:
        return series
    heading = notes.heading(plan, f"{workload}.{measure}", named=not alone)
    return heading if len(plan.shown.figure.arms) == 1 else f"{series}: {heading}"


def _measures(panel: PanelSpec) -> set[str]:
    """Name a panel's measures, without workloads."""
    return {entry.split(".")[1] for entry in panel.measures}


def knee(panels: Panels) -> float | None:
    """Return the least x at which the first saturating line is within ``GAIN`` of its maximum; None
    if none is."""
    points = next((lines[0].points for panel, lines in panels if panel.saturates), ())
    most = max((spread.median for _, spread in points), default=0.0)
    return next((x for x, spread in points if spread.median >= (1 - GAIN) * most), None)


def seeds(panels: Panels) -> set[int]:
    """Return the seeds of all points."""
    return {
        seed
        for _, lines in panels
        for line in lines
        for _, spread in line.points
        for seed in spread.seeds
    }
