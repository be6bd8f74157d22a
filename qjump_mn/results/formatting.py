"""Numbers, times and names as the terminal and the report both write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable

from qjump_mn.model import expression
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.results import bootstrap
from qjump_mn.results.outcome import ArmSummary, Outcome, Spread, VerdictRow

NONE = "\N{EN DASH}"

MEANINGS = {
    "REPRODUCED": "the claim holds for every seed, and its number is of the published size, if there is one",
    "DIRECTION ONLY": "the claim holds for every seed, but its number is not of the published size",
    "PARTLY": "the claim holds for some seeds, not for others",
    "NOT REPRODUCED": "the claim holds for no seed",
    "INVALID": "this run says nothing about the claim: a gate or a check of fidelity failed",
    "NOT RUN": "an arm that the claim needs is missing",
}


def experiment(plan: Plan) -> str:
    """The experiment's name, and what it reproduces, if that was published."""
    return (
        plan.shown.experiment
        if plan.shown.reproduces.startswith("none")
        else f"{plan.shown.experiment} ({plan.shown.reproduces})"
    )


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


def magnitude(value_ms: float) -> str:
    """A time in ms, or in us where it is below one, by four digits that count."""
    return f"{number(value_ms)} ms" if abs(value_ms) >= 1 else f"{number(value_ms * 1e3)} us"


def shown(spread: Spread | None, tell: Callable[[float], str] = number) -> str:
    """A value: its median over the seeds and, where they differ, the least and the greatest."""
    if spread is None:
        return NONE
    median, least, greatest = tell(spread.median), tell(spread.minimum), tell(spread.maximum)
    return median if least == greatest else f"{median} [{least}..{greatest}]"


def is_time(measure: str) -> bool:
    """Whether a measure's values are times; those are in ms."""
    return measure.endswith("_ms")


def value(row: VerdictRow) -> str:
    """What a claim shows, in its unit."""
    if row.shown is None or not _shows_time(row):
        return shown(row.shown)
    if max(abs(row.shown.minimum), abs(row.shown.maximum)) >= 1:
        return f"{shown(row.shown)} ms"
    return f"{shown(row.shown, _in_us)} us"


def _in_us(value_ms: float) -> str:
    return number(value_ms * 1e3)


def _shows_time(row: VerdictRow) -> bool:
    """Whether what a claim shows is in ms: so are all its names, and none is multiplied or divided."""
    names = expression.parse(row.shows, "").names if row.shows and not set("*/") & set(row.shows) else ()
    return bool(names) and all(is_time(path[-1]) for path in names)


def published(row: VerdictRow) -> str:
    """What was published of a claim's number, and how near it must come, in a line of its own; "" where
    nothing was."""
    return f"published: {size(row)}" if row.published else ""


def size(row: VerdictRow) -> str:
    """The same for a column that is called so."""
    if row.published is None:
        return NONE
    return f"{original(row)}, within a factor of {number(row.factor)}: {row.because}"


def original(row: VerdictRow) -> str:
    """What was published of what a claim shows, in its unit."""
    tell = magnitude if _shows_time(row) else number
    return " to ".join(dict.fromkeys(map(tell, row.published or ())))


def intervals(plan: Plan) -> str:
    """What varies from seed to seed, and what the intervals are then."""
    many = len(plan.run.seeds)
    if many == 1:
        return "One replicate: nothing says how far its values would spread."
    seeds = f"{many} replicates: seeds {plan.run.seeds[0]} to {plan.run.seeds[-1]}"
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
    for number, perturbation in enumerate(plan.run.perturbations, 1):
        numbers.setdefault(perturbation.what, []).append(f"{number}")
    kinds = "; ".join(f"{what} ({', '.join(which)})" for what, which in numbers.items())
    return f"{len(plan.run.perturbations)}: {kinds}"


FINE_FRAME_MS = 0.1
"""Where a full-size frame takes less, at more than about 120 Mb/s, times are told in us."""


def fine(plan: Plan) -> bool:
    """Whether times are told in us instead of ms."""
    return plan.judged.constants["frame_ms"] < FINE_FRAME_MS


def unit(plan: Plan) -> str:
    """The unit in which times are told."""
    return "us" if fine(plan) else "ms"


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


def budget_mbps(budget_bytes: int, epoch_ns: int) -> float | None:
    """What a budget allows in Mb/s; None is no limit."""
    return budget_bytes * 8e3 / epoch_ns if budget_bytes else None
