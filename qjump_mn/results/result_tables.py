"""Lay out the tables of arms and of published values, for the terminal and the report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from qjump_mn.model.plan import Plan
from qjump_mn.programs import registry
from qjump_mn.results import formatting
from qjump_mn.results.outcome import ArmSummary, Comparison, Spread

HEADS = {
    "p50_ms": "median, ms",
    "p99_ms": "p99, ms",
    "max_ms": "max, ms",
    "loss": "loss",
    "goodput_mbps": "goodput, Mb/s",
}
"""The default columns of the table of arms."""


def heads(plan: Plan) -> list[str]:
    """Return the headings of the table of arms, after arm and scheme.

    If there are several workloads, the first column of each names it.
    """
    named = {workload.name: workload for arm in plan.arms for workload in arm.workloads}
    entries = [entry.split(".") for entry in plan.shown.figure.table]
    several = len({workload for workload, _ in entries}) > 1
    before = [None, *(workload for workload, _ in entries)]
    headings = [
        (f"{workload}: " if several and workload != last else "")
        + registry.headings(named[workload])[measure]
        for (workload, measure), last in zip(entries, before, strict=False)
    ]
    return [
        head.removesuffix("ms") + "us" if formatting.fine(plan) and head.endswith(", ms") else head
        for head in headings or HEADS.values()
    ]


def entries(plan: Plan) -> list[str]:
    """Return what each column of :func:`heads` shows: a measure, or "workload.measure"."""
    return list(plan.shown.figure.table or HEADS)


def row(plan: Plan, arm: ArmSummary) -> list[str]:
    """Return an arm's cells in the order of :func:`heads`: medians over the seeds."""
    return [
        cell(measure, spread, in_us=formatting.fine(plan))
        for measure, spread in measured(plan, arm)
    ]


class Block(NamedTuple):
    """A part of the table of arms: its columns after arm and scheme, and each arm's cells."""

    heads: list[str]
    rows: list[tuple[ArmSummary, list[str]]]


def blocks(plan: Plan, arms: Iterable[ArmSummary]) -> list[Block]:
    """Split the table of arms into parts without common columns, by the arms' workloads."""
    requested = [entry.partition(".")[0] for entry in plan.shown.figure.table]
    own = {arm.name: {workload.name for workload in arm.workloads} for arm in plan.run.arms}
    parts: list[tuple[set[int], list[ArmSummary]]] = []
    for arm in arms:
        columns = {place for place, workload in enumerate(requested) if workload in own[arm.name]}
        together = [part for part in parts if not requested or not columns or part[0] & columns]
        parts = [part for part in parts if part not in together]
        parts.append(
            (
                columns.union(*(part[0] for part in together)),
                [*(each for part in together for each in part[1]), arm],
            )
        )
    named = heads(plan)
    places = [sorted(columns) or range(len(named)) for columns, _ in parts]
    return [
        Block(
            [named[place] for place in chosen],
            [(arm, [row(plan, arm)[place] for place in chosen]) for arm in part[1]],
        )
        for chosen, part in zip(places, parts, strict=True)
    ]


def measured(plan: Plan, arm: ArmSummary) -> list[tuple[str, Spread | None]]:
    """Return an arm's measures and values in the order of :func:`heads`."""
    if plan.shown.figure.table:
        entries = (entry.split(".") for entry in plan.shown.figure.table)
        return [
            (measure, arm.measures.get(workload, {}).get(measure)) for workload, measure in entries
        ]
    # The figure's workload if the arm has it, else its own.
    own = sorted(arm.measures.items(), key=lambda item: item[0] != plan.shown.figure.workload)
    return [(key, next((values[key] for _, values in own if key in values), None)) for key in HEADS]


def cell(measure: str, spread: Spread | None, *, in_us: bool) -> str:
    """Format the median of a measure by its unit."""
    if spread is None:
        return formatting.NONE
    if measure == "loss":
        return formatting.percent(spread.median)
    if measure.endswith("_ms"):
        return formatting.time(spread.median * (1e3 if in_us else 1))
    if measure.endswith("_mbps") and spread.median < 1000:
        return f"{spread.median:.3f}"
    return formatting.number(spread.median)


def compared(comparison: Comparison) -> list[list[str]]:
    """Return the rows of a comparison; times also in full-size frames, in brackets.

    Columns without any value are left out.
    """
    kept = _columns(comparison)
    return [
        [
            row.what,
            *(
                _quantity(row.values[column], row.unit, comparison.frames_ms[column])
                for column in kept
            ),
        ]
        for row in comparison.rows
        if sum(row.values[column] is not None for column in kept) > 1
    ]


def compared_heads(comparison: Comparison) -> list[str]:
    """Return the headings of :func:`compared`, after that of the quantity."""
    return [comparison.heads[column] for column in _columns(comparison)]


def _columns(comparison: Comparison) -> list[int]:
    return [
        column
        for column in range(len(comparison.heads))
        if any(row.values[column] is not None for row in comparison.rows)
    ]


def _quantity(value: float | None, unit: str, frame_ms: float) -> str:
    if value is None:
        return formatting.NONE
    if unit != "ms":
        return formatting.number(value)
    return f"{formatting.magnitude(value)} ({formatting.number(value / frame_ms)})"
