"""Measures against the parameter that is varied: a line for each series and measure, one panel above the
other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib.axes
import matplotlib.figure

from qjump_mn.model.experiment import PanelSpec
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.results import panels as values
from qjump_mn.results import wording
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary, Spread

from . import axes as published_axes
from . import behind, notes, numbers, style
from .behind import Behind
from .notes import LEFT, RIGHT
from .published import Panel
from .style import Figure

PANEL_INCHES = 2.5
MANY = 4
ACROSS = 4
"""Entries of a legend side by side, over two columns."""
HEADROOM = 0.03
"""Above the greatest value, as a share of it: a marker is half as high."""
GAIN = 0.05
"""What more of the parameter must bring of the most that it ever brings, to be worth it."""


class Line(NamedTuple):
    """A measure of a series: its spread over the seeds at each x, ascending. An arm that is no series is
    drawn level, from end to end. It is broken at ``gaps``, where arms that ran have no such measure."""

    series: str
    measure: str
    label: str
    points: tuple[tuple[float, Spread], ...]
    gaps: tuple[float, ...] = ()


def draw(run: RunDirectory, manifest: Manifest, arms: Sequence[ArmSummary]) -> list[Figure]:
    """The figure of the experiment; nothing where there is no data."""
    plan, published = manifest.plan, behind.of(manifest.plan)
    panels = [
        (panel, lines) for panel in plan.figure.panels if (lines := _lines(plan, panel, arms, published))
    ]
    if not panels:
        return []
    shown = [arm for arm in plan.arms_run if (arm.series or arm.name) in plan.figure.arms]
    with style.applied():
        columns = _columns(panels)
        entries = len(panels[0][1])
        # One legend for all panels, above them: among many lines there is no room for it.
        alike = len({tuple(line.label for line in lines) for _, lines in panels}) == 1
        over = len(columns) > 1 or (alike and entries > MANY)
        labels = [line.label for line in panels[0][1]]
        across = style.columns(labels, ACROSS, LEFT, fontsize=7) if over else 1
        margin = 0.55 + 0.2 * -(-entries // across) if over else 0.3
        rows = max(map(len, columns))
        inches = PANEL_INCHES * rows + 0.8 + margin
        figure = matplotlib.figure.Figure(figsize=(style.WIDTH_INCHES, inches))
        titled = any(panel.title for panel, _ in panels)
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
        every = grid.subplots(sharex=True, squeeze=False)
        axes, longer = [], ""
        for column, stack in enumerate(columns):
            for axis, index in zip(every[:, column], stack, strict=False):
                panel, drawn = panels[index]
                place = plan.figure.panels.index(panel)  # those without data are not drawn
                _panel(axis, plan, panel, drawn, published.panel(place) if published else None)
                _bound(axis, plan, panel, arms, published)
                if published:
                    longer += published_axes.as_published(
                        axis,
                        panel.label.removesuffix(", ms"),
                        [(line.label, line.points) for line in drawn],
                        published,
                        place,
                        times=_has_times(panel),
                    )
                if not over:
                    _legend(axis, len(drawn))
                axis.set_title(
                    _title(panel, index, len(panels), published.title(place) if published else ""), loc="left"
                )
                axes.append(axis)
            for axis in every[len(stack) :, column]:
                axis.set_axis_off()
            every[len(stack) - 1, column].set_xlabel(_axis(plan, published))
            every[len(stack) - 1, column].tick_params(labelbottom=True)
        if over:
            every[0, 0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.12), fontsize=7, ncols=across)
        knee = _knee(panels)
        for axis in axes if knee is not None else ():
            axis.axvline(knee, color=style.sheet().grey, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        if knee is not None:
            axes[0].annotate(
                f"enough: {knee:g}",
                (knee, 0.03),
                xycoords=("data", "axes fraction"),
                xytext=(4, 0),
                textcoords="offset points",
                fontsize=7,
                color=style.sheet().grey,
            )
        scale = f"{notes.scale(manifest, shown)}; {notes.replicates(_seeds(panels))}"
        notes.footer(figure, manifest, scale)
    told = _published(published, panels) + longer if published else ""
    caption = _caption(manifest, panels, scale, published) + told
    return [Figure(plan.figure.plot, plan.title, caption, figure, numbers.of_panels(plan, arms))]


def _columns(panels: list[tuple[PanelSpec, list[Line]]]) -> list[list[int]]:
    """Which panels stand in each column, from top to bottom."""
    by_column: dict[int, list[int]] = {}
    for index, (panel, _) in enumerate(panels):
        by_column.setdefault(panel.column, []).append(index)
    return [by_column[column] for column in sorted(by_column)]


def _title(panel: PanelSpec, index: int, panels: int, published: str) -> str:
    letter = style.letter(index) if panels > 1 else ""
    return "  ".join(filter(None, [letter, panel.title, published]))


def _axis(plan: Plan, published: Behind | None = None) -> str:
    """What is varied, or what was published for it; sweeps of one parameter say so once."""
    if published and published.x.label:
        return published.x.label
    return "; ".join(dict.fromkeys(plan.axes.values()))


def _knee(panels: list[tuple[PanelSpec, list[Line]]]) -> float | None:
    """The least value at which the first line of the panel that saturates is within ``GAIN`` of its most;
    None where no panel does."""
    points = next((lines[0].points for panel, lines in panels if panel.saturates), ())
    most = max((spread.median for _, spread in points), default=0.0)
    return next((x for x, spread in points if spread.median >= (1 - GAIN) * most), None)


def _lines(plan: Plan, panel: PanelSpec, arms: Sequence[ArmSummary], published: Behind | None) -> list[Line]:
    by_name = {arm.name: arm for arm in arms}
    lines = []
    for series in panel.arms or plan.figure.arms:
        members = values.series(plan, series)
        for entry in panel.measures:
            workload, measure = entry.split(".")
            points = _points(plan, panel, members, by_name, entry, published)
            if points:
                label = _label(plan, members[0], workload, measure, panel)
                ran = [arm for arm in members if arm.name in by_name]
                lines.append(Line(series, measure, label, points, _gaps(ran, points, published)))
    return lines


def _gaps(
    ran: list[ArmPlan], points: Sequence[tuple[float, Spread]], published: Behind | None
) -> tuple[float, ...]:
    """Where arms of a series ran that have no point."""
    placed = {published.place(arm.x) if published else arm.x for arm in ran if arm.x is not None}
    return tuple(sorted(placed - {x for x, _ in points}))


def _points(
    plan: Plan,
    panel: PanelSpec,
    members: list[ArmPlan],
    by_name: dict[str, ArmSummary],
    entry: str,
    published: Behind | None,
) -> tuple[tuple[float, Spread], ...]:
    points = []
    for arm in members:
        spread = values.value(plan, panel, entry, arm.name, by_name)
        if spread:
            xs = (
                [arm.x]
                if arm.x is not None
                else sorted({other.x for other in plan.arms_run if other.x is not None})
            )
            points += [(published.place(x) if published else x, spread) for x in xs]
    return tuple(sorted(points, key=lambda point: point[0]))


def _label(plan: Plan, arm: ArmPlan, workload: str, measure: str, panel: PanelSpec) -> str:
    """What tells a line from the others of its panel: the series, the measure, or both."""
    series = wording.series_label(arm) or arm.series or arm.name
    alone = len({entry.split(".")[0] for entry in panel.measures} & {one.name for one in arm.workloads}) == 1
    if alone and len(_measures(panel)) == 1:
        return series
    heading = notes.heading(plan, f"{workload}.{measure}", named=not alone)
    return heading if len(plan.figure.arms) == 1 else f"{series}: {heading}"


def _measures(panel: PanelSpec) -> set[str]:
    """What the panel shows, whichever workload's it is."""
    return {entry.split(".")[1] for entry in panel.measures}


