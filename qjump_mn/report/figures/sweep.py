"""Draw measures against a varied parameter: a line for each series, in stacked panels."""

from __future__ import annotations

import math
from collections.abc import Sequence
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

from . import axes as published_axes
from . import behind, notes, numbers, shapes, style, swept
from .behind import Behind
from .published import Panel
from .shapes import LEFT, RIGHT
from .style import Figure
from .swept import Line, Panels

PANEL_INCHES = 2.5
MANY = 4
ACROSS = 4
"""Entries of a legend side by side, over two columns."""
HEADROOM = 0.03
"""Above the greatest value, as a share of it: a marker is half as high."""


def draw(run: RunDirectory, manifest: Manifest, arms: Sequence[ArmSummary]) -> list[Figure]:
    """Draw the experiment's figure; nothing without data."""
    plan, published = manifest.plan, behind.of(manifest.plan)
    panels = [
        (panel, lines)
        for panel in plan.shown.figure.panels
        if (lines := swept.lines_of(plan, panel, arms, published))
    ]
    if not panels:
        return []
    shown = [arm for arm in plan.run.arms if (arm.series or arm.name) in plan.shown.figure.arms]
    scale = f"{notes.scale(manifest, shown)}; {notes.replicates(swept.seeds(panels))}"
    with style.applied():
        figure, longer = _drawn(plan, panels, arms, published)
        notes.footer(figure, manifest, scale)
    told = _published(published, panels) + longer if published else ""
    caption = _caption(manifest, panels, scale, published) + told
    return [
        Figure(
            plan.shown.figure.plot, plan.shown.title, caption, figure, numbers.of_panels(plan, arms)
        )
    ]


