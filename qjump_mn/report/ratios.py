"""List the ratios between arms in the panels of a figure, with a row for each value of a sweep."""

from __future__ import annotations

from typing import NamedTuple

from qjump_mn.model.experiment import PanelSpec
from qjump_mn.model.plan import Plan
from qjump_mn.results import formatting, panels
from qjump_mn.results.outcome import ArmSummary, Outcome


class Table(NamedTuple):
    """A panel: its quantity, its lines, and their values for each value of the sweep."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(plan: Plan, outcome: Outcome) -> list[Table]:
    """Return a table for each panel with ratios and data."""
    arms = {arm.name: arm for arm in outcome.arms if arm.done}
    return [
        table
        for panel in plan.shown.figure.panels
        if panel.relative_to and (table := _table(plan, panel, arms)).rows
    ]


def _table(plan: Plan, panel: PanelSpec, arms: dict[str, ArmSummary]) -> Table:
    series = [panels.series(plan, name) for name in panels.compared(plan, panel)]
    lines = [
        (members, entry)
        for members in series
        for entry in panel.measures
        if any(arm.series and arm.name in arms for arm in members)
    ]
    points = {
        arm.x: panels.point(arm) for members, _ in lines for arm in members if arm.x is not None
    }
    rows = []
    for x in sorted(points):
        cells = [
            next(
                (panels.value(plan, panel, entry, arm.name, arms) for arm in members if arm.x == x),
                None,
            )
            for members, entry in lines
        ]
        if any(cells):
            rows.append((points[x], *map(formatting.shown, cells)))
    labels = formatting.series_labels(plan)
    base = " and ".join(dict.fromkeys(labels[name] for name in panel.relative_to.values()))
    title = ": ".join(filter(None, [panel.title, f"{panel.label}, relative to {base}"]))
    return Table(
        title, tuple(formatting.series_label(members[0]) for members, _ in lines), tuple(rows)
    )