def _panel(
    axis: matplotlib.axes.Axes, plan: Plan, panel: PanelSpec, lines: list[Line], published: Panel | None
) -> None:
    # Where one series has several measures, these are what is told apart by colour.
    several = len(plan.figure.arms) > 1
    looks = style.looks(plan) if several else style.unlike([line.measure for line in lines])
    for index, line in enumerate(lines):
        look = looks[line.series if several else line.measure]
        dashes = look.dashes
        if several and len(panel.measures) > 1:
            place = next(
                place for place, entry in enumerate(panel.measures) if entry.endswith(f".{line.measure}")
            )
            dashes = style.DASHES[place % len(style.DASHES)]
        spreads = dict(line.points)
        xs = sorted([*spreads, *line.gaps])
        drawn = [spreads.get(x) for x in xs]
        axis.plot(
            xs,
            [spread.median if spread else math.nan for spread in drawn],
            color=look.colour,
            **_stroke(look, dashes, crosses=published is not None and line.measure in published.crosses),
            label=line.label,
            zorder=3 + index,
        )
        if any(len(spread.values) > 1 for _, spread in line.points):
            axis.fill_between(
                xs,
                [spread.minimum if spread else math.nan for spread in drawn],
                [spread.maximum if spread else math.nan for spread in drawn],
                color=look.colour,
                alpha=0.18,
                linewidth=0,
            )
    if panel.relative_to:
        axis.axhline(1, color=style.sheet().grey, linewidth=0.9, linestyle=(0, (1, 1.2)), zorder=1)
    if values.has_names(plan.arms_run):
        places = {arm.x: values.point(arm) for arm in plan.arms_run if arm.x is not None}
        axis.set_xticks(list(places), list(places.values()), fontsize=6.8)
        axis.margins(x=0.14)
    elif plan.figure.log_x:
        axis.set_xscale("log")
        style.logarithmic(axis.xaxis, 1.0, 2.0, 5.0)
    if published.log if published else panel.log:
        axis.set_yscale("log")
        style.logarithmic(axis.yaxis, 1.0, 2.0, 5.0)
    else:
        axis.set_ylim(0, max(axis.get_ylim()[1], _room(axis.dataLim.y1)))
    axis.set_ylabel(
        panel.label.removesuffix("ms") + style.times(axis.yaxis, plan) if _has_times(panel) else panel.label
    )
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)


