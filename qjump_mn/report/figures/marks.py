"""Mark published quantiles, omitted values and broken axes on distribution functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.axes
import matplotlib.lines
import numpy as np

from qjump_mn.report.figures import notes, style
from qjump_mn.report.figures.behind import Behind
from qjump_mn.report.figures.curves import Curve
from qjump_mn.report.figures.published import Range
from qjump_mn.results import formatting

QUANTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99}
"""The heights at which a distribution function has published measures."""

TOP = 0.8
"""Above it a mark's name stands below the mark."""

REACH = 0.3
"""How far a mark's name beside it reaches, of the axis."""


def draw_published(
    panels: Sequence[matplotlib.axes.Axes], behind: Behind, curves: Sequence[Curve]
) -> None:
    """Draw published quantiles as hollow dots, and as bands behind the ``curves``, in their arms'
    colours.

    A dot is on the one of ``panels`` that contains it; all share a vertical axis.
    """
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
        _quantile(panels, (low, high), share, drawn, colour, name, formatting.unit(behind.plan))


def _quantile(
    panels: Sequence[matplotlib.axes.Axes],
    xs: Range,
    share: float,
    drawn: Sequence[float],
    colour: str,
    name: str,
    unit: str,
) -> None:
    """Draw one quantile; ``drawn`` is where the curves are at this height, which the name
    avoids."""
    bottom, top = panels[0].get_ylim()
    if not bottom <= share <= top:
        return
    for panel in panels:
        least, most = panel.get_xlim()
        if least <= xs[0] and xs[1] <= most:
            if xs[0] == xs[1]:
                panel.axvline(xs[0], color=colour, linewidth=6, alpha=0.13, zorder=0)
            else:
                panel.axvspan(*xs, color=colour, linewidth=0, alpha=0.13, zorder=0)
            ends = sorted(set(xs))
            panel.plot(
                ends, [share] * len(ends), linestyle="-", color=colour, **style.HOLLOW, zorder=5
            )
            _name(panel, xs, share, drawn, colour, name)
            return
    panels[-1].text(
        0.52,
        0.5,
        f"{name}:\n{formatting.duration(xs[0], unit)} \N{RIGHTWARDS ARROW}",
        transform=panels[-1].transAxes,
        ha="center",
        va="center",
        fontsize=7,
        color=colour,
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
    (bottom, top), (least, most) = panel.get_ylim(), panel.get_xlim()
    below = (share - bottom) / (top - bottom) >= TOP
    reach = REACH * (most - least)
    before = not below and (
        any(xs[1] < at < xs[1] + reach for at in drawn)
        and not any(xs[0] - reach < at < xs[0] for at in drawn)
    )
    panel.annotate(
        name.replace(", ", ",\n"),
        (xs[0] if before else xs[1], share),
        xytext=(3, -11) if below else (-8 if before else 8, -2),
        textcoords="offset points",
        ha="right" if before else "left",
        va="center",
        fontsize=7,
        color=colour,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
        zorder=6,
    )


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
    panel: matplotlib.axes.Axes, parts: Sequence[Range], curves: Sequence[Curve], unit: str
) -> None:
    """Write for each curve how much of it is outside an axis of ``parts``, and up to which
    value."""
    per_ms = 1e3 if unit == "us" else 1
    row = 0
    for curve in curves:
        values = curve.pooled
        inside = np.zeros(len(values), dtype=bool)
        for low, high in parts:
            inside |= (values >= low) & (values <= high)
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
            fontsize=7,
            color=curve.look.colour,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
            zorder=7,
        )
        row += 1


def draw_break(left: matplotlib.axes.Axes, right: matplotlib.axes.Axes) -> None:
    """Draw the two strokes between the parts of a broken axis."""
    look: dict[str, Any] = {
        "marker": [(-0.6, -1), (0.6, 1)],
        "markersize": 8,
        "linestyle": "none",
        "color": "#444444",
        "mew": 0.9,
        "clip_on": False,
    }
    left.plot([1], [0], transform=left.transAxes, **look)
    right.plot([0], [0], transform=right.transAxes, **look)