def _drawn(
    plan: Plan, panels: Panels, arms: Sequence[ArmSummary], published: Behind | None
) -> tuple[matplotlib.figure.Figure, str]:
    """Return the figure without footer, and sentences on axes that are longer than published."""
    columns = _columns(panels)
    # One legend for all panels, above them: among many lines there is no room for it.
    labels = [line.label for line in panels[0][1]]
    alike = len({tuple(line.label for line in lines) for _, lines in panels}) == 1
    over = len(columns) > 1 or (alike and len(labels) > MANY)
    across = style.columns(labels, ACROSS, LEFT, fontsize=shapes.points(7)) if over else 1
    margin = 0.55 + 0.2 * -(-len(labels) // across) if over else 0.3
    figure, every = _grid(columns, margin, titled=any(panel.title for panel, _ in panels))
    axes, longer = [], ""
    for column, stack in enumerate(columns):
        for axis, index in zip(every[:, column], stack, strict=False):
            longer += _whole_panel(axis, plan, panels, index, arms, published)
            if not over:
                _legend(axis, len(panels[index][1]))
            axes.append(axis)
        for axis in every[len(stack) :, column]:
            axis.set_axis_off()
        every[len(stack) - 1, column].set_xlabel(_axis(plan, published))
        every[len(stack) - 1, column].tick_params(labelbottom=True)
    if over:
        every[0, 0].legend(
            loc="lower left", bbox_to_anchor=(0.0, 1.12), fontsize=shapes.points(7), ncols=across
        )
    if (knee := swept.knee(panels)) is not None:
        _enough(axes, knee)
    return figure, longer


def _whole_panel(
    axis: matplotlib.axes.Axes,
    plan: Plan,
    panels: Panels,
    index: int,
    arms: Sequence[ArmSummary],
    published: Behind | None,
) -> str:
    """Draw a panel with its bound, its title and what was published; return what is to be said of
    an axis that is longer than as published."""
    panel, lines = panels[index]
    place = plan.shown.figure.panels.index(panel)  # those without data are not drawn
    _panel(axis, plan, panel, lines, published.panel(place) if published else None)
    _bound(axis, plan, panel, arms, published)
    heading = published.title(place) if published else ""
    axis.set_title(_title(panel, index, len(panels), heading), loc="left")
    if published is None:
        return ""
    name, points = panel.label.removesuffix(", ms"), [(line.label, line.points) for line in lines]
    return published_axes.as_published(
        axis, name, points, published, place, times=_has_times(panel)
    )


def _grid(
    columns: list[list[int]], margin: float, *, titled: bool
) -> tuple[matplotlib.figure.Figure, Any]:
    """Return a figure with constant room above, in inches, and its axes by row and column."""
    rows = max(map(len, columns))
    inches = PANEL_INCHES * rows + 0.8 + margin
    figure = shapes.figure(inches)
    grid = figure.add_gridspec(
        rows,
        len(columns),
        left=LEFT,
        right=RIGHT,
        top=1 - margin / inches,
        bottom=0.85 / inches,
        hspace=0.25 if titled else 0.16,
        wspace=0.3,
    )
    return figure, grid.subplots(sharex=True, squeeze=False)


def _enough(axes: Sequence[matplotlib.axes.Axes], knee: float) -> None:
    """Mark the value that is recommended, in all panels."""
    grey = style.sheet().grey
    for axis in axes:
        axis.axvline(knee, color=grey, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
    axes[0].annotate(
        f"enough: {knee:g}",
        (knee, 0.03),
        xycoords=("data", "axes fraction"),
        xytext=(4, 0),
        textcoords="offset points",
        fontsize=shapes.points(7),
        color=grey,
    )


def _columns(panels: Panels) -> list[list[int]]:
    """Return the panels of each column, from top to bottom."""
    by_column: dict[int, list[int]] = {}
    for index, (panel, _) in enumerate(panels):
        by_column.setdefault(panel.column, []).append(index)
    return [by_column[column] for column in sorted(by_column)]


def _title(panel: PanelSpec, index: int, panels: int, published: str) -> str:
    letter = style.letter(index) if panels > 1 else ""
    return "  ".join(filter(None, [letter, panel.title, published]))


def _axis(plan: Plan, published: Behind | None = None) -> str:
    """Name the varied parameter, or the published one; once for sweeps of the same parameter."""
    if published and published.x.label:
        return published.x.label
    return "; ".join(dict.fromkeys(plan.shown.axes.values()))


def _panel(
    axis: matplotlib.axes.Axes,
    plan: Plan,
    panel: PanelSpec,
    lines: list[Line],
    published: Panel | None,
) -> None:
    # Where one series has several measures, these are what is told apart by colour.
    several = len(plan.shown.figure.arms) > 1
    looks = style.looks(plan) if several else style.unlike([line.measure for line in lines])
    crosses = published.crosses if published else ()
    for index, line in enumerate(lines):
        look = looks[line.series if several else line.measure]
        dashes = look.dashes
        if several and len(panel.measures) > 1:
            place = next(
                place
                for place, entry in enumerate(panel.measures)
                if entry.endswith(f".{line.measure}")
            )
            dashes = style.DASHES[place % len(style.DASHES)]
        stroke = _stroke(look, dashes, crosses=line.measure in crosses)
        _draw(axis, line, stroke | {"color": look.colour, "zorder": 3 + index})
    if panel.relative_to:
        axis.axhline(1, color=style.sheet().grey, linewidth=0.9, linestyle=(0, (1, 1.2)), zorder=1)
    if values.has_names(plan.run.arms):
        places = {arm.x: values.point(arm) for arm in plan.run.arms if arm.x is not None}
        axis.set_xticks(list(places), list(places.values()), fontsize=shapes.points(6.8))
        axis.margins(x=0.14)
    elif plan.shown.figure.log_x:
        axis.set_xscale("log")
        style.logarithmic(axis.xaxis, 1.0, 2.0, 5.0)
    if published.log if published else panel.log:
        axis.set_yscale("log")
        style.logarithmic(axis.yaxis, 1.0, 2.0, 5.0)
    else:
        axis.set_ylim(0, max(axis.get_ylim()[1], _room(axis.dataLim.y1)))
    axis.set_ylabel(
        panel.label.removesuffix("ms") + style.times(axis.yaxis, plan)
        if _has_times(panel)
        else panel.label
    )
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)


def _draw(axis: matplotlib.axes.Axes, line: Line, stroke: dict[str, Any]) -> None:
    """Draw a line through its medians, and a band over its replicates if there are several."""
    spreads = dict(line.points)
    xs = sorted([*spreads, *line.gaps])
    drawn = [spreads.get(x) for x in xs]
    axis.plot(
        xs, [spread.median if spread else math.nan for spread in drawn], label=line.label, **stroke
    )
    if any(len(spread.values) > 1 for _, spread in line.points):
        least, most = (
            [spread.span[end] if spread else math.nan for spread in drawn] for end in (0, 1)
        )
        axis.fill_between(xs, least, most, color=stroke["color"], alpha=0.18, linewidth=0)


def _room(most: float) -> float:
    """Return the end of an axis from 0 that shows the whole marker at ``most``."""
    return most * (1 + HEADROOM)


def _stroke(look: style.Look, dashes: style.Dashes, *, crosses: bool) -> dict[str, Any]:
    if crosses:
        return {"linestyle": "none", "marker": "x", "mew": 1.4}
    return {"linestyle": dashes, "marker": look.marker, "mec": "white", "mew": 0.5}


def _published(published: Behind, panels: Panels) -> str:
    """Return the caption's sentences about published values."""
    labels = {line.label: () for _, lines in panels for line in lines}
    bands = dict.fromkeys(band.label for here in published.figure.panels for band in here.bands)
    grey = f" Grey, as published: {', '.join(bands)}." if bands else ""
    return f"{grey} {published.told(labels, '')}"


def _has_times(panel: PanelSpec) -> bool:
    """Return whether the panel's values are times, in ms."""
    return panel.label.endswith(" ms")


def _bound(
    axis: matplotlib.axes.Axes,
    plan: Plan,
    panel: PanelSpec,
    arms: Sequence[ArmSummary],
    published: Behind | None,
) -> None:
    """Return the limit of the panel's values: a constant, or a measure of a series, by x."""
    if not panel.bound:
        return
    grey, dashes = style.sheet().grey, (0, (2, 2))
    look: dict[str, Any] = {"color": grey, "linewidth": 0.9, "linestyle": dashes, "zorder": 1}
    if panel.bound in plan.judged.constants:
        value = plan.judged.constants[panel.bound]
        axis.axhline(value, **look)
        in_us = _has_times(panel) and formatting.fine(plan)
        axis.annotate(
            f"bound {value * 1e3:.4g} us" if in_us else f"bound {value:.4g}",
            (1, value),
            xycoords=("axes fraction", "data"),
            xytext=(-3, 3),
            textcoords="offset points",
            ha="right",
            fontsize=shapes.points(7),
        )
        return
    series, _, entry = panel.bound.partition(".")
    by_name = {arm.name: arm for arm in arms}
    points = swept.points_of(plan, panel, values.series(plan, series), by_name, entry, published)
    if points:
        axis.plot([x for x, _ in points], [spread.median for _, spread in points], **look)
        axis.annotate(
            "bound",
            (points[-1][0], points[-1][1].median),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=shapes.points(7),
        )


def _legend(axis: matplotlib.axes.Axes, lines: int) -> None:
    """Add a panel's own legend."""
    axis.legend(
        loc="best",
        fontsize=shapes.points(7),
        ncols=2 if lines > MANY else 1,
        frameon=True,
        framealpha=0.9,
        edgecolor="none",
    ).set_zorder(20)


def _caption(
    manifest: Manifest,
    panels: Panels,
    scale: str,
    published: Behind | None,
) -> str:
    plan = manifest.plan
    alike: dict[str, dict[str, None]] = {}  # panels with the same lines are told together
    for panel, lines in panels:
        alike.setdefault(", ".join(line.label for line in lines), {})[
            f"{panel.label}{notes.against(plan, panel)}"
        ] = None
    panel_texts = "; ".join(f"{'; '.join(labels)}: {lines}" for lines, labels in alike.items())
    bounds = [
        f"{plan.judged.constants[bound]:.4g} ({bound})" if bound in plan.judged.constants else bound
        for panel, _ in panels
        if (bound := panel.bound)
    ]
    bound = f" Dashed: the bound, {', '.join(bounds)}." if bounds else ""
    spread = notes.spans("band spans", swept.seeds(panels))
    extent, knee = _extent(plan, panels), swept.knee(panels)
    saturating = next((lines[0].label for panel, lines in panels if panel.saturates), "")
    enough = (
        f" Recommended: {knee:g}, the least value that was tried at which '{saturating}' has "
        f"{1 - swept.GAIN:.0%} of its most."
        if knee is not None
        else ""
    )
    absent = [
        f"{line.label} at {', '.join(f'{x:g}' for x in line.gaps)}"
        for _, lines in panels
        for line in lines
        if line.gaps
    ]
    where = "; ".join(dict.fromkeys(absent))
    broken = f" A line is broken where there is no value: {where}." if where else ""
    return (
        f"{panel_texts}, against {_axis(plan, published)}{extent}, preset {plan.shown.preset}: "
        f"{scale}.{bound}{enough}{spread}{broken}"
    )


def _extent(plan: Plan, panels: Panels) -> str:
    if values.has_names(plan.run.arms):
        return ""
    xs = sorted({x for _, lines in panels for line in lines for x, _ in line.points})
    return f" from {xs[0]:g} to {xs[-1]:g}, {len(xs)} values" if len(xs) > 1 else f" at {xs[0]:g}"