def _room(most: float) -> float:
    """Where an axis from 0 ends that shows the marker at ``most`` whole."""
    return most * (1 + HEADROOM)


def _stroke(look: style.Look, dashes: style.Dashes, *, crosses: bool) -> dict[str, Any]:
    if crosses:
        return {"linestyle": "none", "marker": "x", "mew": 1.4}
    return {"linestyle": dashes, "marker": look.marker, "mec": "white", "mew": 0.5}


def _published(published: Behind, panels: list[tuple[PanelSpec, list[Line]]]) -> str:
    """The caption's sentences about what was published."""
    labels = {line.label: () for _, lines in panels for line in lines}
    bands = dict.fromkeys(band.label for here in published.figure.panels for band in here.bands)
    grey = f" Grey, as published: {', '.join(bands)}." if bands else ""
    return f"{grey} {published.told(labels, '')}"


def _has_times(panel: PanelSpec) -> bool:
    """Whether the panel's values are times; those are in ms."""
    return panel.label.endswith(" ms")


def _bound(
    axis: matplotlib.axes.Axes,
    plan: Plan,
    panel: PanelSpec,
    arms: Sequence[ArmSummary],
    published: Behind | None,
) -> None:
    """What the panel's values must not exceed: a constant across it, or a measure of a series, by x."""
    if not panel.bound:
        return
    look: dict[str, Any] = {
        "color": style.sheet().grey,
        "linewidth": 0.9,
        "linestyle": (0, (2, 2)),
        "zorder": 1,
    }
    if panel.bound in plan.constants:
        value = plan.constants[panel.bound]
        axis.axhline(value, **look)
        axis.annotate(
            f"bound {value * 1e3:.4g} us"
            if _has_times(panel) and wording.fine(plan)
            else f"bound {value:.4g}",
            (1, value),
            xycoords=("axes fraction", "data"),
            xytext=(-3, 3),
            textcoords="offset points",
            ha="right",
            fontsize=7,
        )
        return
    series, _, entry = panel.bound.partition(".")
    by_name = {arm.name: arm for arm in arms}
    points = _points(plan, panel, values.series(plan, series), by_name, entry, published)
    if points:
        axis.plot([x for x, _ in points], [spread.median for _, spread in points], **look)
        axis.annotate(
            "bound",
            (points[-1][0], points[-1][1].median),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=7,
        )


def _legend(axis: matplotlib.axes.Axes, lines: int) -> None:
    """A panel's own."""
    axis.legend(
        loc="best",
        fontsize=7,
        ncols=2 if lines > MANY else 1,
        frameon=True,
        framealpha=0.9,
        edgecolor="none",
    ).set_zorder(20)


def _seeds(panels: list[tuple[PanelSpec, list[Line]]]) -> set[int]:
    return {
        seed for _, lines in panels for line in lines for _, spread in line.points for seed in spread.seeds
    }


def _caption(
    manifest: Manifest,
    panels: list[tuple[PanelSpec, list[Line]]],
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
        f"{plan.constants[bound]:.4g} ({bound})" if bound in plan.constants else bound
        for panel, _ in panels
        if (bound := panel.bound)
    ]
    bound = f" Dashed: the bound, {', '.join(bounds)}." if bounds else ""
    spread = notes.spans("band spans", _seeds(panels))
    extent, knee = _extent(plan, panels), _knee(panels)
    saturating = next((lines[0].label for panel, lines in panels if panel.saturates), "")
    enough = (
        f" Recommended: {knee:g}, the least value that was tried at which '{saturating}' has {1 - GAIN:.0%} "
        "of its most."
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
        f"{panel_texts}, against {_axis(plan, published)}{extent}, preset {plan.preset}: {scale}."
        f"{bound}{enough}{spread}{broken}"
    )


def _extent(plan: Plan, panels: list[tuple[PanelSpec, list[Line]]]) -> str:
    if values.has_names(plan.arms_run):
        return ""
    xs = sorted({x for _, lines in panels for line in lines for x, _ in line.points})
    return f" from {xs[0]:g} to {xs[-1]:g}, {len(xs)} values" if len(xs) > 1 else f" at {xs[0]:g}"
