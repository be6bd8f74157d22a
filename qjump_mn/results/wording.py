"""Numbers and sentences that the terminal and the report share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.programs import registry
from qjump_mn.results import bootstrap
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary, Comparison, Drawing, Outcome, Spread, VerdictRow

NONE = "\N{EN DASH}"

MEANINGS = {
    "REPRODUCED": "the claim holds for every seed, and its number is of the published size, if there is one",
    "DIRECTION ONLY": "the claim holds for every seed, but its number is not of the published size",
    "PARTLY": "the claim holds for some seeds, not for others",
    "NOT REPRODUCED": "the claim holds for no seed",
    "INVALID": "this run says nothing about the claim: a gate or a check of fidelity failed",
    "NOT RUN": "an arm that the claim needs is missing",
}


def number(value: float) -> str:
    """Four digits that count, and no zeros behind them; all before the point."""
    if abs(value) < 1e-9:
        return "0"  # what is left of a difference of equal numbers is no result
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def time(value: float) -> str:
    """A time in ms, or us, with three digits and, from 0.01 on, at most to the thousandth: what ping prints
    is in ms to the microsecond."""
    if 0 < value < 0.01:
        return f"{value:.3g}"
    return f"{value:.{decimals(value)}f}"


def decimals(value: float) -> int:
    """So many behind the point that three digits count, and at most three."""
    return 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3


def duration(value_ms: float, unit: str) -> str:
    """A time in ``unit``, ms or us, by three digits that count, with their zeros; in us where it is below
    10."""
    if 0 < value_ms < 0.01:
        return f"{value_ms * 1e3:.3g} us"
    value = value_ms * (1e3 if unit == "us" else 1)
    return f"{value:,.{decimals(value)}f} {unit}"


def shown(spread: Spread | None) -> str:
    """A value: its median over the seeds and, where they differ, the least and the greatest."""
    if spread is None:
        return NONE
    median, least, greatest = number(spread.median), number(spread.minimum), number(spread.maximum)
    return median if least == greatest else f"{median} [{least}..{greatest}]"


def published(row: VerdictRow) -> str:
    """What was published of a claim's number, and how near it must come, in a line of its own; "" where
    nothing was."""
    return f"published: {size(row)}" if row.published else ""


def size(row: VerdictRow) -> str:
    """The same for a column that is called so."""
    if row.published is None:
        return NONE
    least, most = map(number, row.published)
    value = least if least == most else f"{least} to {most}"
    return f"{value}, within a factor of {number(row.factor)}: {row.because}"


def intervals(plan: Plan) -> str:
    """What varies from seed to seed, and what the intervals are then."""
    many = len(plan.seeds)
    if many == 1:
        return "One replicate: nothing says how far its values would spread."
    seeds = f"{many} replicates: seeds {plan.seeds[0]} to {plan.seeds[-1]}"
    varied = f"{seeds}, which decide when programs start and what they draw."
    if many < bootstrap.LEAST:
        return f"{varied} There are intervals from {bootstrap.LEAST} seeds on."
    whole = f"; of up to {bootstrap.WHOLE} seeds they are from the least to the greatest"
    how = "Intervals are 95 % bootstrap intervals of the median over seeds, by percentiles"
    return f"{varied} {how}{whole if many <= bootstrap.WHOLE else ''}."


def perturbed(row: VerdictRow) -> str:
    """In how many perturbed runs a claim holds, and what breaks it first; "" where there is none that could
    tell."""
    found = row.perturbed
    if found is None or (row.verdict == "NOT RUN" and not found.checked):
        return ""
    silent = found.planned - len(found.checked)
    untold = f" ({silent} of {found.planned} changed nothing or cannot be judged)" if silent else ""
    broken = f"; first broken by: {found.broken_by}" if found.broken_by else ""
    return f"holds in {len(found.held)} of {len(found.checked)} perturbed runs{untold}{broken}"


def perturbations(plan: Plan) -> str:
    """What is varied in the perturbed runs, each with the runs' numbers."""
    numbers: dict[str, list[str]] = {}
    for number, perturbation in enumerate(plan.perturbations, 1):
        numbers.setdefault(perturbation.what, []).append(f"{number}")
    kinds = "; ".join(f"{what} ({', '.join(which)})" for what, which in numbers.items())
    return f"{len(plan.perturbations)}: {kinds}"


