"""Load what every analysis needs and a mere import does not, while the trials that it waits for still run."""

from __future__ import annotations

import io

import matplotlib.figure

from qjump_mn.report import templating
from qjump_mn.report.figures import style


def load() -> None:
    """Compile the templates, and draw a figure of no run in all formats: that finds the fonts and loads the
    modules of each format."""
    templating.load()
    with style.applied():
        figure = matplotlib.figure.Figure(figsize=(1.0, 1.0))
        figure.subplots().set_title("0")
        for ending in style.FORMATS:
            figure.savefig(io.BytesIO(), format=ending)
