"""One style for every figure: what an arm looks like, sizes, and files that are the same bytes for the same data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
import matplotlib.axis
import matplotlib.figure
import matplotlib.ticker
import numpy as np
import numpy.typing as npt

from qjump_mn.model import scheme
from qjump_mn.model.plan import Plan
from qjump_mn.results import wording

mpl.use("Agg")  # never a window, and no display is needed

Floats = npt.NDArray[np.float64]
Dashes = tuple[float, tuple[float, ...]] | Literal["-"]

DPI = 200
FORMATS = ("png", "svg", "pdf")
GREY = "#5a5a5a"

SHEET: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so a figure does not depend on the machine's fonts
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "legend.handlelength": 2.8,
    "lines.linewidth": 1.7,
    "lines.markersize": 4.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "qjump-mn",
    "pdf.fonttype": 42,
}


class Look(NamedTuple):
    """How an arm is drawn, on every figure: told apart by its colour, and without colours by dashes and marker."""

    colour: str
    dashes: Dashes
    marker: str


# Mostly the palette of Wong (Nature Methods 8:441, 2011), which colour-blind readers can tell apart; schemes choose theirs themselves.
_PALETTE = ("#56B4E9", "#CC79A7", "#009E73", "#E69F00", "#0072B2", "#B8A800", "#882255")

_DASHED: dict[scheme.Dashes, Dashes] = {
    "solid": "-",
    "dashed": (0, (3.5, 2.5)),
    "dotted": (0, (1, 1.2)),
    "dashdot": (0, (5, 1.2, 1, 1.2)),
    "long": (0, (6, 1.2)),
    "short": (0, (3, 1)),
}
_DASHES: tuple[Dashes, ...] = ("-", (0, (3, 1, 1, 1)))

DASHES: tuple[Dashes, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
"""For the measures of one series."""

_OTHERS = [Look(colour, dashes, marker) for dashes in _DASHES for colour, marker in zip(_PALETTE, "h*8pdHX", strict=True)]


class Figure(NamedTuple):
    """A figure before it is saved; ``caption`` is plain text and stands alone."""

    name: str
    title: str
    caption: str
    figure: matplotlib.figure.Figure


def looks(plan: Plan) -> dict[str, Look]:
    """A look for each arm of ``plan``, or series, no two the same but for those of one scheme and label.

    A scheme's goes to its first arm, so that the scheme looks alike on every figure, and to those that are called like it, for they are in
    another panel; other arms of it have what is left, in the plan's order.
    """
    schemes = {arm.series or arm.name: arm.scheme.name for arm in plan.arms}
    labels = wording.series_labels(plan)
    firsts: dict[str, str] = {}
    for name in dict.fromkeys([*plan.figure.arms, *schemes]):
        firsts.setdefault(schemes[name], name)
    own = {name: _of_scheme(plan.schemes[key].look) for name, key in schemes.items() if labels[name] == labels[firsts[key]]}
    return {**own, **unlike([name for name in schemes if name not in own], own.values())}


def unlike(names: Sequence[str], taken: Iterable[Look] = ()) -> dict[str, Look]:
    """A look for each of ``names``, no two the same, whose colours are not ``taken`` as long as there are others."""
    colours = {look.colour for look in taken}
    free = sorted(_OTHERS, key=lambda look: look.colour in colours)
    return {name: free[index % len(free)] for index, name in enumerate(names)}


def _of_scheme(look: scheme.Look) -> Look:
    return Look(look.colour, _DASHED[look.dashes], look.marker)


@contextmanager
def sheet() -> Iterator[None]:
    """The style sheet, while a figure is drawn or saved."""
    # From matplotlib's own defaults, so that nobody's matplotlibrc changes a figure; the backend is none of the style's business.
    with mpl.rc_context():
        mpl.rcParams.update({key: value for key, value in mpl.rcParamsDefault.items() if key != "backend"})
        mpl.rcParams.update(SHEET)
        yield


def save(drawn: Figure, folder: Path) -> dict[str, Path]:
    """Write PNG, SVG and PDF, without the time and the program's version in them; by ending."""
    folder.mkdir(exist_ok=True)
    without: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }
    files = {}
    with sheet():
        for ending in FORMATS:
            files[ending] = folder / f"{drawn.name}.{ending}"
            drawn.figure.savefig(files[ending], dpi=DPI, metadata=without[ending])
    return files


def logarithmic(axis: matplotlib.axis.Axis, *subs: float) -> None:
    """Plain numbers at the powers of ten of a logarithmic axis, and at their multiples ``subs``; no small ticks."""
    if subs:
        axis.set_major_locator(matplotlib.ticker.LogLocator(subs=subs))
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def times(axis: matplotlib.axis.Axis, plan: Plan) -> str:
    """The unit in which the times along an axis are told, whose numbers are in ms."""
    if not wording.fine(plan):
        return "ms"
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value * 1e3:.6g}"))
    return "us"


def cdf(values: Sequence[float] | Floats, sent: int) -> tuple[Floats, Floats]:
    """The distribution function of ``sent`` requests of which ``values`` came back: x ascending and y, which ends at 1 - loss."""
    x = np.sort(np.asarray(values, dtype=np.float64))
    return x, np.arange(1, len(x) + 1, dtype=np.float64) / sent


def thinned(count: int, most: int = 400) -> npt.NDArray[np.intp]:
    """Which of ``count`` ordered points to draw: the ends, where every point is seen, whole; ``most`` of the rest."""
    ends = np.concatenate([np.arange(min(50, count)), np.arange(max(0, count - 200), count)])
    return np.unique(np.concatenate([ends, np.linspace(0, count - 1, min(most, count)).round().astype(np.intp)])).astype(np.intp)