HEADS = {
    "p50_ms": "median, ms",
    "p99_ms": "p99, ms",
    "max_ms": "max, ms",
    "loss": "loss",
    "goodput_mbps": "goodput, Mb/s",
}
"""What the table of arms has unless the experiment says otherwise."""
FINE_FRAME_MS = 0.1
"""Where a full-size frame takes less, at more than about 120 Mb/s, times are told in us."""


def fine(plan: Plan) -> bool:
    """Whether times are told in us instead of ms."""
    return plan.constants["frame_ms"] < FINE_FRAME_MS


def unit(plan: Plan) -> str:
    """The unit in which times are told."""
    return "us" if fine(plan) else "ms"


def lead(manifest: Manifest, drawing: Drawing) -> str:
    """What a figure is, in 40 words at most; its caption says the rest."""
    plan = manifest.plan
    linux = f"real Linux {manifest.linux}" if manifest.kernel else "real Linux"
    how = "the simulator" if manifest.backend == "simulator" else f"{linux} on a {manifest.clock} clock"
    seeds = f"{len(plan.seeds)} seeds" if len(plan.seeds) > 1 else f"seed {plan.seeds[0]}"
    behind = " What was published is hollow or grey." if plan.figure.published else ""
    title = drawing.title[:1].upper() + drawing.title[1:]
    return f"{title}. Preset {plan.preset}: {plan.network.told_links}, {how}, {seeds}.{behind}"


def instruction(arms: Iterable[ArmPlan]) -> str:
    """How long an instruction takes on the virtual clock."""
    dilations = sorted({arm.dilation for arm in arms} or {1})
    if dilations == [1]:
        return "one nanosecond"
    return f"{' or '.join(f'{1000 / each:g}' for each in dilations)} ps"


def heads(plan: Plan) -> list[str]:
    """The columns of the table of arms, behind arm and scheme; the first of a workload says which, where
    there are several."""
    named = {workload.name: workload for arm in plan.arms for workload in arm.workloads}
    entries = [entry.split(".") for entry in plan.figure.table]
    several = len({workload for workload, _ in entries}) > 1
    before = [None, *(workload for workload, _ in entries)]
    headings = [
        (f"{workload}: " if several and workload != last else "")
        + registry.headings(named[workload])[measure]
        for (workload, measure), last in zip(entries, before, strict=False)
    ]
    return [
        head.removesuffix("ms") + "us" if fine(plan) and head.endswith(", ms") else head
        for head in headings or HEADS.values()
    ]


def entries(plan: Plan) -> list[str]:
    """What the columns of :func:`heads` are of: measures, of a workload where the experiment says so."""
    return list(plan.figure.table or HEADS)


def cells(plan: Plan, arm: ArmSummary) -> list[str]:
    """An arm's row, in the order of :func:`heads`; each value is the median over the seeds."""
    return [cell(measure, spread, in_us=fine(plan)) for measure, spread in measured(plan, arm)]


class Block(NamedTuple):
    """A part of the table of arms: its columns behind arm and scheme, and the cells of each arm."""

    heads: list[str]
    rows: list[tuple[ArmSummary, list[str]]]


def blocks(plan: Plan, arms: Iterable[ArmSummary]) -> list[Block]:
    """The table of arms, in parts that have no column in common: arms with other workloads stand apart."""
    asked = [entry.partition(".")[0] for entry in plan.figure.table]
    own = {arm.name: {workload.name for workload in arm.workloads} for arm in plan.arms_run}
    parts: list[tuple[set[int], list[ArmSummary]]] = []
    for arm in arms:
        columns = {place for place, workload in enumerate(asked) if workload in own[arm.name]}
        together = [part for part in parts if not asked or not columns or part[0] & columns]
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
            [(arm, [cells(plan, arm)[place] for place in chosen]) for arm in part[1]],
        )
        for chosen, part in zip(places, parts, strict=True)
    ]


