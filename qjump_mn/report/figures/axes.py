"""Apply published axes to panels with values on the y axis: limits, background and omissions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import matplotlib.axes
import matplotlib.ticker
import numpy as np

from qjump_mn.results import formatting
from qjump_mn.results.outcome import Spread

from . import behind, shapes, style
from .behind import TIMES, Behind
from .published import Band, Panel, Range
from .style import Floats

SIDE = 0.1
"""So near to a side, in widths of a panel, what is told of a point stands within."""
DECADES = 1e4
"""A logarithmic axis that is longer has ticks at the powers of ten alone."""
MOST_TOLD = 4
"""At so many x there is room for what is told of each."""


def ends(panel: Panel, *, times: bool) -> Range:
    """Return the published axis in our units: ``times`` are in ms."""
    return (panel.y[0] / TIMES, panel.y[1] / TIMES) if times else panel.y


def apply(
    axis: matplotlib.axes.Axes, panel: Panel, lines: Iterable[Floats], name: str, *, times: bool
) -> tuple[Range, str]:
    """Give ``axis`` the published limits of ``panel``, widened if ``lines`` need it.

    Returns the limits, and a sentence about the axis ``name`` if they are not the published ones.
    """
    published, per_unit = ends(panel, times=times), TIMES if times else 1
    low, high = behind.limits(published, lines)
    if panel.step:
        step = panel.step / per_unit
        axis.set_yticks(np.arange(published[0], high + step / 2, step))
    axis.set_ylim(low, high)
    longer = behind.widened(f"The axis of {name}", panel.y, (low * per_unit, high * per_unit))
    return (low, high), longer


def as_published(
    axis: matplotlib.axes.Axes,
    name: str,
    lines: Sequence[tuple[str, Sequence[tuple[float, Spread]]]],
    published: Behind,
    index: int,
    *,
    times: bool,
) -> str:
    """Give a sweep's panel its published axes, after its ``lines``, label and points were drawn.

    The panel says what the axes leave out; the returned sentences say how they differ from the
    published ones.
    """
    sentences = _across(axis, [x for _, points in lines for x, _ in points], published)
    panel = published.panel(index)
    if panel is None:
        for artist in axis.lines:
            artist.set_clip_on(False)
        return "" if index else sentences
    draw_bands(axis, panel.bands, times=times)
    medians = [np.array([spread.median for _, spread in points]) for _, points in lines]
    drawn, longer = apply(axis, panel, medians, name, times=times)
    if panel.log and drawn[1] / drawn[0] > DECADES:
        axis.yaxis.set_major_locator(matplotlib.ticker.LogLocator())
    for artist, y in zip(axis.lines, medians, strict=False):
        # A marker at the end stays whole.
        artist.set_clip_on(bool(np.any((y < drawn[0]) | (y > drawn[1]))))
    farthest = [
        (
            x,
            label if len(lines) > 1 else "",
            spread.span[1] if spread.span[1] > drawn[1] else spread.span[0],
        )
        for label, points in lines
        for x, spread in points
    ]
    tell_outside(axis, farthest, drawn, TIMES if times else 1)
    return longer if index else sentences + longer


def _across(axis: matplotlib.axes.Axes, xs: Sequence[float], published: Behind) -> str:
    """Give a sweep's panel the published axis of its parameter, extended to everything that was
    run."""
    if not published.x.parts:
        return ""
    low, high = published.x.parts[0]
    wide = min(low, *xs), max(high, *xs)
    if published.x.log:
        axis.set_xscale("log")
        style.logarithmic(axis.xaxis, 1.0, 2.0, 5.0)
    axis.set_xlim(*wide)
    return behind.widened("The axis below", (low, high), wide)


def draw_bands(axis: matplotlib.axes.Axes, bands: Iterable[Band], *, times: bool) -> None:
    """Draw grey bands and lines behind the data, each with its label; along x the label is above
    the panel."""
    grey = style.sheet().grey
    line: dict[str, Any] = {
        "color": grey,
        "linewidth": 1.1,
        "linestyle": (0, (1, 1.2)),
        "zorder": 1,
    }
    area: dict[str, Any] = {"color": grey, "alpha": 0.13, "linewidth": 0, "zorder": 0}
    text: dict[str, Any] = {
        "textcoords": "offset points",
        "fontsize": shapes.points(7),
        "color": grey,
        "va": "bottom",
    }
    for band in bands:
        if band.x is not None:
            low, high = band.x
            axis.axvspan(low, high, **area) if low < high else axis.axvline(low, **line)
            middle = ((low + high) / 2, 1)
            axis.annotate(
                band.label, middle, (0, 2), xycoords=("data", "axes fraction"), ha="center", **text
            )
        elif band.y is not None:
            low, high = (end / TIMES for end in band.y) if times else band.y
            axis.axhspan(low, high, **area) if low < high else axis.axhline(low, **line)
            axis.annotate(
                band.label, (0.01, high), (0, 2), xycoords=("axes fraction", "data"), **text
            )


def tell_outside(
    axis: matplotlib.axes.Axes,
    points: Sequence[tuple[float, str, float]],
    drawn: Range,
    per_unit: float,
    top: float = 0.985,
) -> None:
    """Write at each x which values are outside ``drawn``, the limits of the panel's axis; once for
    all x if they are more than :data:`MOST_TOLD`.

    ``points`` are x, name and value, which is shown multiplied by ``per_unit``. The text stands at
    the axis's lower end, or from ``top`` on, in heights of the panel.
    """
    above: dict[float, list[tuple[str, float]]] = {}
    below: dict[float, list[tuple[str, float]]] = {}
    for x, name, value in points:
        if not drawn[0] <= value <= drawn[1]:
            side = above if value > drawn[1] else below
            side.setdefault(x, []).append((name, value * per_unit))
    for x, lines in _lines(above):
        _tell(axis, x, top, ["\N{UPWARDS ARROW}", *lines])
    for x, lines in _lines(below):
        _tell(axis, x, 0.015, [*lines, "\N{DOWNWARDS ARROW}"])


def _lines(found: dict[float, list[tuple[str, float]]]) -> Iterator[tuple[float, list[str]]]:
    """Yield what is told at each x; if there are too many, each name's least and greatest value at
    the middle one."""
    if len(found) <= MOST_TOLD:
        for x, named in found.items():
            yield x, [f"{name} {formatting.number(value)}".strip() for name, value in named]
        return
    by_name: dict[str, list[float]] = {}
    for name, value in itertools.chain.from_iterable(found.values()):
        by_name.setdefault(name, []).append(value)
    yield (
        sorted(found)[len(found) // 2],
        [
            f"{name} {formatting.span((min(values), max(values)), formatting.number)}".strip()
            for name, values in by_name.items()
        ],
    )


def _tell(axis: matplotlib.axes.Axes, x: float, height: float, lines: list[str]) -> None:
    """Write ``lines`` at an end of the panel, and none of them beside it."""
    along, _ = axis.transAxes.inverted().transform(
        axis.transData.transform((x, axis.get_ylim()[1]))
    )
    axis.annotate(
        "\n".join(lines),
        (x, height),
        xycoords=("data", "axes fraction"),
        ha="left" if along < SIDE else "right" if along > 1 - SIDE else "center",
        va="top" if height > 0.5 else "bottom",
        fontsize=shapes.points(6.6),
        linespacing=1.1,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
        zorder=20,
    )


def extreme(x: Floats, y: Floats, drawn: Range) -> list[tuple[float, str, float]]:
    """Return a line's points farthest above and below ``drawn`` with their counts, for
    :func:`tell_outside`."""
    found = []
    for outside, farthest in ((y > drawn[1], np.nanargmax), (y < drawn[0], np.nanargmin)):
        many = int(np.count_nonzero(outside))
        if many:
            at = int(farthest(y))
            found.append((float(x[at]), f"{many} outside, to" if many > 1 else "", float(y[at])))
    return found
