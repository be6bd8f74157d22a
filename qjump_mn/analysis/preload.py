"""Load templates, fonts and drawing modules while the last trials still run."""

from __future__ import annotations

import io

import matplotlib.figure

from qjump_mn.report import templating
from qjump_mn.report.figures import style


def load() -> None:
    """Compile the templates, and draw an empty figure in all formats, which loads fonts and
    modules."""
    templating.load()
    with style.applied():
        figure = matplotlib.figure.Figure(figsize=(1.0, 1.0))
        figure.subplots().set_title("0")
        for ending in style.FORMATS:
            figure.savefig(io.BytesIO(), format=ending)
