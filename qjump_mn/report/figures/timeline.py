"""memcached's latency and PTP's offset as time goes by: a panel for each arm, one above the other, as in Figure 5; and the offsets of all in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib.axes
import matplotlib.figure
import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from qjump_mn.model.plan import Plan, Trial
from qjump_mn.model.programs import AnyPlan, MemcachedPlan, PtpPlan
from qjump_mn.results import tables
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary
from qjump_mn.results.ptp import measured, offsets_us

from . import notes, style
from .notes import LEFT, RIGHT
from .style import Figure, Floats

PANEL_INCHES = 1.75
BINS_S = (0.25, 2.5)
"""Over which means are taken: the paper's, or ten of them where an arm has fewer SETs than ``FEWEST`` in one."""
FEWEST = 5

_COLOURS = {MemcachedPlan: "#882255", PtpPlan: "#0072B2"}
"""As published: dark red and blue."""


class Line(NamedTuple):
    """A workload's values: s since the measurement began, and ms; nan is a bin without a request that was answered.

    ``measure`` is the one that is told of it, in ``words``.
    """

    workload: AnyPlan
    label: str
    measure: str
    words: str
    x: Floats
    y: Floats


class Panel(NamedTuple):
    """An arm with what is drawn of it, from its first replicate."""

    arm: ArmSummary
    seed: int
    lines: tuple[Line, ...]


def draw(run: RunDirectory, manifest: Manifest, arms: Sequence[ArmSummary]) -> list[Figure]:
    """The figure of the experiment, one of the arms in ``detail`` on an axis that suits them, and one of PTP's offsets; those with data."""
    plan = manifest.plan
    panels = {panel.arm.name: panel for arm in arms if arm.name in plan.figure.arms and (panel := _panel(run, plan, arm))}
    shown = [panels[name] for name in plan.figure.arms if name in panels]
    detail = [panels[name] for name in plan.figure.detail if name in panels]
    figures = []
    with style.applied():
        if shown:
            figures.append(_stacked(manifest, shown, plan.figure.plot, plan.title))
        if detail and len(detail) < len(shown):
            figures.append(_stacked(manifest, detail, f"{plan.figure.plot}_detail", f"{plan.title}: without the contended arms"))
        if any(isinstance(line.workload, PtpPlan) for panel in shown for line in panel.lines):
            figures.append(_offsets(manifest, shown))
    return figures


def _panel(run: RunDirectory, plan: Plan, arm: ArmSummary) -> Panel | None:
    for trial in plan.trials():
        if trial.arm.name == arm.name and run.is_done(trial.name):
            lines = [_line(run, trial, workload) for workload in trial.arm.workloads]
            return Panel(arm, trial.seed, tuple(line for line in lines if line is not None))
    return None


def _line(run: RunDirectory, trial: Trial, workload: AnyPlan) -> Line | None:
    path = run.data(trial.name) / f"{workload.name}.parquet"
    if not path.is_file():
        return None
    facts = tables.facts(run, trial)
    if isinstance(workload, PtpPlan):
        inside = offsets_us(measured(pq.read_table(path), facts, trial))
        x, y = (inside["at_ns"].to_numpy() - facts.began_utc_ns) / 1e9, inside["offset_us"].to_numpy() / 1e3
        return Line(workload, "PTP offset", "offset_rms_ms", "offset RMS {}", x, y)
    if isinstance(workload, MemcachedPlan):
        sets = pq.read_table(path).filter((pc.field("op") == "SET") & pc.field("latency_us").is_valid())
        duration_s = trial.duration_ns / 1e9
        width_s = next((width for width in BINS_S if sets.num_rows * width >= FEWEST * duration_s), BINS_S[-1])
        x, y = means((sets["due_ns"].to_numpy() - facts.began_ns) / 1e9, sets["latency_us"].to_numpy() / 1e3, width_s, duration_s)
        return Line(workload, "memcached, mean of SET latencies", "set_mean_ms", f"mean SET {{}} (drawn: of {width_s:g} s each)", x, y)
    return None


def means(at_s: Floats, values: Floats, width_s: float, duration_s: float) -> tuple[Floats, Floats]:
    """The middle of each bin of ``width_s``, up to ``duration_s``, and the mean of the values in it; nan where there are none."""
    edges = np.arange(0, duration_s + width_s / 2, width_s)
    counts, _ = np.histogram(at_s, edges)
    sums, _ = np.histogram(at_s, edges, weights=values)
    y = np.full(len(counts), np.nan)
    np.divide(sums, counts, out=y, where=counts > 0)
    return (edges[:-1] + edges[1:]) / 2, y


