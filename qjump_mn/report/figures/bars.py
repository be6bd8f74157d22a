"""Measures as bars, a group for each arm; the whiskers span the replicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.axes
import matplotlib.figure
import matplotlib.patches
import numpy as np

from qjump_mn.model.experiment import PanelSpec
from qjump_mn.model.plan import Plan
from qjump_mn.results import panels
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary

from . import notes, style
from .notes import LEFT, RIGHT
from .style import Figure

PANEL_INCHES = 2.6
SHADES = (1.0, 0.55, 0.3)
"""How strong the arm's colour is for each measure of a panel."""


def draw(run: RunDirectory, manifest: Manifest, arms: Sequence[ArmSummary]) -> list[Figure]:
    """The figure of the experiment; nothing where there is no data."""
    plan = manifest.plan
    by_name = {arm.name: arm for arm in arms}
    shown = [by_name[name] for name in plan.figure.arms if name in by_name and by_name[name].done]
    if not shown:
        return []
    stack = plan.figure.panels
    with style.applied():
        inches = PANEL_INCHES * len(stack) + 1.1
        figure = matplotlib.figure.Figure(figsize=(7.2, inches))
        grid = figure.add_gridspec(
            len(stack), 1, left=LEFT, right=RIGHT, top=1 - 0.35 / inches, bottom=0.85 / inches, hspace=0.25
        )
        for index, panel in enumerate(stack):
            axis = figure.add_subplot(grid[index, 0])
            _panel(axis, plan, panel, shown, by_name)
            axis.set_title("abcdef"[index] if len(stack) > 1 else "", loc="left")
        seeds = notes.seeds(shown)
        drawn = [arm for arm in plan.arms if arm.name in plan.figure.arms]
        scale = f"{notes.scale(manifest, drawn)}; {notes.replicates(seeds)}"
        notes.footer(figure, manifest, scale)
    panel_texts = "; ".join(
        f"{panel.label}: "
        f"{', '.join(_heading(plan, entry) for entry in panel.measures)}{notes.against(plan, panel)}"
        for panel in stack
    )
    spread = notes.spans("whiskers span", seeds)
    return [
        Figure(
            plan.figure.plot,
            plan.title,
            f"{panel_texts}, for {', '.join(arm.label for arm in shown)}, preset {plan.preset}: "
            f"{scale}.{spread}",
            figure,
        )
    ]


def _panel(
    axis: matplotlib.axes.Axes,
    plan: Plan,
    panel: PanelSpec,
    arms: Sequence[ArmSummary],
    all_arms: Mapping[str, ArmSummary],
) -> None:
    looks = style.looks(plan)
    width = 0.8 / len(panel.measures)
    for index, entry in enumerate(panel.measures):
        for place, arm in enumerate(arms):
            spread = panels.value(plan, panel, entry, arm.name, all_arms)
            x = place + (index - (len(panel.measures) - 1) / 2) * width
            if spread is None:
                axis.annotate(
                    "no value",
                    (x, 0.02),
                    xycoords=("data", "axes fraction"),
                    ha="center",
                    fontsize=6.6,
                    rotation=90,
                    color=style.sheet().grey,
                )
                continue
            axis.bar(
                x, spread.median, width * 0.92, color=looks[arm.name].colour, alpha=SHADES[index], zorder=3
            )
            if len(spread.values) > 1:
                axis.vlines(x, spread.minimum, spread.maximum, color="#333333", linewidth=0.9, zorder=4)
            axis.annotate(
                _number(spread.median),
                (x, spread.maximum),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=6.8,
                zorder=5,
            )
    axis.set_xticks(np.arange(len(arms)), [arm.label for arm in arms])
    axis.set_ylabel(panel.label)
    axis.grid(axis="x", visible=False)
    if panel.log:
        axis.set_yscale("log")
        style.logarithmic(axis.yaxis, 1, 2, 5)
    if panel.relative_to:
        axis.axhline(1, color="#333333", linewidth=0.9, linestyle=(0, (1, 1.2)), zorder=4)
    axis.margins(y=0.12)
    if len(panel.measures) > 1:
        shaded = zip(panel.measures, SHADES, strict=False)
        handles = [
            matplotlib.patches.Patch(facecolor="#333333", alpha=shade, label=_heading(plan, entry))
            for entry, shade in shaded
        ]
        axis.legend(
            handles=handles,
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            ncols=len(handles),
            fontsize=7.2,
            handlelength=1.2,
            borderpad=0.2,
        )


def _number(value: float) -> str:
    """Three digits, or all of those in front of the point."""
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"


def _heading(plan: Plan, entry: str) -> str:
    """A measure by its name, and by its workload's where the figure has several."""
    several = len({other.partition(".")[0] for panel in plan.figure.panels for other in panel.measures}) > 1
    return notes.heading(plan, entry, named=several)
