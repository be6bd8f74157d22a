"""Mark published quantiles and omitted values on distribution functions."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.axes
import matplotlib.lines
import numpy as np

from qjump_mn.report.figures import notes, shapes, style
from qjump_mn.report.figures.behind import Behind
from qjump_mn.report.figures.curves import Curve
from qjump_mn.report.figures.published import Range
from qjump_mn.results import formatting

QUANTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99}
"""The heights at which a distribution function has published measures."""

TOP = 0.8
"""Above it a mark's name stands below the mark."""

REACH = 0.3
"""How far a mark's name beside it reaches at most, of the axis."""

LENGTH = 0.12
"""How far "published" reaches, which must not leave the panel."""


def draw_published(panel: matplotlib.axes.Axes, behind: Behind, curves: Sequence[Curve]) -> None:
    """Draw published quantiles as hollow dots, and as bands behind the ``curves``, in their arms'
    colours."""
    looks = style.looks(behind.plan)
    functions = [style.cdf(curve.pooled, sum(curve.sent)) for curve in curves]
    name = "published" if behind.scale == 1 else "published, scaled"
    for entry, (low, high) in behind.values.items():
        arm, workload, measure = entry.split(".")
        if workload != behind.plan.shown.figure.workload or measure not in QUANTILES:
            continue
        look = looks.get(arm)  # somebody's experiment may name its arms otherwise
        colour = look.colour if look else style.sheet().grey
        share = QUANTILES[measure]
        drawn = [
            float(x[at]) for x, y in functions if (at := int(np.searchsorted(y, share))) < len(x)
        ]
        _quantile(panel, (low, high), share, drawn, colour, name, formatting.unit(behind.plan))


def _quantile(
    panel: matplotlib.axes.Axes,
    xs: Range,
    share: float,
    drawn: Sequence[float],
    colour: str,
    name: str,
    unit: str,
) -> None:
    """Draw one quantile; ``drawn`` is where the curves are at this height, which the name
    avoids."""
    (bottom, top), (least, most) = panel.get_ylim(), panel.get_xlim()
    if not bottom <= share <= top:
        return
    if least <= xs[0] and xs[1] <= most:
        if xs[0] == xs[1]:
            panel.axvline(xs[0], color=colour, linewidth=6, alpha=0.13, zorder=0)
        else:
            panel.axvspan(*xs, color=colour, linewidth=0, alpha=0.13, zorder=0)
        ends = sorted(set(xs))
        panel.plot(ends, [share] * len(ends), linestyle="-", color=colour, **style.HOLLOW, zorder=5)
        _name(panel, xs, share, drawn, colour, name)
        return
    panel.text(
        0.52,
        0.5,
        f"{name}:\n{formatting.duration(xs[0], unit)} \N{RIGHTWARDS ARROW}",
        transform=panel.transAxes,
        ha="center",
        va="center",
        fontsize=shapes.points(7),
        color=style.ink(colour),
        zorder=6,
    )


def _name(
    panel: matplotlib.axes.Axes,
    xs: Range,
    share: float,
    drawn: Sequence[float],
    colour: str,
    name: str,
) -> None:
    """Write the name of a mark below it, or on the side where no curve is near."""
    bottom, top = panel.get_ylim()
    below = (share - bottom) / (top - bottom) >= TOP
    least, most = (_along(panel, x) for x in xs)
    places = [_along(panel, x) for x in drawn if x > 0]
    is_free_before = not any(least - REACH < place < least for place in places)
    is_free_after = not any(most < place < most + REACH for place in places)
    fits_after = most + LENGTH <= 1
    before = not below and (not fits_after or (is_free_before and not is_free_after))
    panel.annotate(
        name.replace(", ", ",\n"),
        (xs[0] if before else xs[1], share),
        xytext=(3, -11) if below else (-8 if before else 8, -2),
        textcoords="offset points",
        ha="right" if before else "left",
        va="center",
        fontsize=shapes.points(7),
        color=style.ink(colour),
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
        zorder=6,
    )


def _along(panel: matplotlib.axes.Axes, x: float) -> float:
    """Return where a value is along the horizontal axis, from 0 to 1."""
    to_axes = panel.transData + panel.transAxes.inverted()
    return float(to_axes.transform((x, panel.get_ylim()[1]))[0])


def published_handles(behind: Behind) -> list[matplotlib.lines.Line2D]:
    """Return the legend's entry for published quantiles, if there are any."""
    workload = behind.plan.shown.figure.workload
    there = {entry.split(".")[2] for entry in behind.values if entry.split(".")[1] == workload}
    headings = [
        notes.heading(behind.plan, f"{workload}.{measure}", named=False)
        for measure in QUANTILES
        if measure in there
    ]
    return [style.published_handle(f"hollow: published {', '.join(headings)}")] if headings else []


def draw_outside(
    panel: matplotlib.axes.Axes, ends: Range, curves: Sequence[Curve], unit: str
) -> None:
    """Write for each curve how much of it is outside an axis with these ``ends``, and up to which
    value."""
    per_ms = 1e3 if unit == "us" else 1
    row = 0
    for curve in curves:
        values = curve.pooled
        inside = (values >= ends[0]) & (values <= ends[1])
        if inside.all():
            continue
        share = np.count_nonzero(~inside) / sum(curve.sent)
        text = (
            f"{share * 100:.2g} % outside, to {formatting.number(values[~inside][-1] * per_ms)} "
            f"{unit}"
        )
        panel.text(
            0.985,
            0.04 + 0.075 * row,
            text,
            transform=panel.transAxes,
            ha="right",
            fontsize=shapes.points(7),
            color=style.ink(curve.look.colour),
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
            zorder=7,
        )
        row += 1
