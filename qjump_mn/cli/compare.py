"""``compare``: print how the plans of runs differ, and their measures side by side."""

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

MAX_RUNS = len(string.ascii_uppercase)
"""The most runs that can be compared: each is named by a letter."""

IGNORED = ("constants.", "not_run.")
"""Prefixes of settings that are computed from others, or that no trial uses."""

MAX_SETTINGS = 12
"""The most differences between two plans that are printed; of the others, only the number."""


class Run(NamedTuple):
    """A judged run, and the letter that names it."""

    letter: str
    path: Path
    manifest: Manifest
    outcome: Outcome


def check_number(paths: Sequence[Path]) -> None:
    """Raise :class:`UsageError` unless so many runs can be compared."""
    if len(paths) < 2:
        raise UsageError("compare needs two runs or more: name their run directories")
    if len(paths) > MAX_RUNS:
        raise UsageError(f"compare takes {MAX_RUNS} runs at most (got {len(paths)}): name fewer")


def read(paths: Sequence[Path]) -> list[Run]:
    """Read the runs in these directories; raise :class:`UsageError` if they cannot be compared."""
    check_number(paths)
    runs = []
    for letter, path in zip(string.ascii_uppercase, paths, strict=False):
        manifest = directory.existing(path).manifest
        runs.append(Run(letter, path, manifest, outcome.read(path)))
    return runs


def show(runs: Sequence[Run], out: Console) -> None:
    """Print the runs, how their plans differ from the first one's, and the measures of common arms.

    A measure is its median, in brackets divided by the first run's. Raises :class:`UsageError` if
    no arm is in all runs.
    """
    rows = list(_rows(runs))
    if not rows:
        experiments = " and ".join(
            dict.fromkeys(run.manifest.plan.shown.experiment for run in runs)
        )
        raise UsageError(
            f"the runs (of {experiments}) cannot be compared: no arm was measured in all of them"
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
        for line in _differences(runs[0], run):
            out.print(line, markup=False)
    out.print("")
    out.print(_table(runs, rows))
    fewest = min(len(run.manifest.plan.run.seeds) for run in runs)
    out.print(
        f"In brackets: the value divided by {runs[0].letter}'s, as the median over the seeds of "
        "both runs"
        + (
            ", with its 95 % interval"
            if fewest >= 3
            else "; with three seeds or more, also an interval"
        )
    )


def _differences(first: Run, other: Run) -> Iterator[str]:
    """Yield a line for each difference between two runs.

    Options and settings are named as they were typed. Where they do not explain the difference
    between the plans, settings of the plans follow.
    """
    first_kernel, other_kernel = (run.manifest.machine.get("kernel") for run in (first, other))
    if first_kernel and other_kernel and first_kernel != other_kernel:
        yield f"{other.letter} ran on Linux {other_kernel}, {first.letter} on {first_kernel}"
    plan_differences = [
        difference
        for difference in differences.between(first.manifest.plan, other.manifest.plan)
        if not difference.path.startswith(IGNORED)
    ]
    yield from _typed_differences(first, other, settings=bool(plan_differences))
    if not plan_differences:
        yield f"{other.letter} has the plan of {first.letter}"
    elif not _is_explained(first, other):
        yield from _plan_differences(first, other, plan_differences)


def _typed_differences(first: Run, other: Run, *, settings: bool) -> Iterator[str]:
    """Yield a line for each option, and with ``settings`` each setting, that was typed
    differently."""
    first_typed, other_typed = (command_lines.typed(run.manifest) for run in (first, other))
    for key in dict.fromkeys([*first_typed, *other_typed]):
        is_option = key.startswith("--")
        if first_typed.get(key) != other_typed.get(key) and (is_option or settings):
            first_default, other_default = (
                {} if is_option else command_lines.settings(run.manifest) for run in (first, other)
            )
            absent = f"no {key}"
            yield (
                f"{other.letter} has {other_typed.get(key) or other_default.get(key, absent)}, "
                f"{first.letter} {first_typed.get(key) or first_default.get(key, absent)}"
            )


def _is_explained(first: Run, other: Run) -> bool:
    """Whether the command lines alone explain the difference between two plans of one preset."""
    manifests = [run.manifest for run in (first, other)]
    plans = [manifest.plan for manifest in manifests]
    try:
        typed_plans = [
            command_lines.plan(
                manifest.plan.shown.experiment, manifest.plan.shown.preset, manifest.argv
            )
            for manifest in manifests
        ]
    except UsageError:
        return False
    return len({(plan.shown.experiment, plan.shown.preset) for plan in plans}) == 1 and [
        (plan.hash, plan.judged) for plan in typed_plans
    ] == [(plan.hash, plan.judged) for plan in plans]


def _plan_differences(first: Run, other: Run, different: Sequence[Difference]) -> Iterator[str]:
    """Yield a line for each different setting of the plans; a setting of several arms gets one
    line."""
    paths_by_values: dict[tuple[str, str, str], list[str]] = {}
    for difference in different:
        pattern = re.sub(r"^arms\.[^.]+", "arms.*", difference.path)
        values = (pattern, difference.first, difference.second)
        paths_by_values.setdefault(values, []).append(difference.path)
    settings = [
        (pattern if len(paths) > 1 else paths[0], first_value, other_value)
        for (pattern, first_value, other_value), paths in paths_by_values.items()
    ]
    for path, first_value, other_value in settings[:MAX_SETTINGS]:
        yield f"{other.letter} has {path} {other_value}, {first.letter} {first_value}"
    if len(settings) > MAX_SETTINGS:
        yield f"{other.letter} differs in {len(settings) - MAX_SETTINGS} more settings"


class _Row(NamedTuple):
    """A measure of an arm: its values in each run, in us if ``in_us``, else in ms."""

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
        columns = [_spreads(run, other) for run, other in zip(runs, others, strict=True) if other]
        for entry, head in zip(result_tables.entries(plan), result_tables.heads(plan), strict=True):
            spreads = [spread for column in columns if (spread := column.get(entry))]
            if len(spreads) == len(runs):
                yield _Row(
                    arm.label, head, entry.rpartition(".")[2], spreads, formatting.fine(plan)
                )


def _spreads(run: Run, arm: ArmSummary) -> dict[str, Spread | None]:
    plan = run.manifest.plan
    values = (spread for _, spread in result_tables.measured(plan, arm))
    return dict(zip(result_tables.entries(plan), values, strict=True))


def _table(runs: Sequence[Run], rows: Sequence[_Row]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("arm", overflow="fold", min_width=10)
    table.add_column("measure", overflow="fold")
    for run in runs:
        table.add_column(run.letter, justify="right", overflow="fold")
    previous_arm = ""
    for row in rows:
        first, *others = row.spreads
        cells = [result_tables.cell(row.measure, first, in_us=row.in_us)]
        for other in others:
            value = result_tables.cell(row.measure, other, in_us=row.in_us)
            ratio = other.over(first)
            cells.append(f"{value} ({_ratio(ratio)})" if ratio else value)
        table.add_row(Text("" if row.arm == previous_arm else row.arm), Text(row.head), *cells)
        previous_arm = row.arm
    return table


def _ratio(ratio: Spread) -> str:
    interval = ratio.interval95
    if interval is None:
        return formatting.number(ratio.median)
    median, low, high = map(formatting.number, (ratio.median, *interval))
    return f"{median}, {low} to {high}"
