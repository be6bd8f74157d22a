"""Define one style for all figures: looks of arms, sizes, and reproducible files."""

from __future__ import annotations

import functools
import re
import string
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
import matplotlib.axis
import matplotlib.colors
import matplotlib.figure
import matplotlib.lines
import matplotlib.text
import matplotlib.ticker
import msgspec
import numpy as np
import numpy.typing as npt
from matplotlib.transforms import Bbox

from qjump_mn.errors import UsageError
from qjump_mn.model import scheme
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import loading
from qjump_mn.resolve.toml_types import convert
from qjump_mn.results import formatting

from . import shapes
from .numbers import Numbers

mpl.use("Agg")  # never a window, and no display is needed

Floats = npt.NDArray[np.float64]
Dashes = tuple[float, tuple[float, ...]] | Literal["-"]

FORMATS = ("png", "svg", "pdf")
_MICRO = re.compile(r"(?<![A-Za-z])us\b")
"""Microseconds, as our tables and files write them."""


class Sheet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of plots/style.toml. Each colour of ``palette`` has the marker with its
    index."""

    grey: str
    dpi: float
    palette: tuple[str, ...]
    markers: tuple[str, ...]
    rc: dict[str, bool | int | float | str]


@functools.cache
def sheet() -> Sheet:
    """Return the style sheet, read once. Raises :class:`UsageError` if it is not valid."""
    path = "plots/style.toml"
    read = convert(loading.read("plots", "style"), Sheet, path)
    if not read.palette or len(read.palette) != len(read.markers):
        raise UsageError(
            f"{path}: give palette and markers one entry each for every look, as many of both"
        )
    try:
        mpl.RcParams(read.rc)
    except (KeyError, ValueError) as error:
        raise UsageError(f"{path}: rc: {' '.join(str(error).split())}") from None
    return read


class Look(NamedTuple):
    """The look of an arm on every figure: colour, and dashes and marker for readers without
    colours."""

    colour: str
    dashes: Dashes
    marker: str


_DASHED: dict[scheme.Dashes, Dashes] = {
    "solid": "-",
    "dashed": (0, (3.5, 2.5)),
    "dotted": (0, (1, 1.2)),
    "dashdot": (0, (5, 1.2, 1, 1.2)),
    "long": (0, (6, 1.2)),
    "short": (0, (3, 1)),
}

DASHES: tuple[Dashes, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
"""For the measures of one series, and for arms that have no look of a scheme: of two lines that lie
upon each other both are seen."""


TEXT_CONTRAST = 4.6
"""Of text in a colour on white; a rounded colour then still has 4.5."""

LIGHTEST = 0.5
"""How much white the last arm of a series has in its colour."""

HOLLOW: dict[str, Any] = {
    "marker": "o",
    "markersize": 8,
    "markerfacecolor": "white",
    "markeredgewidth": 1.3,
}
"""What a published number looks like."""


class Figure(NamedTuple):
    """A figure before it is saved; ``caption`` is plain text that stands alone, ``numbers`` its
    data."""

    name: str
    title: str
    caption: str
    figure: matplotlib.figure.Figure
    numbers: Numbers | None = None


def letter(index: int) -> str:
    """Return a panel's letter; numbers after z."""
    return string.ascii_lowercase[index] if index < len(string.ascii_lowercase) else str(index + 1)


def published_handle(label: str) -> matplotlib.lines.Line2D:
    """Return the legend's entry for published numbers."""
    return matplotlib.lines.Line2D(
        [], [], linestyle="none", color=sheet().grey, label=label, **HOLLOW
    )


def columns(labels: Sequence[str], most: int, left: float, **legend: Any) -> int:
    """Return how many legend columns, ``most`` at most, fit between ``left`` and the right edge.

    ``left`` is a share of the figure's width; ``legend`` are the legend's settings.
    """
    handles = [matplotlib.lines.Line2D([], [], label=label) for label in labels]
    for count in range(min(most, len(labels)), 1, -1):
        trial = shapes.figure(4.0)
        trial.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(left, 1.0), ncols=count, **legend
        )
        trial.draw_without_rendering()
        if trial.legends[0].get_window_extent().x1 <= trial.bbox.x1:
            return count
    return 1


def looks(plan: Plan) -> dict[str, Look]:
    """Return a look for each arm or series of ``plan``; only arms of the same scheme and label
    share one.

    A scheme's look goes to its first arm, so that it is the same on every figure, and to arms with
    the same label, which are in another panel. Other arms get the remaining looks in the plan's
    order.
    """
    schemes = {arm.series or arm.name: arm.scheme.name for arm in plan.arms}
    labels = formatting.series_labels(plan)
    firsts: dict[str, str] = {}
    for name in dict.fromkeys([*plan.shown.figure.arms, *schemes]):
        firsts.setdefault(schemes[name], name)
    own = {
        name: _of_scheme(plan.shown.schemes[key].look)
        for name, key in schemes.items()
        if labels[name] == labels[firsts[key]]
    }
    return {**own, **unlike([name for name in schemes if name not in own], own.values())}


def arm_looks(plan: Plan) -> dict[str, Look]:
    """Return a look for each arm of ``plan``, by name.

    The arms of a series have its look, each with other dashes and lighter than the one before.
    """
    found = {}
    for series, look in looks(plan).items():
        arms = [arm.name for arm in plan.arms if series == (arm.series or arm.name)]
        turn = [look.dashes, *(dashes for dashes in DASHES if dashes != look.dashes)]
        for place, name in enumerate(arms):
            colour = (
                _lighter(look.colour, LIGHTEST * place / max(1, len(arms) - 1))
                if place
                else look.colour
            )
            found[name] = Look(colour, turn[place % len(turn)], look.marker)
    return found


