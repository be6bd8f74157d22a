"""Draw memcached's latency and PTP's offset over time, a panel for each arm, as in Figure 5."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import matplotlib.axes
import matplotlib.figure
import matplotlib.patches
import numpy as np
import pyarrow.parquet as pq

from qjump_mn.model.plan import Plan, Trial
from qjump_mn.model.workload import WorkloadPlan
from qjump_mn.programs import registry
from qjump_mn.programs.measures_api import Timeline, Whole
from qjump_mn.results import formatting, tables
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary

from . import axes as published_axes
from . import behind, notes, shapes, style
from .behind import TIMES, Behind
from .numbers import Numbers
from .shapes import LEFT, RIGHT
from .style import Figure

PANEL_INCHES = 1.75
RANGE_ALPHA = 0.13
"""How strong a published range is behind the lines."""


BELOW_SAID = 0.8
"""Where a panel is free below its numbers, in its heights."""


class Line(NamedTuple):
    """A workload, and what its program draws."""

    workload: WorkloadPlan
    drawn: Timeline


class Panel(NamedTuple):
    """An arm with its lines, from its first replicate."""

    arm: ArmSummary
    seed: int
    lines: tuple[Line, ...]


def draw(run: RunDirectory, manifest: Manifest, arms: Sequence[ArmSummary]) -> list[Figure]:
    """Draw the experiment's figure, one of the arms in ``detail`` on a fitting axis, and one of PTP
    offsets."""
    plan = manifest.plan
    panels = {
        panel.arm.name: panel
        for arm in arms
        if arm.name in plan.shown.figure.arms and (panel := _panel(run, plan, arm))
    }
    shown = [panels[name] for name in plan.shown.figure.arms if name in panels]
    detail = [panels[name] for name in plan.shown.figure.detail if name in panels]
    figures = []
    with style.applied():
        if shown:
            figures.append(
                _stacked(manifest, shown, plan.shown.figure.plot, plan.shown.title, behind.of(plan))
            )
        if detail and len(detail) < len(shown):
            figures.append(
                _stacked(
                    manifest,
                    detail,
                    f"{plan.shown.figure.plot}_detail",
                    f"{plan.shown.title}: without the contended arms",
                    None,
                )
            )
        wholes = dict.fromkeys(
            line.drawn.whole for panel in shown for line in panel.lines if line.drawn.whole
        )
        for number, whole in enumerate(wholes, 1):
            figures.append(_whole(manifest, shown, whole, behind.of(plan, number)))
    return figures


def _panel(run: RunDirectory, plan: Plan, arm: ArmSummary) -> Panel | None:
    for trial in plan.unperturbed.trials():
        if trial.arm.name == arm.name and run.is_done(trial.name):
            lines = [_line(run, trial, workload) for workload in trial.arm.workloads]
            return Panel(arm, trial.seed, tuple(line for line in lines if line is not None))
    return None


def _line(run: RunDirectory, trial: Trial, workload: WorkloadPlan) -> Line | None:
    path, timeline = (
        run.data(trial.name) / f"{workload.name}.parquet",
        registry.measures(workload).timeline,
    )
    if timeline is None or not path.is_file():
        return None
    return Line(workload, timeline(pq.read_table(path), workload, trial, tables.facts(run, trial)))


def _stacked(
    manifest: Manifest, panels: list[Panel], name: str, title: str, published: Behind | None
) -> Figure:
    plan = manifest.plan
    inches = PANEL_INCHES * len(panels) + 1.5
    figure = shapes.figure(inches)
    grid = figure.add_gridspec(
        len(panels),
        1,
        left=LEFT,
        right=RIGHT,
        top=1 - 0.6 / inches,
        bottom=0.85 / inches,
        hspace=0.28,
    )
    axes = grid.subplots(sharex=True, sharey=True, squeeze=False)[:, 0]
    for index, (axis, panel) in enumerate(zip(axes, panels, strict=True)):
        axis.set_title(f"{style.letter(index)}  {panel.arm.label}")
        _draw(axis, panel, plan, published)
    axes[-1].set_xlim(0, plan.run.duration_ns / 1e9)
    longer = _as_published(
        list(axes), [[line.drawn for line in panel.lines] for panel in panels], published
    )
    axes[-1].set_xlabel(_time_axis(published))
    labels = _legend(figure, axes, published)
    scale = _scale(manifest, panels)
    notes.footer(figure, manifest, scale)
    told = f" {_told(published, panels)}{longer}" if published else ""
    caption = (
        f"{_caption(plan, panels, labels, scale)} All panels have the same axes; the numbers "
        f"{'in' if published else 'above'} them are those of all replicates.{told}"
    )
    points = _numbers((panel, line.drawn) for panel in panels for line in panel.lines)
    return Figure(name, title, caption, figure, points)


def _draw(axis: matplotlib.axes.Axes, panel: Panel, plan: Plan, published: Behind | None) -> None:
    """Draw the lines of an arm, with its numbers and what was published of it."""
    for line in panel.lines:
        _plot(axis, line.drawn, line.drawn.colour, line.drawn.label)
    if published:
        _ranges(axis, panel, published)
    axis.axhline(0, color=style.sheet().grey, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    said = _said(panel, published, formatting.unit(plan))
    look: dict[str, Any] = {"fontsize": shapes.points(7.2), "color": style.sheet().grey}
    if published:  # then it is long, and the published axis leaves room
        axis.text(0.99, 0.94, said, transform=axis.transAxes, ha="right", va="top", **look)
    else:
        axis.set_title(said, loc="right", fontweight="normal", **look)
    axis.set_ylabel(style.times(axis.yaxis, plan))


def _legend(
    figure: matplotlib.figure.Figure, axes: Iterable[matplotlib.axes.Axes], published: Behind | None
) -> list[str]:
    """Draw one legend for all panels; return the labels of the lines."""
    lines = [line for axis in axes for line in axis.lines]
    named = {str(line.get_label()): line for line in lines}
    handles = {label: line for label, line in named.items() if not label.startswith("_")}
    ranges = _range_handles(published)
    figure.legend(
        handles=[*handles.values(), *ranges],
        loc="upper center",
        bbox_to_anchor=((LEFT + RIGHT) / 2, 1.0),
        ncols=2 + len(ranges),
    )
    return list(handles)


def _caption(plan: Plan, panels: list[Panel], labels: list[str], scale: str) -> str:
    """Describe the lines, their arms, and their gaps."""
    lines = [line for panel in panels for line in panel.lines]
    what = "; ".join(
        dict.fromkeys(f"{line.workload.label} ({line.workload.describe()})" for line in lines)
    )
    arms = ", ".join(panel.arm.label for panel in panels)
    broken = dict.fromkeys(line.drawn.gap for line in lines if np.isnan(line.drawn.y).any())
    gaps = "".join(f" A gap is a time {gap}." for gap in broken)
    return f"{'; '.join(labels)}: {what}, for {arms}, preset {plan.shown.preset}: {scale}.{gaps}"


def _whole(
    manifest: Manifest, panels: list[Panel], whole: Whole, published: Behind | None
) -> Figure:
    plan = manifest.plan
    figure = shapes.figure(3.4)
    axis = figure.add_axes((LEFT, 0.25, RIGHT - LEFT, 0.6))
    looks = style.looks(plan)
    lines = {
        panel.arm.label: (looks[panel.arm.name], line.drawn)
        for panel in panels
        for line in panel.lines
        if line.drawn.whole == whole
    }
    for label, (look, drawn) in lines.items():
        _plot(axis, drawn, look.colour, label, look.dashes)
    axis.axhline(0, color=style.sheet().grey, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    axis.set_xlim(0, plan.run.duration_ns / 1e9)
    longer = _as_published([axis], [[drawn for _, drawn in lines.values()]], published)
    axis.set_xlabel(_time_axis(published))
    axis.set_ylabel(whole.axis.removesuffix("ms") + style.times(axis.yaxis, plan))
    figure.legend(loc="upper center", bbox_to_anchor=((LEFT + RIGHT) / 2, 1.0), ncols=3)
    scale = _scale(manifest, panels)
    notes.footer(figure, manifest, scale)
    arms = ", ".join(panel.arm.label for panel in panels)
    text = f"{whole.title} for {arms}, {whole.source}, preset {plan.shown.preset}: {scale}."
    text += f" {published.told(dict.fromkeys(lines, ()), '')}{longer}" if published else ""
    of_whole = (
        (panel, line.drawn) for panel in panels for line in panel.lines if line.drawn.whole == whole
    )
    name, title = f"{plan.shown.figure.plot}_{whole.name}", f"{plan.shown.title}: {whole.title}"
    return Figure(name, title, text, figure, _numbers(of_whole))


def _numbers(lines: Iterable[tuple[Panel, Timeline]]) -> Numbers:
    """Return the points of every line, and its gaps."""
    rows = tuple(
        (panel.arm.label, panel.arm.name, f"{panel.seed}", line.label, float(x), float(y))
        for panel, line in lines
        for x, y in zip(line.x, line.y, strict=True)
    )
    return Numbers(
        ("arm", "name", "seed", "line", "time since the measurement began, s", "value, ms"), rows
    )


def _time_axis(published: Behind | None) -> str:
    """Name the time axis, of which ours shows less than was published."""
    name = "time since the measurement began, s"
    parts = published.x.parts if published else ()
    return f"{name} (an excerpt: published {parts[0][0]:g} to {parts[0][1]:g} s)" if parts else name


def _as_published(
    axes: Sequence[matplotlib.axes.Axes], lines: list[list[Timeline]], published: Behind | None
) -> str:
    """Give the panels the published axis of values, which they share.

    Each panel says what the axis leaves out; the returned sentence says how it differs from the
    published one.
    """
    panel = published.panel(0) if published else None
    if panel is None:
        return ""
    every = [line.y for each in lines for line in each]
    (low, high), longer = published_axes.apply(axes[0], panel, every, "values", times=True)
    for axis, each in zip(axes, lines, strict=True):
        outside = [
            point for line in each for point in published_axes.extreme(line.x, line.y, (low, high))
        ]
        published_axes.tell_outside(axis, outside, (low, high), TIMES, BELOW_SAID)
    return longer


def _ranges(axis: matplotlib.axes.Axes, panel: Panel, published: Behind) -> None:
    """Draw the published ranges of an arm's lines behind them, in their colours."""
    here = published.panel(0)
    for band in here.bands if here else ():
        for line in panel.lines:
            if (band.arm, band.workload) == (panel.arm.name, line.workload.name) and band.y:
                low, high = (end / TIMES for end in band.y)
                axis.axhspan(
                    low, high, color=line.drawn.colour, alpha=RANGE_ALPHA, linewidth=0, zorder=0
                )


