"""Several runs' latencies in one picture: colours tell the arms apart, dashes the runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.figure
import matplotlib.ticker

from qjump_mn.cli.compare import Run
from qjump_mn.errors import UsageError, reason_of
from qjump_mn.report.figures import curves, style
from qjump_mn.results import formatting
from qjump_mn.results.directory import RunDirectory

ENDINGS = (".png", ".svg", ".pdf")
DASHES: tuple[style.Dashes, ...] = ("-", (0, (4, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)))
"""Of the first run and the others, again from the first after the last."""


def write(runs: Sequence[Run], path: Path) -> None:
    """Draw the distribution functions of the arms that all runs have into the file ``path``.

    Raises :class:`UsageError` for an ending that is no picture's, for runs without such arms, and where the
    file cannot be written.
    """
    if path.suffix not in ENDINGS:
        raise UsageError(f"{path} does not end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}: name a picture")
    with style.applied():
        figure = _drawn(runs)
        try:
            figure.savefig(path, dpi=200)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {reason_of(error)}") from None


def _drawn(runs: Sequence[Run]) -> matplotlib.figure.Figure:
    first = runs[0].manifest.plan
    looks, found = style.arm_looks(first), []
    for number, run in enumerate(runs):
        plan = run.manifest.plan
        for arm in plan.arms:
            curve = curves.of_arm(RunDirectory(run.path.resolve()), plan, arm)
            look = looks.get(arm.name)
            if curve is not None and look is not None and len(curve.pooled):
                dashes = DASHES[number % len(DASHES)]
                told = curve._replace(look=look._replace(dashes=dashes), unit=formatting.unit(first))
                found.append((arm.name, f"{run.letter}  {told.label}", told))
    everywhere = [one for one in found if sum(one[0] == other[0] for other in found) == len(runs)]
    if not everywhere:
        raise UsageError("the runs have no latencies of the same arm: there is nothing to draw")
    everywhere.sort(key=lambda one: list(looks).index(one[0]))
    rows = len(everywhere)
    figure = matplotlib.figure.Figure(figsize=(style.WIDTH_INCHES, 3.6 + 0.2 * rows), layout="constrained")
    panel = figure.subplots()
    panel.set_xscale("log")
    panel.set_xlim(
        0.8 * min(float(curve.pooled[0]) for *_, curve in everywhere),
        1.25 * max(float(curve.pooled[-1]) for *_, curve in everywhere),
    )
    panel.set_ylim(0, 1.025)
    style.logarithmic(panel.xaxis, 1.0, 2.0, 5.0)
    for index, (_, label, curve) in enumerate(everywhere):
        curves.draw_curve(panel, curve, index)
        panel.plot([], [], color=curve.look.colour, linestyle=curve.look.dashes, label=label)
    panel.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1.0, decimals=0, symbol=" %"))
    panel.set_ylabel("fraction of requests")
    panel.set_xlabel(f"{first.shown.figure.quantity}, {style.times(panel.xaxis, first)} (logarithmic)")
    figure.legend(loc="outside upper left", fontsize=7.5)
    return figure
