"""``compare``: runs side by side, what their plans have otherwise, and what became of it."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from qjump_mn.cli import command_lines
from qjump_mn.console import Table
from qjump_mn.errors import UsageError
from qjump_mn.model import differences
from qjump_mn.model.differences import Difference
from qjump_mn.results import directory, formatting, outcome, result_tables
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary, Outcome, Spread

MOST = len(string.ascii_uppercase)
"""Runs have letters."""

FOLLOWS = ("constants.", "not_run.")
"""What is computed from other settings, and what was not run."""

MOST_SETTINGS = 12
"""So many differences of two plans are told, and the number of the others."""


class Run(NamedTuple):
    """A run that was judged, and its letter."""

    letter: str
    path: Path
    manifest: Manifest
    outcome: Outcome


def read(paths: Sequence[Path]) -> list[Run]:
    """The runs of these folders; raise :class:`UsageError` where they cannot be compared."""
    if len(paths) < 2:
        raise UsageError("compare needs two runs or more: name their run directories")
    if len(paths) > MOST:
        raise UsageError(f"compare takes {MOST} runs at most (got {len(paths)}): name fewer")
    runs = []
    for letter, path in zip(string.ascii_uppercase, paths, strict=False):
        manifest = directory.existing(path).manifest
        runs.append(Run(letter, path, manifest, outcome.read(path)))
    return runs


def show(runs: Sequence[Run], out: Console) -> None:
    """Print which runs these are, what differs in their plans from that of the first, and each measure of the
    arms that all have: its median, and how many times that of the first run it is. Raises
    :class:`UsageError` where there is no such arm."""
    rows = list(_rows(runs))
    if not rows:
        named = " and ".join(dict.fromkeys(run.manifest.plan.shown.experiment for run in runs))
        raise UsageError(
            f"the runs, of {named}, have no measure of the same arm: there is nothing to compare"
        )
    for run in runs:
        plan = run.manifest.plan
        seeds = (
            f"{len(plan.run.seeds)} seeds from {plan.run.seeds[0]}"
            if len(plan.run.seeds) > 1
            else f"seed {plan.run.seeds[0]}"
        )
        verdicts = formatting.verdicts(run.outcome)
        about = f"{plan.shown.experiment}, preset {plan.shown.preset}, {seeds}, {verdicts}"
        out.print(f"{run.letter}  {run.path}: {about}", markup=False)
    for run in runs[1:]:
        for line in _otherwise(runs[0], run):
            out.print(line, markup=False)
    out.print("")
    out.print(_table(runs, rows))
    fewest = min(len(run.manifest.plan.run.seeds) for run in runs)
    out.print(
        f"In brackets how many times {runs[0].letter}'s it is: the median over the seeds that both have"
        + (", and its 95 % interval" if fewest >= 3 else "; from three seeds on there is an interval")
    )


def _otherwise(first: Run, other: Run) -> Iterator[str]:
    """What differs in the other run: options and settings as they were typed, and settings of the plans where
    these do not explain all of it."""
    linux = first.manifest.machine.get("kernel"), other.manifest.machine.get("kernel")
    if all(linux) and linux[0] != linux[1]:
        yield f"{other.letter} ran on Linux {linux[1]}, {first.letter} on {linux[0]}"
    found = [
        one
        for one in differences.between(first.manifest.plan, other.manifest.plan)
        if not one.path.startswith(FOLLOWS)
    ]
    yield from _typed_otherwise(first, other, settings=bool(found))
    if not found:
        yield f"{other.letter} has the plan of {first.letter}"
    elif not _is_explained(first, other):
        yield from _planned_otherwise(first, other, found)


def _typed_otherwise(first: Run, other: Run, *, settings: bool) -> Iterator[str]:
    """A line for each option, and with ``settings`` for each setting, that was typed otherwise."""
    before, now = (command_lines.typed(run.manifest) for run in (first, other))
    for key in dict.fromkeys([*before, *now]):
        is_option = key.startswith("--")
        if before.get(key) != now.get(key) and (is_option or settings):
            known = [{} if is_option else command_lines.settings(run.manifest) for run in (other, first)]
            none = f"no {key}"
            yield (
                f"{other.letter} has {now.get(key) or known[0].get(key, none)}, "
                f"{first.letter} {before.get(key) or known[1].get(key, none)}"
            )


def _is_explained(first: Run, other: Run) -> bool:
    """Whether what was typed makes both plans, of one preset, so that nothing else is different."""
    manifests = [run.manifest for run in (first, other)]
    plans = [manifest.plan for manifest in manifests]
    try:
        made = [
            command_lines.plan(one.plan.shown.experiment, one.plan.shown.preset, one.argv)
            for one in manifests
        ]
    except UsageError:
        return False
    return len({(plan.shown.experiment, plan.shown.preset) for plan in plans}) == 1 and [
        (plan.hash, plan.judged) for plan in made
    ] == [(plan.hash, plan.judged) for plan in plans]


def _planned_otherwise(first: Run, other: Run, differing: Sequence[Difference]) -> Iterator[str]:
    """What differs in the plans, by the names that it has there: once, where several arms have it."""
    paths: dict[tuple[str, str, str], list[str]] = {}
    for one in differing:
        pattern = re.sub(r"^arms\.[^.]+", "arms.*", one.path)
        paths.setdefault((pattern, one.first, one.second), []).append(one.path)
    found = [
        (pattern if len(which) > 1 else which[0], before, now)
        for (pattern, before, now), which in paths.items()
    ]
    for path, before, now in found[:MOST_SETTINGS]:
        yield f"{other.letter} has {path} {now}, {first.letter} {before}"
    if len(found) > MOST_SETTINGS:
        yield f"{other.letter} has {len(found) - MOST_SETTINGS} more settings otherwise"


class _Row(NamedTuple):
    """A measure of an arm: its values by run, in us where ``in_us``."""

    arm: str
    head: str
    measure: str
    spreads: list[Spread]
    in_us: bool


def _rows(runs: Sequence[Run]) -> Iterator[_Row]:
    plan = runs[0].manifest.plan
    for arm in runs[0].outcome.arms:
        others = [run.outcome.arm(arm.name) for run in runs]
        if any(other is None or not other.done for other in others):
            continue
        columns = [_measured(run, other) for run, other in zip(runs, others, strict=True) if other]
        for entry, head in zip(result_tables.entries(plan), result_tables.heads(plan), strict=True):
            spreads = [spread for column in columns if (spread := column.get(entry))]
            if len(spreads) == len(runs):
                yield _Row(arm.label, head, entry.rpartition(".")[2], spreads, formatting.fine(plan))


def _measured(run: Run, arm: ArmSummary) -> dict[str, Spread | None]:
    plan = run.manifest.plan
    values = (spread for _, spread in result_tables.measured(plan, arm))
    return dict(zip(result_tables.entries(plan), values, strict=True))


def _table(runs: Sequence[Run], rows: Sequence[_Row]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("arm", overflow="fold", min_width=10)
    table.add_column("measure", overflow="fold")
    for run in runs:
        table.add_column(run.letter, justify="right", overflow="fold")
    before = ""
    for row in rows:
        first, *others = row.spreads
        cells = [result_tables.cell(row.measure, first, in_us=row.in_us)]
        for other in others:
            value = result_tables.cell(row.measure, other, in_us=row.in_us)
            times = other.over(first)
            cells.append(f"{value} ({_times(times)})" if times else value)
        table.add_row(Text("" if row.arm == before else row.arm), Text(row.head), *cells)
        before = row.arm
    return table


def _times(ratio: Spread) -> str:
    interval = ratio.interval95
    if interval is None:
        return formatting.number(ratio.median)
    median, low, high = map(formatting.number, (ratio.median, *interval))
    return f"{median}, {low} to {high}"