def _range_handles(published: Behind | None) -> list[matplotlib.patches.Patch]:
    """Return the legend's entries for published ranges, one for each label."""
    here = published.panel(0) if published else None
    grey = style.sheet().grey
    return [
        matplotlib.patches.Patch(facecolor=grey, alpha=2 * RANGE_ALPHA, label=label)
        for label in dict.fromkeys(band.label for band in (here.bands if here else ()))
    ]


def _told(published: Behind, panels: list[Panel]) -> str:
    """Return the caption's sentences about published values."""
    series = {
        panel.arm.label: [
            f"{panel.arm.name}.{line.workload.name}.{line.drawn.measure}" for line in panel.lines
        ]
        for panel in panels
    }
    return published.told(series, "In each panel, as published")


def _plot(
    axis: matplotlib.axes.Axes, line: Timeline, colour: str, label: str, dashes: style.Dashes = "-"
) -> None:
    # A bin between two empty ones is seen as a point only.
    marker = "." if len(line.x) <= 60 or np.isnan(line.y).any() else ""
    axis.plot(
        line.x,
        line.y,
        color=colour,
        linestyle=dashes,
        linewidth=1.1,
        marker=marker,
        label=label,
        zorder=3,
    )


def _said(panel: Panel, published: Behind | None, unit: str) -> str:
    """Return a panel's numbers in a line, each with the published one if there is one."""
    texts = []
    for line in panel.lines:
        spread = panel.arm.measures.get(line.workload.name, {}).get(line.drawn.measure)
        if spread is not None:
            value = formatting.duration(spread.median, unit)
            entry = f"{panel.arm.name}.{line.workload.name}.{line.drawn.measure}"
            known = published.values.get(entry) if published else None
            texts.append(
                line.drawn.words.format(
                    f"{value} (published {known[0] * TIMES:g})" if known else value
                )
            )
    return ", ".join(texts)


def _scale(manifest: Manifest, panels: list[Panel]) -> str:
    names = [panel.arm.name for panel in panels]
    seeds = {panel.seed for panel in panels}
    drawn = f"; drawn: {formatting.seeds(seeds)}" if len(manifest.plan.run.seeds) > 1 else ""
    arms = [arm for arm in manifest.plan.arms if arm.name in names]
    return f"{notes.scale(manifest, arms)}; {notes.replicates(manifest.plan.run.seeds)}{drawn}"
