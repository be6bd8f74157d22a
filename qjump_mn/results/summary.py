"""Summarise a run for the end of its output and for the box at the top of its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.results import formatting, panels, result_tables
from qjump_mn.results.outcome import Outcome, Verdict

MAX_NAMED = 6
"""The most arms, or series of arms, that an answer names one by one."""

VERDICTS: dict[Verdict, str] = {
    "REPRODUCED": "reproduced",
    "DIRECTION ONLY": "in direction only",
    "PARTLY": "for some seeds only",
    "NOT REPRODUCED": "not reproduced",
    "INVALID": "invalid",
    "NOT RUN": "not judged",
}
"""The words after the number of claims with each verdict, in the order of counting."""

LATENCIES = ("p50_ms", "p99_ms", "max_ms", "mean_ms")
"""Measures of the quantity that the figure's axis names."""

UNITS = ("ms", "us", "s", "Mb/s", "1/s")
"""The units at the end of columns' headings."""


class Summary(NamedTuple):
    """A summary in sentences. ``answer`` has the numbers, or is "" if nothing was measured.

    ``sentence`` has the verdicts, whether the run may be believed, and the comparison with the
    reference run.
    """

    answer: str
    sentence: str


def of(plan: Plan, outcome: Outcome) -> Summary:
    """Summarise a run."""
    clauses = filter(None, (claims(outcome), belief(outcome), outcome.reference_clause))
    return Summary(answer(plan, outcome), _sentence("; ".join(clauses)))


def claims(outcome: Outcome) -> str:
    """Count the claims by verdict: "7 of 8 claims reproduced, 1 in direction only (better than
    published)"."""
    counts, total = Counter(row.verdict for row in outcome.verdicts), len(outcome.verdicts)
    better = sum(row.is_better for row in outcome.verdicts)
    words_of = {**VERDICTS, "DIRECTION ONLY": _direction(counts["DIRECTION ONLY"], better)}
    found = [(counts[verdict], words) for verdict, words in words_of.items() if counts[verdict]]
    if counts["NOT RUN"] == total:
        return "no claim was judged"
    (count, words), *others = found
    if words in (words_of["DIRECTION ONLY"], words_of["PARTLY"]):
        words = f"reproduced {words}"
    if total == 1:
        return f"the claim is {words}"
    which = (
        f"{count} of {total} claims"
        if others
        else "both claims"
        if total == 2
        else f"all {total} claims"
    )
    return ", ".join((f"{which} {words}", *(f"{number} {rest}" for number, rest in others)))


def _direction(count: int, better: int) -> str:
    """Return the words for claims that hold in direction only, of which some are better."""
    words = VERDICTS["DIRECTION ONLY"]
    if not better:
        return words
    return f"{words} ({'' if better == count else f'{better} '}better than published)"


def belief(outcome: Outcome) -> str:
    """Say whether the run may be believed, else why not."""
    failed = [check for check in outcome.checks if check.status == "fail"]
    reasons = [f"{check.name}: {check.text}" for check in failed if not check.completeness]
    reasons += [
        f"gate {row.claim} does not hold: {row.statement}"
        for row in outcome.verdicts
        if row.fails_gate
    ]
    if reasons:
        return f"the run may NOT be believed: {'; '.join(reasons)}"
    incomplete = next((check.text for check in failed), "")
    return f"the run is incomplete: {incomplete}" if incomplete else "the run may be believed"


