"""Draw distribution functions of latencies: an arm's curve, its tail, and its reference lines."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

import matplotlib.axes
import numpy as np
import pyarrow.parquet as pq

from qjump_mn.model import hooks
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.model.workload import WorkloadPlan
from qjump_mn.programs import registry
from qjump_mn.results import formatting
from qjump_mn.results.directory import RunDirectory

from . import shapes, style
from .numbers import Numbers
from .style import Floats

EDGE = 0.03
"""A line so near to an end, as a share of the axis, has its name on the other side."""


class Curve(NamedTuple):
    """One arm: each seed's latencies in ms, and how many requests it sent (maybe none).

    They are of the figure's workload or the arm's own. ``unit`` is the unit of printed times.
    """

    arm: ArmPlan
    workload: WorkloadPlan
    seeds: tuple[int, ...]
    values: tuple[Floats, ...]
    sent: tuple[int, ...]
    look: style.Look
    unit: str

    @property
    def pooled(self) -> Floats:
        """Return all seeds' latencies, ascending."""
        return np.sort(np.concatenate([np.empty(0), *self.values]))

    @property
    def loss(self) -> float:
        """Return the fraction of requests without a reply."""
        return 1 - len(self.pooled) / sum(self.sent)

    @property
    def label(self) -> str:
        """Return the arm's legend entry, with median (of the seeds, as in the table of arms) and
        loss."""
        medians = [float(values[(len(values) - 1) // 2]) for values in self.values if len(values)]
        median = (
            f"median {formatting.duration(statistics.median(medians), self.unit)}"
            if medians
            else "no reply"
        )
        return f"{self.arm.label}: {median}" + (
            f", {self.loss * 100:.3g} % lost" if self.loss else ""
        )


class Lines(NamedTuple):
    """The positions of the reference lines, in ms; ``unit`` is the unit of printed times."""

    idle: float
    bound: float
    frames: float
    unit: str


def of_arm(run: RunDirectory, plan: Plan, arm: ArmPlan) -> Curve | None:
    """Return an arm's curve; None if nothing was measured."""
    workload = min(
        (one for one in arm.workloads if not hooks.is_background(one)),
        key=lambda one: one.name != plan.shown.figure.workload,
        default=None,
    )
    if workload is None:
        return None
    seeds, values, sent, done = [], [], [], False
    for seed in plan.run.seeds:
        path = run.data(f"{arm.name}/{seed}") / f"{workload.name}.parquet"
        if path.is_file() and run.is_done(f"{arm.name}/{seed}"):
            done = True
            table = registry.measures(workload).requests(pq.read_table(path))
            if not table.num_rows:  # of no requests no share is answered
                continue
            seeds.append(seed)
            values.append(np.sort(table["latency_us"].drop_null().to_numpy() / 1e3))
            sent.append(table.num_rows)
    look = style.arm_looks(plan)[arm.name]
    measured = (tuple(seeds), tuple(values), tuple(sent))
    return Curve(arm, workload, *measured, look, formatting.unit(plan)) if done else None


def reference_lines(plan: Plan) -> Lines:
    """Return the idle round trip, and the most that frames in transmission add."""
    idle = plan.judged.constants.get(f"{plan.shown.figure.workload}_analytic_ms", 0.0)
    wait = plan.judged.constants.get("wait_ms", 0.0)
    return Lines(
        idle, idle and idle + wait, wait / plan.judged.constants["frame_ms"], formatting.unit(plan)
    )


def draw_curve(panel: matplotlib.axes.Axes, curve: Curve, index: int) -> None:
    """Draw the arm's distribution function on the panel's axis, as the ``index``-th of several."""
    look = curve.look
    x, y = style.cdf(curve.pooled, sum(curve.sent))
    if not len(x):
        return
    keep = style.thinned(len(x))
    steps, heights = (
        np.concatenate([[x[0]], x[keep], [1e9]]),
        np.concatenate([[0], y[keep], [y[-1]]]),
    )
    # What ends just left of this part of the axis would be seen along its edge.
    left = max(0, int(np.searchsorted(steps, panel.get_xlim()[0], side="right")) - 1)
    panel.step(
        steps[left:],
        heights[left:],
        where="post",
        color=look.colour,
        linestyle=look.dashes,
        zorder=3,
    )
    if len(curve.seeds) > 1:
        _band(panel, curve, look.colour)
    # A few markers, where they fall into this part of the axis: they survive a photocopier.
    # Neighbours have theirs at other heights.
    shares = np.array([0.1, 0.3, 0.5, 0.7, 0.9]) + 0.03 * (index % 4)
    at = np.unique(np.clip((shares * len(x)).astype(int), 0, len(x) - 1))
    low, high = panel.get_xlim()
    at = at[(x[at] >= low) & (x[at] <= high)]
    panel.plot(
        x[at],
        y[at],
        linestyle="none",
        marker=look.marker,
        color=look.colour,
        markeredgecolor="white",
        markeredgewidth=0.5,
        zorder=4,
    )


def drawn(curves: Sequence[Curve]) -> Numbers:
    """Return the curves' points over all replicates: the fraction answered within each time.

    Each trial's whole table is in its data/.
    """
    rows: list[tuple[str, str, float, float]] = []
    for curve in curves:
        x, y = style.cdf(curve.pooled, sum(curve.sent))
        keep = style.thinned(len(x))
        rows += [(curve.arm.label, curve.arm.name, float(x[at]), float(y[at])) for at in keep]
    return Numbers(("arm", "name", "latency, ms", "fraction of requests"), tuple(rows))


def _band(panel: matplotlib.axes.Axes, curve: Curve, colour: str) -> None:
    """Return the least and the greatest round trip of the seeds at each fraction."""
    least = min(len(values) / sent for values, sent in zip(curve.values, curve.sent, strict=True))
    if not least:
        return
    fractions = np.linspace(0, least, 400)
    at = np.array(
        [
            values[np.clip(np.ceil(fractions * sent).astype(int) - 1, 0, len(values) - 1)]
            for values, sent in zip(curve.values, curve.sent, strict=True)
        ]
    )
    panel.fill_betweenx(
        fractions, at.min(axis=0), at.max(axis=0), color=colour, alpha=0.22, linewidth=0, zorder=2
    )


def draw_tail(panel: matplotlib.axes.Axes, curves: list[Curve], lines: Lines) -> None:
    """Draw the fraction of slower requests on a logarithmic scale, upside down, so that up is
    "all"."""
    for curve in curves:
        look = curve.look
        for values, sent in zip(curve.values, curve.sent, strict=True):
            if len(values):
                keep = style.thinned(len(values))
                longer = 1 - (np.arange(1, len(values) + 1) - 0.5)[keep] / sent
                alone = len(curve.seeds) == 1
                panel.step(
                    values[keep],
                    longer,
                    where="post",
                    color=look.colour,
                    linestyle=look.dashes,
                    linewidth=1.7 if alone else 0.9,
                    zorder=3,
                )
    fewest = min(0.4 / max(sent for curve in curves for sent in curve.sent), 5e-3)
    panel.set_yscale("log")
    panel.set_ylim(1.15, fewest)
    ticks = [share for share in (1, 0.5, 0.1, 0.01, 0.001, 0.0001) if share >= fewest]
    panel.set_yticks(ticks, ["0 %", *(f"{100 * (1 - share):g} %" for share in ticks[1:])])
    panel.minorticks_off()
    panel.set_xlim(
        0,
        max(
            [
                lines.bound * 1.12,
                *(float(curve.pooled[-1]) * 1.08 for curve in curves if len(curve.pooled)),
            ]
        ),
    )
    panel.set_ylabel("fraction of requests")
    draw_references(panel, lines, height=0.5)


def draw_references(panel: matplotlib.axes.Axes, lines: Lines, height: float) -> None:
    """Draw upright lines with their names along them, centred at ``height`` (a fraction of the
    panel).

    Names stand right of the bound, because values below it come close to it.
    """
    for x, text in (
        (lines.idle, "analytic, idle"),
        (lines.bound, f"idle + {_frames(lines.frames)}"),
    ):
        if not x or (x is not lines.idle and lines.bound == lines.idle):
            continue
        panel.axvline(x, color=style.sheet().grey, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
        along, _ = panel.transAxes.inverted().transform(panel.transData.transform((x, 0)))
        behind = along < EDGE or (x is not lines.idle and along < 1 - EDGE)
        panel.annotate(
            f"{text} {formatting.duration(x, lines.unit)}",
            (x, height),
            xycoords=("data", "axes fraction"),
            xytext=(2.5 if behind else -2.5, 0),
            textcoords="offset points",
            rotation=90,
            ha="left" if behind else "right",
            va="center",
            fontsize=shapes.points(6.6),
            color=style.sheet().grey,
        )


def _frames(number: float) -> str:
    return f"{number:.3g} frame{'s' if number != 1 else ''}"
