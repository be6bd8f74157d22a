"""Draw measures as bars, in a group for each arm; whiskers span the replicates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.artist
import matplotlib.axes
import matplotlib.figure
import matplotlib.patches
import numpy as np

from qjump_mn.model.experiment import PanelSpec
from qjump_mn.model.plan import Plan
from qjump_mn.results import panels
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary, Spread

from . import axes as published_axes
from . import behind, notes, numbers, shapes, style
from .behind import TIMES, Behind
from .shapes import LEFT, RIGHT
from .style import Figure

PANEL_INCHES = 2.6
ACROSS, LETTER_INCHES, TILT = 110, 0.07, math.radians(30)
"""So many letters have room below a panel; a letter of a label that is tilted, and by how much that
is."""
ABOVE = 1.8
"""How far a legend stands above its panel, in sizes of its letters: between them is the number of a
bar that goes beyond the axis."""
SHADES = (1.0, 0.55, 0.3)
"""How strong the arm's colour is for each measure of a panel."""


def draw(run: RunDirectory, manifest: Manifest, arms: Sequence[ArmSummary]) -> list[Figure]:
    """Draw the experiment's figure; nothing without data, such as ratios to arms that were not
    run."""
    plan = manifest.plan
    by_name = {arm.name: arm for arm in arms}
    shown = [
        by_name[name] for name in plan.shown.figure.arms if name in by_name and by_name[name].done
    ]
    stack = [
        panel
        for panel in plan.shown.figure.panels
        if any(_values(plan, panel, shown, by_name).values())
    ]
    if not stack:
        return []
    published, seeds = behind.of(plan), notes.seeds(shown)
    with style.applied():
        figure, longer = _drawn(plan, stack, shown, by_name, published)
        drawn = [arm for arm in plan.arms if arm.name in plan.shown.figure.arms]
        scale = f"{notes.scale(manifest, drawn)}; {notes.replicates(seeds)}"
        notes.footer(figure, manifest, scale)
    panel_texts = "; ".join(
        f"{panel.label}: "
        f"{', '.join(_heading(plan, entry) for entry in panel.measures)}"
        f"{notes.against(plan, panel)}"
        for panel in stack
    )
    spread = notes.spans("whiskers span", seeds)
    told = f" {_published(published, shown)}{longer}" if published else ""
    return [
        Figure(
            plan.shown.figure.plot,
            plan.shown.title,
            f"{panel_texts}, for {', '.join(arm.label for arm in shown)}, preset "
            f"{plan.shown.preset}: {scale}.{spread}{told}",
            figure,
            numbers.of_panels(plan, arms),
        )
    ]


def _drawn(
    plan: Plan,
    stack: Sequence[PanelSpec],
    arms: Sequence[ArmSummary],
    all_arms: Mapping[str, ArmSummary],
    published: Behind | None,
) -> tuple[matplotlib.figure.Figure, str]:
    """Return the figure without footer, and sentences on how its axes differ from the published
    ones."""
    labels, longer = [arm.label for arm in arms], ""
    # Labels that would touch each other are tilted, and stand below the last panel only.
    tilted = max(map(len, labels)) * len(labels) > ACROSS
    below = 0.85 + (LETTER_INCHES * max(map(len, labels)) * math.sin(TILT) if tilted else 0)
    inches = PANEL_INCHES * len(stack) + 0.25 + below
    figure = shapes.figure(inches)
    grid = figure.add_gridspec(
        len(stack),
        1,
        left=LEFT,
        right=RIGHT,
        top=1 - 0.35 / inches,
        bottom=below / inches,
        hspace=0.25,
    )
    for index, panel in enumerate(stack):
        axis = figure.add_subplot(grid[index, 0])
        place = plan.shown.figure.panels.index(panel)  # those without data are not drawn
        longer += _panel(axis, plan, panel, arms, all_arms, published, place)
        letter = style.letter(index) if len(stack) > 1 else ""
        title = [letter, published.title(place) if published else ""]
        axis.set_title("  ".join(filter(None, title)), loc="left")
        axis.set_xticks(range(len(labels)), labels)
        if tilted:
            axis.tick_params("x", labelbottom=index == len(stack) - 1)
            for label in axis.get_xticklabels():
                label.set(rotation=math.degrees(TILT), ha="right", rotation_mode="anchor")
    return figure, longer


def _values(
    plan: Plan, panel: PanelSpec, arms: Sequence[ArmSummary], all_arms: Mapping[str, ArmSummary]
) -> dict[tuple[str, str], Spread | None]:
    """Return a panel's values, by arm and "workload.measure"."""
    return {
        (arm.name, entry): panels.value(plan, panel, entry, arm.name, all_arms)
        for entry in panel.measures
        for arm in arms
    }


