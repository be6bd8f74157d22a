"""``compare --figure``: draw the latencies of several runs into one figure.

Colours distinguish the arms, and dashes the runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import matplotlib.figure
import matplotlib.ticker

from qjump_mn.cli.compare import Run
from qjump_mn.errors import UsageError, reason_of
from qjump_mn.report.figures import curves, shapes, style
from qjump_mn.results import formatting
from qjump_mn.results.directory import RunDirectory

ENDINGS = (".png", ".svg", ".pdf")
DASHES: tuple[style.Dashes, ...] = ("-", (0, (4, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)))
"""The dashes of the first run, the second and so on; after the last they start again."""


def write(runs: Sequence[Run], path: Path) -> None:
    """Draw the latency distributions of the arms that are in all runs into the file ``path``.

    Raises :class:`UsageError` for another ending than ``ENDINGS``, for runs without a common arm,
    and if the file cannot be written.
    """
    if path.suffix not in ENDINGS:
        raise UsageError(
            f"{path} does not end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}: name a picture"
        )
    with style.applied():
        figure = _draw(runs)
        try:
            figure.savefig(path, dpi=200)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {reason_of(error)}") from None


def _draw(runs: Sequence[Run]) -> matplotlib.figure.Figure:
    first = runs[0].manifest.plan
    looks, all_curves = style.arm_looks(first), []
    for number, run in enumerate(runs):
        plan = run.manifest.plan
        for arm in plan.arms:
            curve = curves.of_arm(RunDirectory(run.path.resolve()), plan, arm)
            look = looks.get(arm.name)
            if curve is not None and look is not None and len(curve.pooled):
                dashes = DASHES[number % len(DASHES)]
                styled = curve._replace(
                    look=look._replace(dashes=dashes), unit=formatting.unit(first)
                )
                all_curves.append((arm.name, f"{run.letter}  {styled.label}", styled))
    counts = Counter(name for name, *_ in all_curves)
    common = [entry for entry in all_curves if counts[entry[0]] == len(runs)]
    if not common:
        raise UsageError("the runs have no latencies of the same arm: there is nothing to draw")
    common.sort(key=lambda entry: list(looks).index(entry[0]))
    rows = len(common)
    figure = shapes.figure(3.6 + 0.2 * rows, layout="constrained")
    panel = figure.subplots()
    panel.set_xscale("log")
    panel.set_xlim(
        0.8 * min(float(curve.pooled[0]) for *_, curve in common),
        1.25 * max(float(curve.pooled[-1]) for *_, curve in common),
    )
    panel.set_ylim(0, 1.025)
    style.logarithmic(panel.xaxis, 1.0, 2.0, 5.0)
    for index, (_, label, curve) in enumerate(common):
        curves.draw_curve(panel, curve, index)
        panel.plot([], [], color=curve.look.colour, linestyle=curve.look.dashes, label=label)
    panel.yaxis.set_major_formatter(
        matplotlib.ticker.PercentFormatter(1.0, decimals=0, symbol=" %")
    )
    panel.set_ylabel("fraction of requests")
    panel.set_xlabel(
        f"{first.shown.figure.quantity}, {style.times(panel.xaxis, first)} (logarithmic)"
    )
    figure.legend(loc="outside upper left", fontsize=7.5)
    return figure
