"""Latencies as the paper and the course drew them: distribution functions, the axis broken where the
contended arms begin."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib.axes
import matplotlib.figure
import matplotlib.lines
import matplotlib.ticker
import numpy as np
import pyarrow.parquet as pq

from qjump_mn.model import ports
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.programs import registry
from qjump_mn.programs.base import WorkloadPlan
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary

from . import notes, published, style
from .notes import LEFT, RIGHT
from .style import Figure, Floats

BREAKS_ABOVE = 4.0
"""The axis is broken where an arm's least round trip is so many times the bound, with nothing in between."""

MAIN_INCHES = 6.0
"""How tall the figure is whose legend has ``LEGEND_ROWS``."""

LEGEND_ROWS, LEGEND_ROW_INCHES = 3, 0.2

NEAR = 0.05
"""Two lines' distance, as a share of the greater, below which their names would cover each other."""


class Curve(NamedTuple):
    """One arm: the latencies in ms of each seed that has data, and how many requests that seed sent; of the
    figure's workload or the arm's own."""

    arm: ArmPlan
    workload: WorkloadPlan
    seeds: tuple[int, ...]
    values: tuple[Floats, ...]
    sent: tuple[int, ...]
    look: style.Look

    @property
    def pooled(self) -> Floats:
        """All seeds' latencies, ascending."""
        return np.sort(np.concatenate(self.values))

    @property
    def loss(self) -> float:
        """Fraction of all requests without a reply."""
        return 1 - len(self.pooled) / sum(self.sent)

    @property
    def label(self) -> str:
        """The arm in the legend, with the median (of the seeds, as in the table of arms) and the loss."""
        medians = [float(values[(len(values) - 1) // 2]) for values in self.values if len(values)]
        median = f"median {notes.ms(statistics.median(medians))}" if medians else "no reply"
        return f"{self.arm.label}: {median}" + (f", {self.loss * 100:.3g} % lost" if self.loss else "")


class Lines(NamedTuple):
    """Where the reference lines are, in ms."""

    idle: float
    bound: float
    frames: float


def draw(run: RunDirectory, manifest: Manifest, arms: Sequence[ArmSummary]) -> list[Figure]:
    """The figure of the experiment and, if there are other arms with the workload, one of those; nothing
    where there is no data."""
    plan = manifest.plan
    curves = {arm.name: curve for arm in plan.arms if (curve := _curve(run, plan, arm)) is not None}
    main = [curves[name] for name in plan.figure.arms if name in curves]
    others = [curve for name, curve in curves.items() if name not in plan.figure.arms]
    figures = []
    with style.applied():
        if main:
            figures.append(
                _main(manifest, main, [curves[name] for name in plan.figure.detail if name in curves])
            )
        if others:
            figures.append(_others(manifest, [*([curves["idle"]] if "idle" in curves else []), *others]))
    return figures


def _curve(run: RunDirectory, plan: Plan, arm: ArmPlan) -> Curve | None:
    workload = min(
        (one for one in arm.workloads if not one.BACKGROUND),
        key=lambda one: one.name != plan.figure.workload,
        default=None,
    )
    if workload is None:
        return None
    seeds, values, sent = [], [], []
    for seed in plan.seeds:
        path = run.data(f"{arm.name}/{seed}") / f"{workload.name}.parquet"
        if path.is_file() and run.is_done(f"{arm.name}/{seed}"):
            table = registry.measures(workload).requests(pq.read_table(path))
            seeds.append(seed)
            values.append(np.sort(table["latency_us"].drop_null().to_numpy() / 1e3))
            sent.append(table.num_rows)
    return (
        Curve(
            arm, workload, tuple(seeds), tuple(values), tuple(sent), style.looks(plan)[arm.series or arm.name]
        )
        if seeds
        else None
    )


def _main(manifest: Manifest, curves: list[Curve], detail: list[Curve]) -> Figure:
    plan = manifest.plan
    lines = _lines(plan)
    inches = MAIN_INCHES + LEGEND_ROW_INCHES * max(0, -(-len(curves) // 2) - LEGEND_ROWS)
    figure = matplotlib.figure.Figure(figsize=(7.2, inches))
    near, far = _sides(curves, lines)
    up = MAIN_INCHES / inches  # a longer legend makes the figure taller, not the panels smaller
    grid = figure.add_gridspec(
        1, 2, left=LEFT, right=RIGHT, top=0.845 * up, bottom=0.51 * up, wspace=0.05, width_ratios=[1.25, 1.0]
    )
    left = figure.add_subplot(grid[0, 0] if far else grid[0, :])
    left.set_xlim(0, near)
    panels = [left]
    if far:
        right = figure.add_subplot(grid[0, 1], sharey=left)
        right.set_xlim(*far)
        right.tick_params(labelleft=False, left=False)
        right.spines["left"].set_visible(False)
        _mark_break(left, right)
        panels.append(right)
    for panel in panels:
        unit = style.times(panel.xaxis, plan)
        for index, curve in enumerate(curves):
            _step(panel, curve, index)
    _fractions(left)
    _references(left, lines, height=0.60)
    behind = _published(panels, plan)
    left.set_title("a  All arms" + (", on a broken axis" if far else ""))
    figure.text(
        (LEFT + RIGHT) / 2,
        0.455 * up,
        f"{plan.figure.quantity}, {unit}",
        ha="center",
        va="center",
        fontsize=8.5,
    )
    _legend(figure, curves, top=0.995)
    if detail:
        tail = figure.add_axes((LEFT, 0.15 * up, RIGHT - LEFT, 0.235 * up))
        _tail(tail, detail, lines)
        tail.set_xlabel(f"{plan.figure.quantity}, {style.times(tail.xaxis, plan)}")
        tail.set_title("b  The tail" + (", without the contended arms" if len(detail) < len(curves) else ""))
    notes.footer(figure, manifest, f"{_scale(manifest, curves)}; {_replicates(curves)}")
    return Figure(
        plan.figure.plot, plan.title, _caption(manifest, curves, lines, behind, tail=bool(detail)), figure
    )


def _others(manifest: Manifest, curves: list[Curve]) -> Figure:
    plan = manifest.plan
    lines = _lines(plan)
    figure = matplotlib.figure.Figure(figsize=(7.2, 4.0))
    panel = figure.add_axes((LEFT, 0.205, RIGHT - LEFT, 0.555))
    filled = [curve.pooled for curve in curves if len(curve.pooled)]
    panel.set_xscale("log")
    shortest = min([lines.idle or 1.0, *(float(values[0]) for values in filled)])
    longest = max([lines.bound or 1.0, *(float(values[-1]) for values in filled)])
    panel.set_xlim(0.62 * shortest, 1.4 * longest)
    style.logarithmic(panel.xaxis, 1.0, 2.0, 5.0)
    for index, curve in enumerate(curves):
        _step(panel, curve, index)
    _fractions(panel)
    panel.set_xlabel(f"{plan.figure.quantity}, {style.times(panel.xaxis, plan)} (logarithmic)")
    panel.set_title("The other arms")
    _references(panel, lines, height=0.75)
    _legend(figure, curves, top=0.99)
    notes.footer(figure, manifest, f"{_scale(manifest, curves)}; {_replicates(curves)}")
    return Figure(
        f"{plan.figure.plot}_others",
        f"{plan.title}: the other arms",
        _caption(manifest, curves, lines, "", tail=False),
        figure,
    )


def _fractions(panel: matplotlib.axes.Axes) -> None:
    panel.set_ylim(0, 1.025)
    panel.set_ylabel("fraction of requests")
    panel.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1.0, decimals=0, symbol=" %"))


def _lines(plan: Plan) -> Lines:
    """The round trip of an idle network, and the most that frames in transmission on its way add."""
    idle = plan.constants.get(f"{plan.figure.workload}_analytic_ms", 0.0)
    wait = plan.constants.get("wait_ms", 0.0)
    return Lines(idle, idle and idle + wait, wait / plan.constants["frame_ms"])


def _sides(curves: Sequence[Curve], lines: Lines) -> tuple[float, tuple[float, float] | None]:
    """Where the left part ends and from where to where the right part goes, if the curves fall in two
    groups."""
    filled = [curve.pooled for curve in curves if len(curve.pooled)]
    near = [values for values in filled if values[len(values) // 2] < lines.bound * BREAKS_ABOVE]
    far = [values for values in filled if values[len(values) // 2] >= lines.bound * BREAKS_ABOVE]
    everything = max(float(values[-1]) for values in filled) * 1.05 if filled else 1.0
    if not near or not far:
        return max(everything, lines.bound * 1.1), None
    # A single straggler (the first ping) must not push the break away: the tail panel shows it.
    end = max(lines.bound * 1.12, *(float(np.quantile(values, 0.999)) * 1.08 for values in near))
    return end, (end, max(everything, end * 2))


def _step(panel: matplotlib.axes.Axes, curve: Curve, index: int) -> None:
    look = curve.look
    x, y = style.cdf(curve.pooled, sum(curve.sent))
    if not len(x):
        return
    keep = style.thinned(len(x))
    steps, heights = np.concatenate([[x[0]], x[keep], [1e9]]), np.concatenate([[0], y[keep], [y[-1]]])
    # What ends just left of this part of the axis would be seen along its edge.
    left = max(0, int(np.searchsorted(steps, panel.get_xlim()[0], side="right")) - 1)
    panel.step(steps[left:], heights[left:], where="post", color=look.colour, linestyle=look.dashes, zorder=3)
    if len(curve.seeds) > 1:
        _band(panel, curve, look.colour)
    # A few markers, where they fall into this part of the axis: they survive a photocopier. Neighbours have
    # theirs at other heights.
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


def _band(panel: matplotlib.axes.Axes, curve: Curve, colour: str) -> None:
    """Between the least and the greatest round trip that the seeds have at each fraction."""
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


def _tail(panel: matplotlib.axes.Axes, curves: list[Curve], lines: Lines) -> None:
    """The fraction of requests that took longer, on a logarithmic scale, upside down: up is "all of them"."""
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
        max([lines.bound * 1.12, *(float(curve.pooled[-1]) * 1.08 for curve in curves if len(curve.pooled))]),
    )
    panel.set_ylabel("fraction of requests")
    _references(panel, lines, height=0.60)


def _references(panel: matplotlib.axes.Axes, lines: Lines, height: float) -> None:
    """Upright lines with their names along them, ``height`` being where these are centred, in fractions of
    the panel; on both sides of two that are near each other."""
    near = lines.bound - lines.idle < NEAR * lines.bound
    for x, text in ((lines.idle, "analytic, idle"), (lines.bound, f"idle + {lines.frames:.3g} frames")):
        if not x or (x is not lines.idle and lines.bound == lines.idle):
            continue
        panel.axvline(x, color=style.sheet().grey, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
        panel.annotate(
            f"{text} {notes.ms(x)}",
            (x, height),
            xycoords=("data", "axes fraction"),
            xytext=(2.5 if near and x is lines.bound else -2.5, 0),
            textcoords="offset points",
            rotation=90,
            ha="left" if near and x is lines.bound else "right",
            va="center",
            fontsize=7,
            color=style.sheet().grey,
        )


def _published(panels: list[matplotlib.axes.Axes], plan: Plan) -> str:
    """The published medians, scaled by the ratio of link rates, behind the curves; return the sentence for
    the caption."""
    looks, sentences = style.looks(plan), []
    for name in plan.figure.published:
        values = published.read(name)
        scale = values.rate_mbps / (plan.network.link.rate_bps / 1e6)
        medians = []
        for median in values.medians:
            x = median.us / 1e3 * scale
            look = looks.get(median.arm)  # somebody's experiment may name its arms otherwise
            _published_median(
                panels,
                x,
                look.colour if look else style.sheet().grey,
                "published" if scale == 1 else "published, scaled",
            )
            here = "" if scale == 1 else f" ({notes.ms(x)} here)"
            medians.append(f"{median.us:g} us{here} for {median.label}")
        stretched = "" if scale == 1 else f", stretched by the ratio of the link rates, {scale:g}"
        sentences.append(
            f"Behind, in outline: {values.title}, medians of {', '.join(medians)}{stretched}; they are "
            f"{values.measured}, so that orders of magnitude may be compared and no more. {values.source}."
        )
    return " ".join(sentences)


def _published_median(panels: list[matplotlib.axes.Axes], x: float, colour: str, label: str) -> None:
    for panel in panels:
        low, high = panel.get_xlim()
        if low <= x <= high:
            panel.axvline(x, color=colour, linewidth=6, alpha=0.13, zorder=0)
            panel.plot(
                [x],
                [0.5],
                marker="o",
                markersize=8,
                markerfacecolor="white",
                markeredgecolor=colour,
                markeredgewidth=1.3,
                zorder=5,
            )
            panel.annotate(
                label.replace(", ", ",\n"),
                (x, 0.5),
                xytext=(8, -2),
                textcoords="offset points",
                ha="left",
                va="center",
                fontsize=7,
                color=colour,
                zorder=6,
            )
            return
    panels[-1].text(
        0.52,
        0.5,
        f"{label}:\n{notes.ms(x)} \N{RIGHTWARDS ARROW}",
        transform=panels[-1].transAxes,
        ha="center",
        va="center",
        fontsize=7,
        color=colour,
        zorder=6,
    )


def _mark_break(left: matplotlib.axes.Axes, right: matplotlib.axes.Axes) -> None:
    look: dict[str, Any] = {
        "marker": [(-0.6, -1), (0.6, 1)],
        "markersize": 8,
        "linestyle": "none",
        "color": "#444444",
        "mew": 0.9,
        "clip_on": False,
    }
    left.plot([1], [0], transform=left.transAxes, **look)
    right.plot([0], [0], transform=right.transAxes, **look)


def _legend(figure: matplotlib.figure.Figure, curves: list[Curve], top: float) -> None:
    handles = []
    for curve in curves:
        look = curve.look
        line = matplotlib.lines.Line2D(
            [], [], color=look.colour, linestyle=look.dashes, marker=look.marker, label=curve.label
        )
        line.set(markeredgecolor="white", markeredgewidth=0.5)
        handles.append(line)
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(LEFT - 0.03, top),
        ncols=2,
        columnspacing=1.6,
        labelspacing=0.35,
    )


def _scale(manifest: Manifest, curves: list[Curve]) -> str:
    return notes.scale(manifest, [curve.arm for curve in curves])


def _replicates(curves: list[Curve]) -> str:
    seeds = {seed for curve in curves for seed in curve.seeds}
    sent = sorted({sent for curve in curves for sent in curve.sent})
    many = f"{sent[0]} to {sent[-1]}" if len(sent) > 3 else " or ".join(str(count) for count in sent)
    incomplete = [curve.arm.label for curve in curves if set(curve.seeds) != seeds]
    return f"{notes.replicates(seeds, incomplete)}, {many} requests each"


def _caption(manifest: Manifest, curves: list[Curve], lines: Lines, behind: str, *, tail: bool) -> str:
    plan = manifest.plan
    below = "Panel b stretches the upper end, one line a replicate. " if tail else ""
    what = "; ".join(
        dict.fromkeys(f"{curve.workload.label} ({curve.workload.describe()})" for curve in curves)
    )
    spread = " The band spans the replicates." if any(len(curve.seeds) > 1 for curve in curves) else ""
    ends = (
        " A curve ends at the fraction of requests that were answered."
        if any(curve.loss for curve in curves)
        else ""
    )
    return (
        f"{plan.figure.quantity.capitalize()} of {what}, preset {plan.preset}: {_scale(manifest, curves)}; "
        f"{_replicates(curves)}.{ends}{spread} "
        f"{_told(plan, lines)}{below}{behind}"
    ).strip()


def _told(plan: Plan, lines: Lines) -> str:
    """What the dashed lines are."""
    if not lines.idle:
        return ""
    return (
        f"Dashed: the analytic {plan.figure.quantity} of the idle network, {notes.ms(lines.idle)}, and with "
        f"{ports.told(plan.constants, plan.figure.workload)}, {notes.ms(lines.bound)}. "
    )
