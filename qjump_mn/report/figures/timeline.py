"""memcached's latency and PTP's offset as time goes by: a panel for each arm, one above the other, as in
Figure 5; and the offsets of all in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib.axes
import matplotlib.figure
import numpy as np
import pyarrow.parquet as pq

from qjump_mn.model.plan import Plan, Trial
from qjump_mn.programs import registry
from qjump_mn.programs.base import WorkloadPlan
from qjump_mn.programs.measured import Timeline, Whole
from qjump_mn.results import tables, wording
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary

from . import notes, style
from .notes import LEFT, RIGHT
from .style import Figure

PANEL_INCHES = 1.75


class Line(NamedTuple):
    """A workload, and what its program draws of it."""

    workload: WorkloadPlan
    drawn: Timeline


class Panel(NamedTuple):
    """An arm with what is drawn of it, from its first replicate."""

    arm: ArmSummary
    seed: int
    lines: tuple[Line, ...]


def draw(run: RunDirectory, manifest: Manifest, arms: Sequence[ArmSummary]) -> list[Figure]:
    """The figure of the experiment, one of the arms in ``detail`` on an axis that suits them, and one of
    PTP's offsets; those with data."""
    plan = manifest.plan
    panels = {
        panel.arm.name: panel
        for arm in arms
        if arm.name in plan.figure.arms and (panel := _panel(run, plan, arm))
    }
    shown = [panels[name] for name in plan.figure.arms if name in panels]
    detail = [panels[name] for name in plan.figure.detail if name in panels]
    figures = []
    with style.applied():
        if shown:
            figures.append(_stacked(manifest, shown, plan.figure.plot, plan.title))
        if detail and len(detail) < len(shown):
            figures.append(
                _stacked(
                    manifest,
                    detail,
                    f"{plan.figure.plot}_detail",
                    f"{plan.title}: without the contended arms",
                )
            )
        for whole in dict.fromkeys(
            line.drawn.whole for panel in shown for line in panel.lines if line.drawn.whole
        ):
            figures.append(_whole(manifest, shown, whole))
    return figures


def _panel(run: RunDirectory, plan: Plan, arm: ArmSummary) -> Panel | None:
    for trial in plan.unperturbed.trials():
        if trial.arm.name == arm.name and run.is_done(trial.name):
            lines = [_line(run, trial, workload) for workload in trial.arm.workloads]
            return Panel(arm, trial.seed, tuple(line for line in lines if line is not None))
    return None


def _line(run: RunDirectory, trial: Trial, workload: WorkloadPlan) -> Line | None:
    path, timeline = run.data(trial.name) / f"{workload.name}.parquet", registry.measures(workload).timeline
    if timeline is None or not path.is_file():
        return None
    return Line(workload, timeline(pq.read_table(path), workload, trial, tables.facts(run, trial)))