def _lighter(colour: str, share: float) -> str:
    """Mix ``colour`` with a ``share`` of white."""
    red, green, blue = (part + (1 - part) * share for part in matplotlib.colors.to_rgb(colour))
    return matplotlib.colors.to_hex((red, green, blue))


def ink(colour: str) -> str:
    """Darken ``colour`` until text in it can be read on white, as WCAG 2 asks of level AA."""
    dark = np.array(matplotlib.colors.to_rgb(colour))
    while 1.05 / (_luminance(dark) + 0.05) < TEXT_CONTRAST:
        dark *= 0.97
    red, green, blue = map(float, dark)
    return matplotlib.colors.to_hex((red, green, blue))


def _luminance(rgb: Floats) -> float:
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))


def unlike(names: Sequence[str], taken: Iterable[Look] = ()) -> dict[str, Look]:
    """Return different looks for ``names``, with colours that are not ``taken`` as long as there
    are any."""
    colours = {look.colour for look in taken}
    pairs = list(zip(sheet().palette, sheet().markers, strict=True))
    others = [
        Look(colour, DASHES[(index + turn) % len(DASHES)], marker)
        for turn in range(len(DASHES))
        for index, (colour, marker) in enumerate(pairs)
    ]
    free = sorted(others, key=lambda look: look.colour in colours)
    return {name: free[index % len(free)] for index, name in enumerate(names)}


def _of_scheme(look: scheme.Look) -> Look:
    return Look(look.colour, _DASHED[look.dashes], look.marker)


@contextmanager
def applied() -> Iterator[None]:
    """Apply the style sheet's rc parameters in the block, and hide matplotlib's warnings."""
    # From matplotlib's own defaults, so that nobody's matplotlibrc changes a figure; the backend is
    # none of the style's business.
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        mpl.rcParams.update(
            {key: value for key, value in mpl.rcParamsDefault.items() if key != "backend"}
        )
        rc: Any = sheet().rc  # names that matplotlib has checked
        mpl.rcParams.update(rc)
        shapes.scale(mpl.rcParams)
        yield


def missing_glyphs(drawn: Figure) -> str:
    """Return the characters of a figure that its font lacks, which are drawn as boxes."""
    with applied(), warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message="Glyph ")
        drawn.figure.draw_without_rendering()
    found = (re.match(r"Glyph (\d+) ", str(warning.message)) for warning in caught)
    return "".join(dict.fromkeys(chr(int(match[1])) for match in found if match))


def _write_micro(figure: matplotlib.figure.Figure) -> None:
    """Write microseconds with their sign in all texts of a figure."""
    for text in figure.findobj(matplotlib.text.Text):
        if _MICRO.search(text.get_text()):
            text.set_text(_MICRO.sub("µs", text.get_text()))


def save(drawn: Figure, folder: Path) -> dict[str, Path]:
    """Write PNG, SVG and PDF, without the time and the program's version in them; by ending."""
    folder.mkdir(exist_ok=True)
    _write_micro(drawn.figure)
    without: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }
    files = {}
    with applied():
        shapes.make_room(drawn.figure)
        width, height = drawn.figure.get_size_inches()
        # A footer that stands below the figure is part of the picture, and its place without one
        # is not.
        lowest = min((text.get_position()[1] for text in drawn.figure.texts), default=0) * height
        if not shapes.current().note:
            lowest = drawn.figure.get_tightbbox().y0
        is_cut = lowest < 0 or not shapes.current().note
        cut = Bbox.from_extents(0, lowest - 0.05, width, height) if is_cut else None
        for ending in FORMATS:
            files[ending] = folder / f"{drawn.name}.{ending}"
            drawn.figure.savefig(
                files[ending], dpi=sheet().dpi, metadata=without[ending], bbox_inches=cut
            )
    return files


def logarithmic(axis: matplotlib.axis.Axis, *subs: float) -> None:
    """Label a logarithmic axis with plain numbers at powers of ten and their multiples ``subs``."""
    if subs:
        axis.set_major_locator(matplotlib.ticker.LogLocator(subs=subs))
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def times(axis: matplotlib.axis.Axis, plan: Plan) -> str:
    """Return the unit for an axis of times, whose numbers are in ms."""
    if formatting.fine(plan):
        axis.set_major_formatter(
            matplotlib.ticker.FuncFormatter(lambda value, _: f"{value * 1e3:.8g}")
        )
    return formatting.unit(plan)


def cdf(values: Sequence[float] | Floats, sent: int) -> tuple[Floats, Floats]:
    """Return the distribution function of ``sent`` requests with the latencies ``values``.

    It is x ascending, and y, which ends at 1 - loss.
    """
    x = np.sort(np.asarray(values, dtype=np.float64))
    return x, np.arange(1, len(x) + 1, dtype=np.float64) / sent


def thinned(count: int, most: int = 400) -> npt.NDArray[np.intp]:
    """Return which of ``count`` ordered points to draw: all near the ends, ``most`` of the rest."""
    ends = np.concatenate([np.arange(min(50, count)), np.arange(max(0, count - 200), count)])
    return np.unique(
        np.concatenate([ends, np.linspace(0, count - 1, min(most, count)).round().astype(np.intp)])
    ).astype(np.intp)
