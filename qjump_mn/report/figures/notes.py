"""Write the notes of figures: their scale and their source."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence

import matplotlib.figure

from qjump_mn import theory
from qjump_mn.model.experiment import PanelSpec
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.programs import registry
from qjump_mn.results import bootstrap, formatting
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary

from . import shapes, style
from .shapes import LEFT

MOST_EPOCHS = 2
"""That are named one by one; of more, the least and the greatest."""


def scale(manifest: Manifest, arms: Sequence[ArmPlan]) -> str:
    """Describe clock, link rate, topology and epochs of ``arms``, and their ratios to a full-size
    frame's time."""
    plan = manifest.plan
    network = plan.shown.network
    unit, per_ms = ("us", 1e3) if formatting.fine(plan) else ("ms", 1)
    epochs = sorted({arm.qjump.epoch_ns for arm in arms if arm.qjump})
    joined = " and "
    if len(epochs) > MOST_EPOCHS:
        epochs, joined = [epochs[0], epochs[-1]], " to "
    epoch_text = joined.join(f"{epoch / 1e6 * per_ms:g} {unit}" for epoch in epochs)
    epoch_text = f", epoch {epoch_text}" if epochs else ""
    clock = "simulated" if manifest.backend == "simulator" else _clock(manifest)
    declared = next((arm.clock.told for arm in arms if arm.clock), "")
    hosts = "".join(
        f", {told}"
        for told in (
            network.told_hosts,
            network.told_switches,
            network.told_impairments,
            declared,
            plan.shown.tcp.told,
        )
        if told
    )
    model = "" if manifest.backend == "simulator" else f" of model {network.model}"
    frame_ms, idle_ms = (
        plan.judged.constants["frame_ms"],
        plan.judged.constants.get(f"{plan.shown.figure.workload}_analytic_ms"),
    )
    topologies = (
        " and ".join(dict.fromkeys(arm.network.topology for arm in arms))
        or plan.shown.network.topology
    )
    ratios = [f"buffer {_buffers(plan, arms)}"]
    if epochs:
        ratios.append("epoch " + joined.join(_three(epoch / 1e6 / frame_ms) for epoch in epochs))
    ratios += [f"idle {_two(idle_ms / frame_ms)}"] if idle_ms else []
    return (
        f"{clock}; {plan.shown.network.told_links}{model}{hosts}, topology "
        f"{topologies}{epoch_text}; in full-size frames ({frame_ms * per_ms:.3g} {unit}): "
        f"{', '.join(ratios)}"
    )


def _buffers(plan: Plan, arms: Sequence[ArmPlan]) -> str:
    """Return the buffers of ``arms`` in full-size frames; a range if they differ."""
    networks = [arm.network for arm in arms] or [plan.shown.network]
    found = sorted({one.link.buffer_bytes / theory.frame_bytes(one.mtu_bytes) for one in networks})
    return formatting.span((found[0], found[-1]), "{:.4g}".format)


def _clock(manifest: Manifest) -> str:
    """Name the clock of an emulation."""
    return "virtual clock (code takes no time)" if manifest.clock == "virtual" else "real clock"


def heading(plan: Plan, entry: str, *, named: bool) -> str:
    """Return the name of a measure ("workload.measure") without unit, after its workload's name if
    ``named``."""
    workload, measure = entry.split(".")
    title = next(
        registry.headings(one)[measure]
        for arm in plan.arms
        for one in arm.workloads
        if one.name == workload
    ).partition(",")[0]
    return f"{workload}: {title}" if named else title


def against(plan: Plan, panel: PanelSpec) -> str:
    """Name the divisor of a panel's values."""
    labels = formatting.series_labels(plan)
    bases = [
        f"{workload} by that of '{labels[arm]}'" for workload, arm in panel.relative_to.items()
    ]
    return f" ({', '.join(bases)})" if bases else ""


def seeds(arms: Iterable[ArmSummary]) -> set[int]:
    """Return the seeds with data."""
    return {
        seed
        for arm in arms
        for measured in arm.measures.values()
        for spread in measured.values()
        for seed in spread.seeds
    }


def replicates(seeds: Collection[int], short: Sequence[str] = ()) -> str:
    """Say how many replicates there are; ``short`` are the arms with fewer."""
    missing = f" (fewer for {', '.join(short)})" if short else ""
    numbers = formatting.seeds(seeds).replace(", ", ",\N{NO-BREAK SPACE}")
    plural = "s" if len(seeds) > 1 else ""
    return f"{len(seeds)} replicate{plural} ({numbers}){missing}"


def spans(what: str, seeds: Collection[int]) -> str:
    """Explain the marks around the median (:attr:`Spread.span`); "" for one replicate."""
    many = len(seeds)
    if many < 2:
        return ""
    interval = f"the 95 % bootstrap interval of the median over {many} seeds"
    if many > bootstrap.MAX_EXHAUSTIVE:
        return f" The {what} {interval}."
    return f" The {what} the replicates{f': {interval}' if many >= bootstrap.MIN_VALUES else ''}."


def _three(value: float) -> str:
    """Format with three significant digits, or with all digits before the point."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _two(frames: float) -> str:
    """Format with two significant digits, or with all digits before the point."""
    return f"{frames:.2g}" if frames < 100 else f"{frames:.0f}"


FOOT_INCHES = 0.06
"""The footer's third line is so far above the lower edge."""

LINE_INCHES = 0.145
"""Of a line of the footer."""


def footer(figure: matplotlib.figure.Figure, manifest: Manifest, scale_text: str) -> None:
    """Return what a picture must say without its caption, in three lines at most at the usual
    width.

    :func:`~qjump_mn.report.figures.style.save` cuts the picture below them.
    """
    if not shapes.current().note:
        return
    shown = manifest.plan.shown
    plan = f"{shown.experiment}, preset {shown.preset}, plan {manifest.plan_sha256[:12]}"
    width = int(129 / shapes.current().crowding)
    text = textwrap.fill(f"{scale_text}. {plan}.", width, break_on_hyphens=False)
    below_inches = max(0, text.count("\n") - 2) * LINE_INCHES
    figure.text(
        LEFT,
        (FOOT_INCHES - below_inches) * shapes.current().text / figure.get_figheight(),
        text,
        fontsize=shapes.points(6.6),
        color=style.sheet().grey,
        va="bottom",
        ha="left",
        linespacing=1.35,
    )