def _stacked(manifest: Manifest, panels: list[Panel], name: str, title: str) -> Figure:
    plan = manifest.plan
    inches = PANEL_INCHES * len(panels) + 1.5
    figure = matplotlib.figure.Figure(figsize=(7.2, inches))
    grid = figure.add_gridspec(
        len(panels), 1, left=LEFT, right=RIGHT, top=1 - 0.6 / inches, bottom=0.85 / inches, hspace=0.28
    )
    axes = grid.subplots(sharex=True, sharey=True, squeeze=False)[:, 0]
    for index, (axis, panel) in enumerate(zip(axes, panels, strict=True)):
        for line in panel.lines:
            _plot(axis, line.drawn, line.drawn.colour, line.drawn.label)
        axis.axhline(0, color=style.sheet().grey, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        axis.set_title(f"{'abcdef'[index]}  {panel.arm.label}")
        axis.set_title(
            _said(panel, fine=wording.fine(plan)),
            loc="right",
            fontsize=7.2,
            fontweight="normal",
            color=style.sheet().grey,
        )
        axis.set_ylabel(style.times(axis.yaxis, plan))
    axes[-1].set_xlim(0, plan.duration_ns / 1e9)
    axes[-1].set_xlabel("time since the measurement began, s")
    handles = {
        line.get_label(): line
        for axis in axes
        for line in axis.lines
        if not str(line.get_label()).startswith("_")
    }
    figure.legend(
        handles=list(handles.values()), loc="upper center", bbox_to_anchor=((LEFT + RIGHT) / 2, 1.0), ncols=2
    )
    scale = _scale(manifest, panels)
    notes.footer(figure, manifest, scale)
    what = "; ".join(
        dict.fromkeys(
            f"{line.workload.label} ({line.workload.describe()})" for panel in panels for line in panel.lines
        )
    )
    arms = ", ".join(panel.arm.label for panel in panels)
    text = f"{'; '.join(map(str, handles))}: {what}, for {arms}, preset {plan.preset}: {scale}."
    broken = dict.fromkeys(
        line.drawn.gap for panel in panels for line in panel.lines if np.isnan(line.drawn.y).any()
    )
    gaps = "".join(f" A gap is a time {gap}." for gap in broken)
    return Figure(
        name,
        title,
        f"{text}{gaps} All panels have the same axes; the numbers above them are those of all replicates.",
        figure,
    )


def _whole(manifest: Manifest, panels: list[Panel], whole: Whole) -> Figure:
    plan = manifest.plan
    figure = matplotlib.figure.Figure(figsize=(7.2, 3.4))
    axis = figure.add_axes((LEFT, 0.25, RIGHT - LEFT, 0.6))
    looks = style.looks(plan)
    for panel in panels:
        for line in panel.lines:
            if line.drawn.whole == whole:
                _plot(
                    axis,
                    line.drawn,
                    looks[panel.arm.name].colour,
                    panel.arm.label,
                    looks[panel.arm.name].dashes,
                )
    axis.axhline(0, color=style.sheet().grey, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    axis.set_xlim(0, plan.duration_ns / 1e9)
    axis.set_xlabel("time since the measurement began, s")
    axis.set_ylabel(whole.axis.removesuffix("ms") + style.times(axis.yaxis, plan))
    figure.legend(loc="upper center", bbox_to_anchor=((LEFT + RIGHT) / 2, 1.0), ncols=3)
    scale = _scale(manifest, panels)
    notes.footer(figure, manifest, scale)
    arms = ", ".join(panel.arm.label for panel in panels)
    text = f"{whole.title} for {arms}, {whole.source}, preset {plan.preset}: {scale}."
    return Figure(f"{plan.figure.plot}_{whole.name}", f"{plan.title}: {whole.title}", text, figure)


def _plot(
    axis: matplotlib.axes.Axes, line: Timeline, colour: str, label: str, dashes: style.Dashes = "-"
) -> None:
    # A bin between two empty ones is seen as a point only.
    marker = "." if len(line.x) <= 60 or np.isnan(line.y).any() else ""
    axis.plot(
        line.x, line.y, color=colour, linestyle=dashes, linewidth=1.1, marker=marker, label=label, zorder=3
    )


def _said(panel: Panel, *, fine: bool) -> str:
    """The numbers of a panel, in a line."""
    measures = panel.arm.measures
    lines = [line for line in panel.lines if line.drawn.measure in measures.get(line.workload.name, {})]
    return ", ".join(
        line.drawn.words.format(f"{value * 1e3:.3g} us" if fine else notes.ms(value))
        for line in lines
        for value in [measures[line.workload.name][line.drawn.measure].median]
    )


def _scale(manifest: Manifest, panels: list[Panel]) -> str:
    names = [panel.arm.name for panel in panels]
    seeds = {panel.seed for panel in panels}
    drawn = f"; drawn: seed {', '.join(map(str, sorted(seeds)))}" if len(manifest.plan.seeds) > 1 else ""
    arms = [arm for arm in manifest.plan.arms if arm.name in names]
    return f"{notes.scale(manifest, arms)}; {notes.replicates(manifest.plan.seeds)}{drawn}"