def _panel(
    axis: matplotlib.axes.Axes,
    plan: Plan,
    panel: PanelSpec,
    arms: Sequence[ArmSummary],
    all_arms: Mapping[str, ArmSummary],
    published: Behind | None,
    index: int,
) -> str:
    """Draw the panel; return sentences about how its axis differs from the published one."""
    times = panel.label.endswith(", ms")
    bars = _values(plan, panel, arms, all_arms)
    here, drawn, longer = published.panel(index) if published else None, None, ""
    if here:
        lines = [
            np.array([spread.median for arm in arms if (spread := bars[arm.name, entry])])
            for entry in panel.measures
        ]
        drawn, longer = published_axes.apply(
            axis, here, lines, panel.label.removesuffix(", ms"), times=times
        )
    if here.log if here else panel.log:
        axis.set_yscale("log")
        style.logarithmic(axis.yaxis, 1, 2, 5)
    unit = style.times(axis.yaxis, plan) if times else ""
    per_unit, top = TIMES if unit == "us" else 1, drawn[1] if drawn else math.inf
    _bars(axis, plan, panel, bars, published, per_unit, top)
    axis.set_ylabel(panel.label.removesuffix("ms") + unit if times else panel.label)
    axis.grid(axis="x", visible=False)
    if panel.relative_to:
        axis.axhline(1, color="#333333", linewidth=0.9, linestyle=(0, (1, 1.2)), zorder=4)
    if here is None:
        axis.margins(y=0.12)
    marked = published and any(f"{arm}.{entry}" in published.values for arm, entry in bars)
    _legend(axis, plan, panel, [style.published_handle("published")] if marked else [])
    return longer


def _bars(
    axis: matplotlib.axes.Axes,
    plan: Plan,
    panel: PanelSpec,
    bars: Mapping[tuple[str, str], Spread | None],
    published: Behind | None,
    per_unit: float,
    top: float,
) -> None:
    """Draw a panel's bars; those of an arm's measures stand together."""
    looks, width = style.looks(plan), 0.8 / len(panel.measures)
    names = list(dict.fromkeys(name for name, _ in bars))
    for shade, entry in enumerate(panel.measures):
        for place, name in enumerate(names):
            known = published.values.get(f"{name}.{entry}", ()) if published else ()
            x = place + (shade - (len(panel.measures) - 1) / 2) * width
            look = {"width": width * 0.92, "color": looks[name].colour, "alpha": SHADES[shade]}
            _bar(axis, x, bars[name, entry], look, per_unit, top, known)


def _bar(
    axis: matplotlib.axes.Axes,
    x: float,
    spread: Spread | None,
    look: dict[str, Any],
    per_unit: float,
    top: float,
    known: tuple[float, ...],
) -> None:
    """Draw a bar with its number, also above the ``top`` of the axis, and ``known`` published
    values."""
    if spread is None:
        look = {
            "ha": "center",
            "fontsize": shapes.points(6.6),
            "rotation": 90,
            "color": style.sheet().grey,
        }
        axis.annotate("no value", (x, 0.02), xycoords=("data", "axes fraction"), **look)
        return
    axis.bar(x, spread.median, **look, zorder=3)
    several, (least, most) = len(spread.values) > 1, spread.span
    if several:
        axis.vlines(x, least, most, color="#333333", linewidth=0.9, zorder=4)
    axis.plot([x] * len(known), known, color="#333333", **style.HOLLOW, zorder=6)
    told = _number(spread.median * per_unit)
    if most > top:
        # A bar that is cut has no room for it beside another.
        until = f" (to {_number(most * per_unit)})" if several and spread.median <= top else ""
        told = f"\N{UPWARDS ARROW} {told}{until}"
    axis.annotate(
        told,
        (x, min(most, top)),
        xytext=(0, 6 if known else 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=shapes.points(6.8),
        zorder=5,
    )


def _legend(
    axis: matplotlib.axes.Axes,
    plan: Plan,
    panel: PanelSpec,
    more: Sequence[matplotlib.artist.Artist],
) -> None:
    """Add a legend for the shades of a panel with several measures, and ``more``."""
    if len(panel.measures) > 1:
        shades = [
            matplotlib.patches.Patch(facecolor="#333333", alpha=shade, label=_heading(plan, entry))
            for entry, shade in zip(panel.measures, SHADES, strict=False)
        ]
        axis.legend(
            handles=[*shades, *more],
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            ncols=len(shades) + len(more),
            fontsize=shapes.points(7.2),
            handlelength=1.2,
            borderpad=0.2,
            borderaxespad=ABOVE,
        )


def _published(published: Behind, arms: Sequence[ArmSummary]) -> str:
    """Return the caption's sentences about published values."""
    entries = [entry for panel in published.plan.shown.figure.panels for entry in panel.measures]
    series = {arm.label: [f"{arm.name}.{entry}" for entry in entries] for arm in arms}
    return published.told(series, "Hollow dots")


def _number(value: float) -> str:
    """Format with three digits, or with all digits before the point."""
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"


def _heading(plan: Plan, entry: str) -> str:
    """Return a measure's name, with its workload's if the figure has several."""
    several = (
        len(
            {
                other.partition(".")[0]
                for panel in plan.shown.figure.panels
                for other in panel.measures
            }
        )
        > 1
    )
    return notes.heading(plan, entry, named=several)
