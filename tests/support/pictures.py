"""What every picture must be."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from qjump_mn.report.figures import style
from qjump_mn.report.figures.style import Figure


def assert_texts_inside(drawn: Figure) -> None:
    """No text leaves the picture, which a long footer makes longer; and no title runs into
    another."""
    drawn.figure.set_dpi(style.sheet().dpi)  # letters are not as wide at every size
    with style.applied():
        drawn.figure.draw_without_rendering()
    legends = [
        *drawn.figure.legends,
        *filter(None, (axes.get_legend() for axes in drawn.figure.axes)),
    ]
    texts = [*drawn.figure.texts, *(text for legend in legends for text in legend.get_texts())]
    axes: Any  # of their titles, the texts are private
    for axes in drawn.figure.axes:
        titles = [axes._left_title, axes.title, axes._right_title]
        texts += [axes.xaxis.label, axes.yaxis.label, *titles, *axes.texts]
        texts += [tick.label1 for axis in (axes.xaxis, axes.yaxis) for tick in axis._update_ticks()]
        boxes = [title.get_window_extent() for title in titles if title.get_text()]
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    picture = drawn.figure.bbox
    lowest = min((text.get_window_extent().y0 for text in drawn.figure.texts), default=picture.y0)
    for text in texts:
        if text.get_visible() and text.get_text():
            box = text.get_window_extent()
            assert picture.x0 <= box.x0 <= box.x1 <= picture.x1, text
            assert min(picture.y0, lowest) <= box.y0 <= box.y1 <= picture.y1, text
