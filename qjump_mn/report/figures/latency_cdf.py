"""Draw distribution functions of latencies, with a broken axis, as the paper and the course did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.axes
import matplotlib.figure
import matplotlib.lines
import matplotlib.ticker
import numpy as np

from qjump_mn.model import ports
from qjump_mn.model.plan import Plan
from qjump_mn.results import formatting
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary

from . import behind, notes, style
from .behind import TIMES, Behind
from .curves import (
    Curve,
    Lines,
    draw_curve,
    draw_references,
    draw_tail,
    drawn,
    of_arm,
    reference_lines,
)
from .marks import QUANTILES, draw_break, draw_outside, draw_published, published_handles
from .notes import LEFT, RIGHT
from .published import Range
from .style import Figure

BREAKS_ABOVE = 4.0
"""The axis is broken where an arm's least round trip is so many times the bound, with nothing in
between."""

LEGEND_LEFT = LEFT - 0.03
LEGEND: dict[str, Any] = {"columnspacing": 1.6, "labelspacing": 0.35}
"""How its legend is set."""
MAIN_INCHES = 6.0
"""How tall the figure is whose legend has ``LEGEND_ROWS``."""
TAIL_INCHES = 2.16
"""Of that the panel of the tail, where there is one."""

LEGEND_ROWS, LEGEND_ROW_INCHES = 3, 0.2

STRETCHED = "Panel b stretches the upper end, one line a replicate."


def draw(run: RunDirectory, manifest: Manifest, arms: Sequence[ArmSummary]) -> list[Figure]:
    """Draw the experiment's figure, and one of other arms with the workload; nothing without data.

    Arms that sent no requests are only named.
    """
    plan = manifest.plan
    every = {arm.name: curve for arm in plan.arms if (curve := of_arm(run, plan, arm)) is not None}
    curves = {name: curve for name, curve in every.items() if curve.seeds}
    silent = [curve.arm.label for curve in every.values() if not curve.seeds]
    names = _names(plan)
    main = [curves[name] for name in names if name in curves]
    others = [curve for name, curve in curves.items() if name not in names]
    figures = []
    with style.applied():
        if main:
            detail = [curves[name] for name in plan.shown.figure.detail if name in curves]
            figures.append(_main(manifest, main, detail, silent, alone=not others))
        if others:
            idle = [curve for curve in main if curve.arm.name == "idle"]
            figures.append(_others(manifest, [*idle, *others], silent))
    return figures


def _names(plan: Plan) -> list[str]:
    """Return the figure's arms, those of a series in the plan's order.

    A figure that names every arm outside the sweeps, as by default, also has those of the sweeps.
    """
    asked = list(plan.shown.figure.arms)
    if all(arm.series or arm.name in asked for arm in plan.arms):
        asked += [arm.series for arm in plan.arms if arm.series]
    return list(
        dict.fromkeys(
            arm.name for name in asked for arm in plan.arms if name in (arm.name, arm.series)
        )
    )


def _main(
    manifest: Manifest, curves: list[Curve], detail: list[Curve], silent: list[str], *, alone: bool
) -> Figure:
    """Draw the figure's own arms; ``alone`` if no other was measured."""
    plan, published = manifest.plan, behind.of(manifest.plan)
    lines = reference_lines(plan)
    handles = [
        *_handles(curves),
        *(published_handles(published) if published and published.scale == 1 else []),
    ]
    rows = -(-len(handles) // _columns(handles))
    cut = 0.0 if detail else TAIL_INCHES
    inches = MAIN_INCHES + LEGEND_ROW_INCHES * max(0, rows - LEGEND_ROWS) - cut

    def height(share: float) -> float:
        """Return where a height of a figure of MAIN_INCHES is in this one.

        A longer legend makes the figure taller, not its panels smaller.
        """
        return (share * MAIN_INCHES - cut) / inches

    figure = matplotlib.figure.Figure(figsize=(style.WIDTH_INCHES, inches))
    parts = _parts(curves, lines, published)
    panels = _axes(figure, len(parts), height(0.845), height(0.51))
    unit = _draw(panels, parts, curves, lines, published, plan)
    panels[0].set_title(
        ("a  " if detail else "")
        + ("All arms" if alone else "The main arms")
        + (", on a broken axis" if len(parts) > 1 else "")
    )
    name = f"{plan.shown.figure.quantity}, {unit}"
    figure.text((LEFT + RIGHT) / 2, height(0.455), name, ha="center", va="center", fontsize=8.5)
    _legend(figure, handles, top=0.995)
    if detail:
        tail = figure.add_axes((LEFT, height(0.15), RIGHT - LEFT, height(0.385) - height(0.15)))
        _tail(tail, detail, lines, published, (parts[0][0], parts[-1][1]))
        _name_tail(tail, plan, published, is_part=len(detail) < len(curves))
    notes.footer(figure, manifest, f"{_scale(manifest, curves)}; {_replicates(curves, silent)}")
    more = _more(published, curves, parts, has_tail=bool(detail))
    caption = _caption(manifest, curves, silent, lines, more)
    return Figure(plan.shown.figure.plot, plan.shown.title, caption, figure, drawn(curves))


def _axes(
    figure: matplotlib.figure.Figure, count: int, top: float, bottom: float
) -> list[matplotlib.axes.Axes]:
    """Return the axes of a panel: two side by side if its axis is broken."""
    grid = figure.add_gridspec(
        1, 2, left=LEFT, right=RIGHT, top=top, bottom=bottom, wspace=0.05, width_ratios=[1.25, 1.0]
    )
    left = figure.add_subplot(grid[0, 0] if count > 1 else grid[0, :])
    if count == 1:
        return [left]
    right = figure.add_subplot(grid[0, 1], sharey=left)
    right.tick_params(labelleft=False, left=False)
    right.spines["left"].set_visible(False)
    draw_break(left, right)
    return [left, right]


def _draw(
    panels: list[matplotlib.axes.Axes],
    parts: tuple[Range, ...],
    curves: list[Curve],
    lines: Lines,
    published: Behind | None,
    plan: Plan,
) -> str:
    """Draw the curves, the analytic times and what was published; return the axis' unit."""
    for panel, part in zip(panels, parts, strict=True):
        panel.set_xlim(*part)
        unit = style.times(panel.xaxis, plan)
        for index, curve in enumerate(curves):
            draw_curve(panel, curve, index)
    _fractions(panels[0])
    draw_references(panels[0], lines, height=0.60)
    if published:
        draw_published(panels, published, curves)
        draw_outside(panels[-1], parts, curves, unit)
    return unit


def _name_tail(
    panel: matplotlib.axes.Axes, plan: Plan, published: Behind | None, *, is_part: bool
) -> None:
    """Give the tail's panel its title, which says if it has only some of the curves, and an axis
    name."""
    name = f"b  The tail{', without the contended arms' if is_part else ''}"
    panel.set_title(f"{name} {published.title(1)}".rstrip() if published else name)
    panel.set_xlabel(f"{plan.shown.figure.quantity}, {style.times(panel.xaxis, plan)}")


def _more(
    published: Behind | None, curves: list[Curve], parts: tuple[Range, ...], *, has_tail: bool
) -> str:
    """Return the caption's sentences about the tail and published values."""
    zoomed = published and published.panel(1)
    tail = ["Panel b is the upper end of panel a." if zoomed else STRETCHED] if has_tail else []
    return " ".join([*tail, *([_published(published, curves, parts)] if published else [])])


def _tail(
    panel: matplotlib.axes.Axes,
    curves: list[Curve],
    lines: Lines,
    published: Behind | None,
    xs: Range,
) -> None:
    """Draw the upper end of the curves: as published, or on a logarithmic axis."""
    zoomed = published.panel(1) if published else None
    if published is None or zoomed is None:
        draw_tail(panel, curves, lines)
        return
    panel.set_xlim(*xs)
    panel.set_ylim(*zoomed.y)
    for index, curve in enumerate(curves):
        draw_curve(panel, curve, index)
    _percents(panel)
    draw_published([panel], published, curves)


def _published(published: Behind, curves: list[Curve], parts: tuple[Range, ...]) -> str:
    """Return the caption's sentences about published values."""
    workload = published.plan.shown.figure.workload
    told = published.told(
        {
            curve.arm.label: [f"{curve.arm.name}.{workload}.{measure}" for measure in QUANTILES]
            for curve in curves
        },
        "Hollow dots",
    )
    ends = published.x.parts
    if not ends:
        return told
    axis = " and ".join(f"{low:g} to {high:g}" for low, high in ends)
    longer = behind.widened("The axis", ends[-1], (ends[-1][0], parts[-1][1] * TIMES))
    return f"Axis as published, {axis} us.{longer} {told}"


def _others(manifest: Manifest, curves: list[Curve], silent: list[str]) -> Figure:
    plan = manifest.plan
    lines = reference_lines(plan)
    figure = matplotlib.figure.Figure(figsize=(style.WIDTH_INCHES, 4.0))
    panel = figure.add_axes((LEFT, 0.205, RIGHT - LEFT, 0.555))
    filled = [curve.pooled for curve in curves if len(curve.pooled)]
    panel.set_xscale("log")
    shortest = min([lines.idle or 1.0, *(float(values[0]) for values in filled)])
    longest = max([lines.bound or 1.0, *(float(values[-1]) for values in filled)])
    panel.set_xlim(0.62 * shortest, 1.4 * longest)
    style.logarithmic(panel.xaxis, 1.0, 2.0, 5.0)
    for index, curve in enumerate(curves):
        draw_curve(panel, curve, index)
    _fractions(panel)
    panel.set_xlabel(
        f"{plan.shown.figure.quantity}, {style.times(panel.xaxis, plan)} (logarithmic)"
    )
    panel.set_title("The other arms")
    draw_references(panel, lines, height=0.75)
    _legend(figure, _handles(curves), top=0.99)
    notes.footer(figure, manifest, f"{_scale(manifest, curves)}; {_replicates(curves, silent)}")
    return Figure(
        f"{plan.shown.figure.plot}_others",
        f"{plan.shown.title}: the other arms",
        _caption(manifest, curves, silent, lines, ""),
        figure,
        drawn(curves),
    )


def _fractions(panel: matplotlib.axes.Axes) -> None:
    panel.set_ylim(0, 1.025)
    _percents(panel)


def _percents(panel: matplotlib.axes.Axes) -> None:
    panel.set_ylabel("fraction of requests")
    panel.yaxis.set_major_formatter(
        matplotlib.ticker.PercentFormatter(1.0, decimals=0, symbol=" %")
    )


def _parts(curves: Sequence[Curve], lines: Lines, published: Behind | None) -> tuple[Range, ...]:
    """Return the axis's limits in ms, in two parts if it is broken: as published, or if curves form
    two groups."""
    filled = [curve.pooled for curve in curves if len(curve.pooled)]
    if published and published.x.parts:
        *before, last = ((low / TIMES, high / TIMES) for low, high in published.x.parts)
        longest = behind.limits((before[0][0] if before else last[0], last[1]), filled)[1]
        return (*before, (last[0], longest))
    near = [values for values in filled if values[len(values) // 2] < lines.bound * BREAKS_ABOVE]
    far = [values for values in filled if values[len(values) // 2] >= lines.bound * BREAKS_ABOVE]
    everything = max(float(values[-1]) for values in filled) * 1.05 if filled else 1.0
    if not near or not far:
        return ((0, max(everything, lines.bound * 1.1)),)
    # A single straggler (the first ping) must not push the break away: the tail panel shows it.
    end = max(lines.bound * 1.12, *(float(np.quantile(values, 0.999)) * 1.08 for values in near))
    return ((0, end), (end, max(everything, end * 2)))


def _handles(curves: list[Curve]) -> list[matplotlib.lines.Line2D]:
    handles = []
    for curve in curves:
        look = curve.look
        line = matplotlib.lines.Line2D(
            [], [], color=look.colour, linestyle=look.dashes, marker=look.marker, label=curve.label
        )
        line.set(markeredgecolor="white", markeredgewidth=0.5)
        handles.append(line)
    return handles


def _columns(handles: list[matplotlib.lines.Line2D]) -> int:
    """Return how many legend columns fit."""
    return style.columns([str(handle.get_label()) for handle in handles], 2, LEGEND_LEFT, **LEGEND)


def _legend(
    figure: matplotlib.figure.Figure, handles: list[matplotlib.lines.Line2D], top: float
) -> None:
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(LEGEND_LEFT, top),
        ncols=_columns(handles),
        **LEGEND,
    )


def _scale(manifest: Manifest, curves: list[Curve]) -> str:
    return notes.scale(manifest, [curve.arm for curve in curves])


def _replicates(curves: list[Curve], silent: list[str]) -> str:
    """Say how many replicates and requests there are, and which arms are missing because they sent
    none."""
    seeds = {seed for curve in curves for seed in curve.seeds}
    sent = sorted({sent for curve in curves for sent in curve.sent})
    many = (
        f"{sent[0]} to {sent[-1]}" if len(sent) > 3 else " or ".join(str(count) for count in sent)
    )
    incomplete = [curve.arm.label for curve in curves if set(curve.seeds) != seeds]
    none = f"; no requests: {', '.join(silent)}" if silent else ""
    return f"{notes.replicates(seeds, incomplete)}, {many} requests each{none}"


def _caption(
    manifest: Manifest, curves: list[Curve], silent: list[str], lines: Lines, more: str
) -> str:
    plan = manifest.plan
    what = "; ".join(
        dict.fromkeys(f"{curve.workload.label} ({curve.workload.describe()})" for curve in curves)
    )
    spread = (
        " The band spans the replicates." if any(len(curve.seeds) > 1 for curve in curves) else ""
    )
    ends = (
        " A curve ends at the fraction of requests that were answered."
        if any(curve.loss for curve in curves)
        else ""
    )
    return (
        f"{plan.shown.figure.quantity.capitalize()} of {what}, preset {plan.shown.preset}: "
        f"{_scale(manifest, curves)}; "
        f"{_replicates(curves, silent)}.{ends}{spread} "
        f"{_told(plan, lines)}{more}"
    ).strip()


def _told(plan: Plan, lines: Lines) -> str:
    """Say what the dashed lines are."""
    if not lines.idle:
        return ""
    idle, bound = (formatting.duration(time, lines.unit) for time in (lines.idle, lines.bound))
    return (
        f"Dashed: the analytic {plan.shown.figure.quantity} of the idle network, {idle}, and with "
        f"{ports.told(plan.judged.constants, plan.shown.figure.workload)}, {bound}. "
    )