def measured(plan: Plan, arm: ArmSummary) -> list[tuple[str, Spread | None]]:
    """What is in an arm's row, in the order of :func:`heads`: measures with their values."""
    if plan.figure.table:
        entries = (entry.split(".") for entry in plan.figure.table)
        return [(measure, arm.measures.get(workload, {}).get(measure)) for workload, measure in entries]
    # The figure's workload if the arm has it, else its own.
    own = sorted(arm.measures.items(), key=lambda item: item[0] != plan.figure.workload)
    return [(key, next((values[key] for _, values in own if key in values), None)) for key in HEADS]


def cell(measure: str, spread: Spread | None, *, in_us: bool) -> str:
    """The median of a measure, as its unit asks for."""
    if spread is None:
        return NONE
    if measure == "loss":
        return percent(spread.median)
    if measure.endswith("_ms"):
        return time(spread.median * (1e3 if in_us else 1))
    if measure.endswith("_mbps") and spread.median < 1000:
        return f"{spread.median:.3f}"
    return number(spread.median)


def compared(comparison: Comparison) -> list[list[str]]:
    """The rows of a comparison: times in ms or us, and how many full-size frames that is in brackets; its
    columns without any value are left out."""
    kept = _columns(comparison)
    return [
        [
            row.what,
            *(_quantity(row.values[column], row.unit, comparison.frames_ms[column]) for column in kept),
        ]
        for row in comparison.rows
        if sum(row.values[column] is not None for column in kept) > 1
    ]


def compared_heads(comparison: Comparison) -> list[str]:
    """The columns of :func:`compared` behind what each row is of."""
    return [comparison.heads[column] for column in _columns(comparison)]


def _columns(comparison: Comparison) -> list[int]:
    return [
        column
        for column in range(len(comparison.heads))
        if any(row.values[column] is not None for row in comparison.rows)
    ]


def _quantity(value: float | None, unit: str, frame_ms: float) -> str:
    if value is None:
        return NONE
    if unit != "ms":
        return number(value)
    return f"{_duration(value)} ({number(value / frame_ms)})"


def _duration(value_ms: float) -> str:
    return f"{number(value_ms)} ms" if abs(value_ms) >= 1 else f"{number(value_ms * 1e3)} us"


def replicates(arm: ArmSummary) -> str:
    """How many of an arm's trials are done."""
    return str(arm.done) if arm.done == arm.planned else f"{arm.done} of {arm.planned}"


def series_label(arm: ArmPlan) -> str:
    """An arm's label without its value of a sweep."""
    return arm.label.rpartition(",")[0] if arm.series else arm.label


def series_labels(plan: Plan) -> dict[str, str]:
    """The label of every series, and of every arm that is in none, by its name."""
    return {arm.series or arm.name: series_label(arm) for arm in plan.arms}


def same_limits(arms: Iterable[ArmPlan], series: str) -> bool:
    """Whether ``series`` is one, all arms of which have the same rate limits or none."""
    return bool(series) and len({arm.qjump for arm in arms if arm.series == series}) == 1


def flow(ends: tuple[str, str]) -> str:
    """From where to where, on one line."""
    return "\N{NO-BREAK SPACE}\N{RIGHTWARDS ARROW}\N{NO-BREAK SPACE}".join(ends)


def seeds(found: Collection[int]) -> str:
    """Such as "seed 1", "seeds 1, 2, 3", or "seeds 1 to 30" of many in a row."""
    ordered = sorted(found)
    if len(ordered) > 4 and ordered[-1] - ordered[0] == len(ordered) - 1:
        numbers = f"{ordered[0]} to {ordered[-1]}"
    else:
        numbers = ", ".join(map(str, ordered))
    return f"seed{'s' * (len(ordered) > 1)} {numbers}"


def percent(share: float) -> str:
    """A fraction as per cent; 0 is exactly none."""
    return "0" if share == 0 else f"{share * 100:.2g} %" if share < 0.1 else f"{share * 100:.1f} %"


