"""Draw figures of another width: for a column or a page of a paper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib.figure
import matplotlib.text

WIDTH_INCHES = 7.2
"""How wide figures are unless somebody asks for another width."""
LEFT, RIGHT = 0.122, 0.975
"""Where panels begin and end, in widths of a figure of the usual width."""
SMALLEST = 0.75
"""A narrower figure has text of at least this share of the usual size."""
MEASURED_DPI = 600
"""Texts are measured at this resolution: at a low one, letters have a whole number of pixels."""
SCALED: tuple[str, ...] = (
    *("font.size", "axes.titlesize", "axes.labelsize", "axes.titlepad", "axes.labelpad"),
    *("xtick.labelsize", "ytick.labelsize", "xtick.major.pad", "ytick.major.pad"),
    *("legend.fontsize", "lines.linewidth", "lines.markersize"),
)
"""The rc parameters that follow the size of text."""


class Shape(NamedTuple):
    """The width of figures in inches, and whether they have the note below them."""

    width: float = WIDTH_INCHES
    note: bool = True

    @property
    def text(self) -> float:
        """Return how large text and heights are, as a share of the usual."""
        return max(self.width / WIDTH_INCHES, SMALLEST)

    @property
    def crowding(self) -> float:
        """Return how much wider text is in proportion to the figure than usual."""
        return self.text * WIDTH_INCHES / self.width


_shape = Shape()


def current() -> Shape:
    """Return the shape of the figures that are drawn."""
    return _shape


@contextmanager
def shaped(wanted: Shape) -> Iterator[None]:
    """Draw figures of this shape in the block."""
    global _shape
    usual, _shape = _shape, wanted
    try:
        yield
    finally:
        _shape = usual


def points(size: float) -> float:
    """Return a size of text in points for figures of the current shape."""
    return size * _shape.text


def figure(inches: float, **look: Any) -> matplotlib.figure.Figure:
    """Return an empty figure of the current shape; ``inches`` is its height at the usual width."""
    return matplotlib.figure.Figure(figsize=(_shape.width, inches * _shape.text), **look)


def scale(rc: Any) -> None:
    """Scale matplotlib's rc parameters that follow the size of text."""
    for key in SCALED:
        if not isinstance(rc[key], str):  # a size such as "medium" follows font.size
            rc[key] *= _shape.text


def make_room(figure: matplotlib.figure.Figure) -> None:
    """Move the panels of a narrow figure, whose labels take more of its width, to the right, and
    write texts smaller that would leave it."""
    if _shape.crowding == 1:
        return
    left, right = LEFT * _shape.crowding, 1 - (1 - RIGHT) * _shape.crowding
    scale = (right - left) / (RIGHT - LEFT)
    for panel in figure.get_axes():
        x, y, width, height = panel.get_position().bounds
        panel.set_position((left + (x - LEFT) * scale, y, width * scale, height))
    figure.set_dpi(MEASURED_DPI)
    figure.draw_without_rendering()
    for text in (part for panel in figure.get_axes() for part in panel.get_children()):
        if isinstance(text, matplotlib.text.Text) and text.get_text():
            box = text.get_window_extent()
            if box.x0 < figure.bbox.x1 < box.x1:
                fits = (figure.bbox.x1 - box.x0) / box.width
                text.set_fontsize(text.get_fontsize() * fits * 0.98)