def _stacked(manifest: Manifest, panels: list[Panel], name: str, title: str) -> Figure:
    plan = manifest.plan
    inches = PANEL_INCHES * len(panels) + 1.5
    figure = matplotlib.figure.Figure(figsize=(7.2, inches))
    grid = figure.add_gridspec(len(panels), 1, left=LEFT, right=RIGHT, top=1 - 0.6 / inches, bottom=0.85 / inches, hspace=0.28)
    axes = grid.subplots(sharex=True, sharey=True, squeeze=False)[:, 0]
    for index, (axis, panel) in enumerate(zip(axes, panels, strict=True)):
        for line in panel.lines:
            _plot(axis, line, _COLOURS[type(line.workload)], line.label)
        axis.axhline(0, color=style.sheet().grey, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        axis.set_title(f"{'abcdef'[index]}  {panel.arm.label}")
        axis.set_title(_said(panel), loc="right", fontsize=7.2, fontweight="normal", color=style.sheet().grey)
        axis.set_ylabel("ms")
    axes[-1].set_xlim(0, plan.duration_ns / 1e9)
    axes[-1].set_xlabel("time since the measurement began, s")
    handles = {line.get_label(): line for axis in axes for line in axis.lines if not str(line.get_label()).startswith("_")}
    figure.legend(handles=list(handles.values()), loc="upper center", bbox_to_anchor=((LEFT + RIGHT) / 2, 1.0), ncols=2)
    said = _scale(manifest, panels)
    notes.footer(figure, manifest, said)
    what = "; ".join(dict.fromkeys(f"{line.workload.label} ({line.workload.describe()})" for panel in panels for line in panel.lines))
    text = f"{'; '.join(map(str, handles))}: {what}, for {', '.join(panel.arm.label for panel in panels)}, preset {plan.preset}: {said}."
    gaps = " A gap is a time without an answered SET." if any(np.isnan(line.y).any() for panel in panels for line in panel.lines) else ""
    return Figure(name, title, f"{text}{gaps} All panels have the same axes; the numbers above them are those of all replicates.", figure)


def _offsets(manifest: Manifest, panels: list[Panel]) -> Figure:
    plan = manifest.plan
    figure = matplotlib.figure.Figure(figsize=(7.2, 3.4))
    axis = figure.add_axes((LEFT, 0.25, RIGHT - LEFT, 0.6))
    looks = style.looks(plan)
    for panel in panels:
        for line in panel.lines:
            if isinstance(line.workload, PtpPlan):
                _plot(axis, line, looks[panel.arm.name].colour, panel.arm.label, looks[panel.arm.name].dashes)
    axis.axhline(0, color=style.sheet().grey, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    axis.set_xlim(0, plan.duration_ns / 1e9)
    axis.set_xlabel("time since the measurement began, s")
    axis.set_ylabel("PTP offset, ms")
    figure.legend(loc="upper center", bbox_to_anchor=((LEFT + RIGHT) / 2, 1.0), ncols=3)
    said = _scale(manifest, panels)
    notes.footer(figure, manifest, said)
    text = f"PTP's offset for {', '.join(panel.arm.label for panel in panels)}, as in Figure 1a of the paper, preset {plan.preset}: {said}."
    return Figure(f"{plan.figure.plot}_offset", f"{plan.title}: PTP's offset", text, figure)


def _plot(axis: matplotlib.axes.Axes, line: Line, colour: str, label: str, dashes: style.Dashes = "-") -> None:
    # A bin between two empty ones is seen as a point only.
    marker = "." if len(line.x) <= 60 or np.isnan(line.y).any() else ""
    axis.plot(line.x, line.y, color=colour, linestyle=dashes, linewidth=1.1, marker=marker, label=label, zorder=3)


def _said(panel: Panel) -> str:
    """The numbers of a panel, in a line."""
    measures = panel.arm.measures
    known = [line for line in panel.lines if line.measure in measures.get(line.workload.name, {})]
    return ", ".join(line.words.format(notes.ms(measures[line.workload.name][line.measure].median)) for line in known)


def _scale(manifest: Manifest, panels: list[Panel]) -> str:
    names = [panel.arm.name for panel in panels]
    seeds = {panel.seed for panel in panels}
    drawn = f"; drawn: seed {', '.join(map(str, sorted(seeds)))}" if len(manifest.plan.seeds) > 1 else ""
    return f"{notes.scale(manifest, [arm for arm in manifest.plan.arms if arm.name in names])}; {notes.replicates(manifest.plan.seeds)}{drawn}"
