"""Draw measures relative to another arm's, with a row for each variation of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.axes
import matplotlib.figure

from qjump_mn.model.experiment import PanelSpec
from qjump_mn.model.plan import Plan
from qjump_mn.results import formatting
from qjump_mn.results import panels as values
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary

from . import notes, numbers, shapes, style
from .shapes import RIGHT
from .style import Figure

ROW_INCHES = 0.2
LEFT = 0.25
"""Where panels begin, in widths of the figure: rows have names."""


def draw(run: RunDirectory, manifest: Manifest, arms: Sequence[ArmSummary]) -> list[Figure]:
    """Draw the experiment's figure; nothing without data."""
    plan = manifest.plan
    by_name = {arm.name: arm for arm in arms if arm.done}
    names = {
        arm.x: values.point(arm)
        for arm in plan.run.arms
        if arm.x is not None and arm.name in by_name
    }
    rows = {x: place for place, x in enumerate(sorted(names))}
    if not rows or not plan.shown.figure.panels:
        return []
    with style.applied():
        figure, labels = _drawn(plan, by_name, rows, [names[x] for x in rows])
        seeds = notes.seeds(by_name.values())
        scale = f"{notes.scale(manifest, plan.run.arms)}; {notes.replicates(seeds)}"
        notes.footer(figure, manifest, scale)
    panel_texts = "; ".join(
        f"{' '.join(filter(None, [panel.title, panel.label]))}{notes.against(plan, panel)}"
        for panel in plan.shown.figure.panels
    )
    spread = notes.spans("lines span", seeds)
    return [
        Figure(
            plan.shown.figure.plot,
            plan.shown.title,
            f"{panel_texts}, for {', '.join(labels)}, preset {plan.shown.preset}: {scale}.{spread}",
            figure,
            numbers.of_panels(plan, arms),
        )
    ]


def _drawn(
    plan: Plan, arms: Mapping[str, ArmSummary], rows: Mapping[float, int], names: Sequence[str]
) -> tuple[matplotlib.figure.Figure, list[str]]:
    """Return the figure without footer, and its lines' labels."""
    inches = ROW_INCHES * len(rows) + 1.65
    figure = shapes.figure(inches)
    ends = {"top": 1 - 0.5 / inches, "bottom": 0.9 / inches}
    grid = figure.add_gridspec(
        1, len(plan.shown.figure.panels), left=LEFT, right=RIGHT, wspace=0.08, **ends
    )
    every = grid.subplots(sharey=True, squeeze=False)[0]
    for axis, panel in zip(every, plan.shown.figure.panels, strict=True):
        _panel(axis, plan, panel, arms, rows)
        axis.set_title(panel.title, loc="left")
    every[0].set_yticks(range(len(rows)), names)
    every[0].set_ylim(len(rows) - 0.4, -0.6)
    handles = {
        label: handle
        for axis in every
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    legend: dict[str, Any] = {
        "loc": "upper left",
        "bbox_to_anchor": (0.01, 1),
        "fontsize": shapes.points(7),
    }
    figure.legend(handles.values(), handles, ncols=len(handles), **legend)
    return figure, list(handles)


def _panel(
    axis: matplotlib.axes.Axes,
    plan: Plan,
    panel: PanelSpec,
    arms: Mapping[str, ArmSummary],
    rows: Mapping[float, int],
) -> None:
    looks = style.looks(plan)
    names = values.compared(plan, panel)
    for index, name in enumerate(names):
        beside = 0.22 * (index - (len(names) - 1) / 2)  # so that none hides another
        members = values.series(plan, name)
        for entry in panel.measures:
            placed = [(rows[arm.x], arm) for arm in members if arm.x is not None and arm.x in rows]
            spreads = [
                (row, spread)
                for row, arm in placed
                if (spread := values.value(plan, panel, entry, arm.name, arms))
            ]
            if not spreads:
                continue
            ys, look = [row + beside for row, _ in spreads], looks[name]
            least, most = zip(*(spread.span for _, spread in spreads), strict=True)
            axis.hlines(ys, least, most, color=look.colour, linewidth=1.1, zorder=3)
            medians = [spread.median for _, spread in spreads]
            dots: dict[str, Any] = {
                "color": look.colour,
                "mec": "white",
                "mew": 0.4,
                "zorder": 4 + index,
            }
            axis.plot(medians, ys, look.marker, label=formatting.series_label(members[0]), **dots)
    if panel.relative_to:
        axis.axvline(1, color="#333333", linewidth=0.9, linestyle=(0, (1, 1.2)), zorder=2)
    if panel.log:
        axis.set_xscale("log")
        style.logarithmic(axis.xaxis, 1.0, 2.0, 5.0)
    bases = [formatting.series_labels(plan)[name] for name in panel.relative_to.values()]
    axis.set_xlabel(", relative to ".join([panel.label, *bases]))
    axis.tick_params(axis="y", length=0)