def verdicts(outcome: Outcome) -> str:
    """How many claims have each verdict, in the order in which the verdicts first come."""
    counts = Counter(row.verdict for row in outcome.verdicts)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def fidelity(outcome: Outcome) -> str:
    """The one line that says whether the run may be believed."""
    failed = [check for check in outcome.checks if check.status == "fail"]
    unknown = [check.name for check in outcome.checks if check.status == "unknown"]
    rest = f"; not checked: {', '.join(unknown)}" if unknown else ""
    if not failed:
        return f"passed, {len(outcome.checks) - len(unknown)} of {len(outcome.checks)} checks{rest}"
    verdict = "FAILED" if not outcome.believable else "incomplete"
    return f"{verdict}: " + "; ".join(f"{check.name}: {check.text}" for check in failed) + rest


def sentences(plan: Plan, outcome: Outcome) -> list[str]:
    """What the reader will want to know of the medians: what the experiment says, and whose doing it is."""
    return [*outcome.sentences, *_stalled(plan, outcome), *_priorities(plan, outcome)]


def _stalled(plan: Plan, outcome: Outcome) -> Iterator[str]:
    """Jobs that got nothing done: an arm whose scheme starves what disturbs looks as good as one that
    protects from it."""
    labels = {workload.name: workload.label for arm in plan.arms for workload in arm.workloads}
    for arm in outcome.arms:
        for workload, measured in arm.measures.items():
            if (rounds := measured.get("rounds")) and not rounds.median:
                yield (
                    f"In the arm '{arm.label}' {labels[workload]} completed no round while something was "
                    "measured: its row says what others meet without it."
                )


def _priorities(plan: Plan, outcome: Outcome) -> list[str]:
    """Who does the work, where an arm limits without holding its bulk traffic back and another has priorities
    alone."""
    medians = _medians(plan, outcome)
    measured = [arm for arm in plan.arms if arm.name in medians]
    limited = next((arm for arm in measured if _lets_bulk_pass(arm, plan)), None)
    alone = next(
        (arm for arm in measured if arm.uses_levels and not arm.qjump and len(arm.workloads) > 1), None
    )
    if limited is None or alone is None:
        return []
    rate = _bulk_mbps(limited)[0]
    link = f"more than the link's {number(plan.network.link.rate_bps / 1e6)} Mb/s"
    budget = "has no limit" if rate is None else f"may send {number(rate)} Mb/s a host, {link}"
    return [
        f"In the arm '{limited.label}' the bulk level {budget}: "
        "the limiter never holds the bulk traffic back, and the effect is that of the priorities. "
        f"With priorities alone ('{alone.label}') the median is {_duration(medians[alone.name])}, "
        f"with the limiter {_duration(medians[limited.name])}."
    ]


def _lets_bulk_pass(arm: ArmPlan, plan: Plan) -> bool:
    """Whether the arm has limits, and none that its bulk traffic meets below the links' rate."""
    rates = _bulk_mbps(arm)
    return bool(rates) and all(rate is None or rate >= plan.network.link.rate_bps / 1e6 for rate in rates)


def _bulk_mbps(arm: ArmPlan) -> list[float | None]:
    """What an arm's limits let each of its bulk workloads send, in Mb/s; None is no limit."""
    levels = [workload.level for workload in arm.workloads if workload.BACKGROUND]
    return (
        [budget_mbps(arm.qjump.budget_bytes[level], arm.qjump.epoch_ns) for level in levels]
        if arm.qjump
        else []
    )


def budget_mbps(budget_bytes: int, epoch_ns: int) -> float | None:
    """What a budget allows in Mb/s; None is no limit."""
    return budget_bytes * 8e3 / epoch_ns if budget_bytes else None


def _medians(plan: Plan, outcome: Outcome) -> dict[str, float]:
    workload = plan.figure.workload
    return {
        arm.name: arm.measures[workload]["p50_ms"].median
        for arm in outcome.arms
        if "p50_ms" in arm.measures.get(workload, {})
    }
