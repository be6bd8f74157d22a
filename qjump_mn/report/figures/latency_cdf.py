"""Draw distribution functions of latencies, on a logarithmic axis where they are far apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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

from . import behind, notes, shapes, style
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
from .marks import QUANTILES, draw_outside, draw_published, published_handles
from .published import Range
from .shapes import LEFT, RIGHT
from .style import Figure

FAR = 4.0
"""The axis is logarithmic where the medians of some arms are so many times the bound, and those of
others less."""
MANY_DECADES = 4
"""Over so many, a logarithmic axis names the powers of ten only."""

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
    inches = MAIN_INCHES + LEGEND_ROW_INCHES * (rows - LEGEND_ROWS) - cut

    def height(share: float) -> float:
        """Return where a height of a figure of MAIN_INCHES is in this one.

        The legend decides how tall the figure is, and its panels stay as they are.
        """
        return (share * MAIN_INCHES - cut) / inches

    figure = shapes.figure(inches)
    across = _across(curves, lines, published)
    panel = figure.add_axes((LEFT, height(0.51), RIGHT - LEFT, height(0.845) - height(0.51)))
    _draw(panel, across, curves, lines, published, plan)
    panel.set_title(
        ("a  " if detail else "")
        + ("All arms" if alone else "The main arms")
        + (", on a logarithmic axis" if across.log else "")
    )
    _legend(figure, handles, top=0.995)
    if detail:
        tail = figure.add_axes((LEFT, height(0.15), RIGHT - LEFT, height(0.385) - height(0.15)))
        _tail(tail, detail, lines, published, across)
        _name_tail(tail, plan, published, is_part=len(detail) < len(curves))
    notes.footer(figure, manifest, f"{_scale(manifest, curves)}; {_replicates(curves, silent)}")
    more = _more(published, curves, across, has_tail=bool(detail))
    caption = _caption(manifest, curves, silent, lines, more)
    return Figure(plan.shown.figure.plot, plan.shown.title, caption, figure, drawn(curves))


def _draw(
    panel: matplotlib.axes.Axes,
    across: Across,
    curves: list[Curve],
    lines: Lines,
    published: Behind | None,
    plan: Plan,
) -> None:
    """Draw the curves, the analytic times and what was published."""
    _scale_across(panel, across)
    unit = style.times(panel.xaxis, plan)
    for index, curve in enumerate(curves):
        draw_curve(panel, curve, index)
    _fractions(panel)
    panel.set_xlabel(f"{plan.shown.figure.quantity}, {unit}")
    draw_references(panel, lines, height=0.60)
    if published:
        draw_published(panel, published, curves)
        draw_outside(panel, across.ends, curves, unit)


def _scale_across(panel: matplotlib.axes.Axes, across: Across) -> None:
    """Give the horizontal axis its limits and its scale."""
    low, high = across.ends
    if across.log:
        panel.set_xscale("log")
        is_long = high >= low * 10**MANY_DECADES
        style.logarithmic(panel.xaxis, *((1.0,) if is_long else (1.0, 2.0, 5.0)))
    panel.set_xlim(low, high)


def _name_tail(
    panel: matplotlib.axes.Axes, plan: Plan, published: Behind | None, *, is_part: bool
) -> None:
    """Give the tail's panel its title, which says if it has only some of the curves, and an axis
    name."""
    name = f"b  The tail{', without the contended arms' if is_part else ''}"
    panel.set_title(f"{name} {published.title(1)}".rstrip() if published else name)
    panel.set_xlabel(f"{plan.shown.figure.quantity}, {style.times(panel.xaxis, plan)}")


def _more(published: Behind | None, curves: list[Curve], across: Across, *, has_tail: bool) -> str:
    """Return the caption's sentences about the tail and published values."""
    zoomed = published and published.panel(1)
    tail = ["Panel b is the upper end of panel a." if zoomed else STRETCHED] if has_tail else []
    return " ".join([*tail, *([_published(published, curves, across)] if published else [])])


def _tail(
    panel: matplotlib.axes.Axes,
    curves: list[Curve],
    lines: Lines,
    published: Behind | None,
    across: Across,
) -> None:
    """Draw the upper end of the curves: as published, or on a logarithmic axis."""
    zoomed = published.panel(1) if published else None
    if published is None or zoomed is None:
        draw_tail(panel, curves, lines)
        return
    _scale_across(panel, across)
    panel.set_ylim(*zoomed.y)
    for index, curve in enumerate(curves):
        draw_curve(panel, curve, index)
    _percents(panel)
    draw_published(panel, published, curves)


def _published(published: Behind, curves: list[Curve], across: Across) -> str:
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
    if across.log:
        return f"The published axis is broken, {axis} us; here it is logarithmic. {told}"
    longer = behind.widened("The axis", ends[-1], (ends[-1][0], across.ends[1] * TIMES))
    return f"Axis as published, {axis} us.{longer} {told}"


def _others(manifest: Manifest, curves: list[Curve], silent: list[str]) -> Figure:
    plan = manifest.plan
    lines = reference_lines(plan)
    figure = shapes.figure(4.0)
    panel = figure.add_axes((LEFT, 0.205, RIGHT - LEFT, 0.555))
    filled = [curve.pooled for curve in curves if len(curve.pooled)]
    _scale_across(panel, Across(_spread([lines.idle, lines.bound], filled), log=True))
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


class Across(NamedTuple):
    """The horizontal axis: its ends in ms, and whether it is logarithmic."""

    ends: Range
    log: bool


def _across(curves: Sequence[Curve], lines: Lines, published: Behind | None) -> Across:
    """Return the axis: as published, or logarithmic where that was broken or curves form two
    groups."""
    filled = [curve.pooled for curve in curves if len(curve.pooled)]
    known = [lines.idle, lines.bound]
    if published and (ends := published.x.parts):
        if len(ends) > 1:
            known += [
                end
                for entry, pair in published.values.items()
                if formatting.is_time(entry)
                for end in pair
            ]
            return Across(_spread(known, filled), log=True)
        low, high = (end / TIMES for end in ends[0])
        return Across((low, behind.limits((low, high), filled)[1]), log=False)
    is_far = {bool(values[len(values) // 2] >= lines.bound * FAR) for values in filled}
    if len(is_far) > 1:
        return Across(_spread(known, filled), log=True)
    longest = max(float(values[-1]) for values in filled) * 1.05 if filled else 1.0
    return Across((0, max(longest, lines.bound * 1.1)), log=False)


def _spread(known: Sequence[float], filled: Sequence[style.Floats]) -> Range:
    """Return the ends of a logarithmic axis with these times, those above 0, and some air."""
    times = np.concatenate([np.array(known), *filled])
    shown = times[times > 0] if (times > 0).any() else np.array([1.0])
    return 0.62 * float(shown.min()), 1.4 * float(shown.max())


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