def answer(plan: Plan, outcome: Outcome) -> str:
    """Compare the arms' medians of one measure: "Median round-trip time: 0.779 us (ping alone),
    1170 us (ping + iperf3)".

    If there are too many arms to name, return the first claim with a published number, else the
    arms with the least and the greatest median.
    """
    found = _values(plan, outcome)
    groups = [
        [arm for arm in panels.series(plan, name) if arm.name in found]
        for name in plan.shown.figure.arms
    ]
    groups = [group for group in groups if group] or [
        [arm] for arm in plan.run.arms if arm.name in found
    ]
    if not groups:
        return ""
    prefix = ""
    if len(groups) > MAX_NAMED:
        for row in outcome.verdicts:
            if row.published and row.shown:
                value, published = formatting.value(row), formatting.original(row)
                return f"{row.statement}: {value}, published {published} ({row.verdict})."
        arms = sorted(
            (arm for group in groups for arm in group), key=lambda arm: found[arm.name].median
        )
        groups, prefix = [arms[:1], arms[-1:]], "from "
    title, unit = _title(plan, [found[arm.name] for group in groups for arm in group])
    parts = [f"{_range(group, found)}{unit} ({_label(plan, group, found)})" for group in groups]
    return _sentence(f"{title}: {prefix}{(' to ' if prefix else ', ').join(parts)}")


class _Value(NamedTuple):
    """An arm's median in a column of the table of arms, and as text; the workload is "" where the
    table names none."""

    column: int
    workload: str
    measure: str
    median: float
    text: str


def _values(plan: Plan, outcome: Outcome) -> dict[str, _Value]:
    """Return each arm's value of the first column in which arms differ, else of the first with any.

    An arm without a value there gets that of the same measure of another workload.
    """
    columns: dict[int, dict[str, _Value]] = {}
    for arm in outcome.arms:
        cells = zip(result_tables.entries(plan), result_tables.measured(plan, arm), strict=True)
        for number, (entry, (measure, spread)) in enumerate(cells):
            if spread is not None:
                text = result_tables.cell(measure, spread, in_us=formatting.fine(plan))
                value = _Value(number, entry.rpartition(".")[0], measure, spread.median, text)
                columns.setdefault(number, {})[arm.name] = value
    ordered = [columns[number] for number in sorted(columns)]
    differing = (column for column in ordered if len({value.text for value in column.values()}) > 1)
    found = dict(next(differing, next(iter(ordered), {})))
    measures = {value.measure for value in found.values()}
    for column in ordered:
        for name, value in column.items():
            if value.measure in measures:
                found.setdefault(name, value)
    return found


def _title(plan: Plan, values: list[_Value]) -> tuple[str, str]:
    """Return what is compared, and its unit as written after a number."""
    heading = result_tables.heads(plan)[values[0].column].rpartition(": ")[2]
    name, _, unit = heading.rpartition(", ")
    if unit not in UNITS:
        name, unit = heading, ""
    workloads = {value.workload for value in values}
    is_latency = values[0].measure in LATENCIES
    if is_latency and workloads <= {"", plan.shown.figure.workload}:
        name = f"{name} {plan.shown.figure.quantity}"
    elif (
        len(workloads) == 1
        and len({entry.partition(".")[0] for entry in plan.shown.figure.table}) > 1
    ):
        name = f"{name}{' latency' if is_latency else ''} of {values[0].workload}"
    return name, "/s" if unit == "1/s" else f" {unit}" if unit else ""


def _range(group: list[ArmPlan], found: Mapping[str, _Value]) -> str:
    """Format the first and the last value of a series.

    If the sweep's values are names, format the least and the greatest.
    """
    values = [found[arm.name] for arm in group]
    if panels.has_names(group):
        values.sort(key=lambda value: value.median)
    return " to ".join(dict.fromkeys((values[0].text, values[-1].text)))


def _label(plan: Plan, group: list[ArmPlan], found: Mapping[str, _Value]) -> str:
    """Return an arm's label, or its series' label with the first and last value of the sweep.

    The workload precedes it if arms of several workloads share the label.
    """
    first, last = group[0], group[-1]
    label = formatting.series_label(first) if first is not last else first.label
    same = [arm for arm in plan.run.arms if arm.label == first.label and arm.name in found]
    if len({found[arm.name].workload for arm in same}) > 1:
        label = f"{found[first.name].workload}: {label}"
    if first is last or panels.has_names(group):
        return label
    return f"{label}, {panels.point(first)} to {panels.point(last)}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."
