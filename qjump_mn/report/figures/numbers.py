"""Write the numbers of a figure into a CSV file, and show some of its rows in the report."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from qjump_mn.model.plan import Plan
from qjump_mn.results import panels
from qjump_mn.results.outcome import ArmSummary

MOST_ROWS = 40
"""In the report; the file has all."""

Cell = str | float | None


class Numbers(NamedTuple):
    """Column names with units, and rows; None or nan is a missing value."""

    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Excerpt(NamedTuple):
    """Some rows of a file, evenly spread over it, and their total number."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    all: int


def of_panels(plan: Plan, arms: Sequence[ArmSummary]) -> Numbers:
    """Return a figure's values: each measure of each arm, or its ratio to another's, over the
    replicates."""
    by_name = {arm.name: arm for arm in arms}
    rows: list[tuple[Cell, ...]] = []
    for panel in plan.shown.figure.panels:
        for name in panels.compared(plan, panel):
            for arm in panels.series(plan, name):
                for entry in panel.measures:
                    spread = panels.value(plan, panel, entry, arm.name, by_name)
                    if spread is None:
                        continue
                    relative = panel.relative_to.get(entry.split(".")[0], "")
                    measured = (
                        spread.median,
                        spread.minimum,
                        spread.maximum,
                        float(len(spread.values)),
                    )
                    rows.append((arm.label, arm.name, arm.x, entry, relative, *measured))
    heads = ("arm", "name", "x", "measure", "relative to", "median", "least", "greatest", "seeds")
    return Numbers(heads, tuple(rows))


def write(numbers: Numbers, path: Path) -> None:
    """Write a CSV file with a line of heads."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(numbers.heads)
        lines.writerows([_text(cell) for cell in row] for row in numbers.rows)


def _text(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    return "" if cell is None or math.isnan(cell) else f"{cell:.10g}"


def read(path: Path, most: int = MOST_ROWS) -> Excerpt:
    """Read the rows of a file of :func:`write`, or ``most`` of them with the first and the last."""
    with path.open(encoding="utf-8", newline="") as file:
        heads, *rows = csv.reader(file)
    shown = rows
    if len(rows) > most:
        shown = [rows[number * (len(rows) - 1) // (most - 1)] for number in range(most)]
    return Excerpt(tuple(heads), tuple(map(tuple, shown)), len(rows))
