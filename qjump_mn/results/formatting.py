"""Format numbers, times and names for the terminal and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable

from qjump_mn.model import expression
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.results import bootstrap
from qjump_mn.results.outcome import ArmSummary, Drawing, Outcome, Spread, VerdictRow

NONE = "\N{EN DASH}"

MEANINGS = {
    "REPRODUCED": (
        "the claim holds for every seed, and its number is of the published size, if there is one"
    ),
    "DIRECTION ONLY": "the claim holds for every seed, but its number is not of the published size",
    "PARTLY": "the claim holds for some seeds, not for others",
    "NOT REPRODUCED": "the claim holds for no seed",
    "INVALID": "this run says nothing about the claim: a gate or a check of fidelity failed",
    "NOT RUN": "an arm that the claim needs is missing",
}


def experiment(plan: Plan) -> str:
    """Return the experiment's name, with the published figure that it reproduces, if any."""
    return (
        plan.shown.experiment
        if plan.shown.reproduces.startswith("none")
        else f"{plan.shown.experiment} ({plan.shown.reproduces})"
    )


def number(value: float) -> str:
    """Format with four significant digits and no trailing zeros; keep all digits before the
    point."""
    if abs(value) < 1e-9:
        return "0"  # what is left of a difference of equal numbers is no result
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def time(value: float) -> str:
    """Format a time in ms or us with three significant digits.

    From 0.01 on it has at most three decimals, because ping prints ms to the microsecond.
    """
    if 0 < value < 0.01:
        return f"{value:.3g}"
    return f"{value:.{decimals(value)}f}"


def decimals(value: float) -> int:
    """Return the decimals that give three significant digits, at most three."""
    return 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3


def duration(value_ms: float, unit: str) -> str:
    """Format a time in ``unit`` (ms or us) with three significant digits; below 10 us, always in
    us."""
    if 0 < value_ms < 0.01:
        return f"{value_ms * 1e3:.3g} us"
    value = value_ms * (1e3 if unit == "us" else 1)
    return f"{value:,.{decimals(value)}f} {unit}"


def magnitude(value_ms: float) -> str:
    """Format a time with four significant digits: in ms from 1 ms on, else in us."""
    return f"{number(value_ms)} ms" if abs(value_ms) >= 1 else f"{number(value_ms * 1e3)} us"


def shown(spread: Spread | None, tell: Callable[[float], str] = number) -> str:
    """Format the median over the seeds and, if they differ, the least and the greatest value."""
    if spread is None:
        return NONE
    median, least, greatest = tell(spread.median), tell(spread.minimum), tell(spread.maximum)
    return median if least == greatest else f"{median} [{least}..{greatest}]"


def is_time(measure: str) -> bool:
    """Whether a measure's values are times, in ms."""
    return measure.endswith("_ms")


def value(row: VerdictRow) -> str:
    """Format the number that a claim shows, with its unit."""
    if row.shown is None or not _shows_time(row):
        return shown(row.shown)
    if max(abs(row.shown.minimum), abs(row.shown.maximum)) >= 1:
        return f"{shown(row.shown)} ms"
    return f"{shown(row.shown, _in_us)} us"


def _in_us(value_ms: float) -> str:
    return number(value_ms * 1e3)


def _shows_time(row: VerdictRow) -> bool:
    """Whether a claim's number is in ms: all its names are, and nothing is multiplied or
    divided."""
    names = (
        expression.parse(row.shows, "").names
        if row.shows and not set("*/") & set(row.shows)
        else ()
    )
    return bool(names) and all(is_time(path[-1]) for path in names)


def published(row: VerdictRow) -> str:
    """Return a line with a claim's published number and tolerance, and how far the run's number is
    from it if it is not of that size; "" if none was published."""
    if not row.published:
        return ""
    line = f"published: {size(row)}"
    if row.verdict != "DIRECTION ONLY" or row.times_published is None:
        return line
    better = "better than published: " if row.is_better else ""
    return f"{line}; this run: {better}{number(row.times_published)} times the published number"


def size(row: VerdictRow) -> str:
    """Return a claim's published number and tolerance, for a column with that heading."""
    if row.published is None:
        return NONE
    return f"{original(row)}, within a factor of {number(row.factor)}: {row.because}"


def original(row: VerdictRow) -> str:
    """Format a claim's published number or range, with its unit."""
    return span(row.published or (), magnitude if _shows_time(row) else number)


def span(ends: Iterable[float], tell: Callable[[float], str]) -> str:
    """Format a number, or a range by its ends; ends that read the same are told once."""
    return " to ".join(dict.fromkeys(map(tell, ends)))


def missing_glyphs(drawing: Drawing) -> str:
    """Say which characters a figure shows as boxes; "" if there are none."""
    if not drawing.missing_glyphs:
        return ""
    return (
        f"The font of the figure lacks {' '.join(drawing.missing_glyphs)}: name one that has it as "
        "font.sans-serif in a plots/style.toml of yours"
    )


def intervals(plan: Plan) -> str:
    """Say what varies from seed to seed, and what the intervals mean."""
    many = len(plan.run.seeds)
    if many == 1:
        return "One replicate: nothing says how far its values would spread."
    seeds = f"{many} replicates: seeds {plan.run.seeds[0]} to {plan.run.seeds[-1]}"
    varied = f"{seeds}, which decide when programs start and what they draw."
    if many < bootstrap.MIN_VALUES:
        return f"{varied} There are intervals from {bootstrap.MIN_VALUES} seeds on."
    whole = f"; of up to {bootstrap.MAX_EXHAUSTIVE} seeds they are from the least to the greatest"
    how = "Intervals are 95 % bootstrap intervals of the median over seeds, by percentiles"
    return f"{varied} {how}{whole if many <= bootstrap.MAX_EXHAUSTIVE else ''}."


def perturbed(row: VerdictRow) -> str:
    """Say in how many perturbed runs a claim holds, and what breaks it first; "" without such
    runs."""
    found = row.perturbed
    if found is None or (row.verdict == "NOT RUN" and not found.checked):
        return ""
    silent = found.planned - len(found.checked)
    untold = f" ({silent} of {found.planned} changed nothing or cannot be judged)" if silent else ""
    broken = f"; first broken by: {found.broken_by}" if found.broken_by else ""
    return f"holds in {len(found.held)} of {len(found.checked)} perturbed runs{untold}{broken}"


def perturbations(plan: Plan) -> str:
    """List what is varied in the perturbed runs, each with the numbers of its runs."""
    numbers: dict[str, list[str]] = {}
    for number, perturbation in enumerate(plan.run.perturbations, 1):
        numbers.setdefault(perturbation.what, []).append(f"{number}")
    kinds = "; ".join(f"{what} ({', '.join(which)})" for what, which in numbers.items())
    return f"{len(plan.run.perturbations)}: {kinds}"


FINE_FRAME_MS = 0.1
"""If a full-size frame takes less (above about 120 Mb/s), times are written in us."""


def fine(plan: Plan) -> bool:
    """Whether times are written in us instead of ms."""
    return plan.judged.constants["frame_ms"] < FINE_FRAME_MS


def unit(plan: Plan) -> str:
    """Return the unit in which times are written."""
    return "us" if fine(plan) else "ms"


def replicates(arm: ArmSummary) -> str:
    """Format how many of an arm's trials are done."""
    return str(arm.done) if arm.done == arm.planned else f"{arm.done} of {arm.planned}"


def series_label(arm: ArmPlan) -> str:
    """Return an arm's label without its value of the sweep."""
    return arm.label.rpartition(",")[0] if arm.series else arm.label


def series_labels(plan: Plan) -> dict[str, str]:
    """Return the label of each series, and of each arm outside a series, by name."""
    return {arm.series or arm.name: series_label(arm) for arm in plan.arms}


def same_limits(arms: Iterable[ArmPlan], series: str) -> bool:
    """Whether ``series`` is a series whose arms all have the same rate limits, or none."""
    return bool(series) and len({arm.qjump for arm in arms if arm.series == series}) == 1


def flow(ends: tuple[str, str]) -> str:
    """Format a flow as source and destination, on one line."""
    return "\N{NO-BREAK SPACE}\N{RIGHTWARDS ARROW}\N{NO-BREAK SPACE}".join(ends)


def seeds(found: Collection[int]) -> str:
    """Format seeds: "seed 1", "seeds 1, 2, 3", or "seeds 1 to 30" for a long range."""
    ordered = sorted(found)
    if len(ordered) > 4 and ordered[-1] - ordered[0] == len(ordered) - 1:
        numbers = f"{ordered[0]} to {ordered[-1]}"
    else:
        numbers = ", ".join(map(str, ordered))
    return f"seed{'s' * (len(ordered) > 1)} {numbers}"


def percent(share: float) -> str:
    """Format a fraction as per cent; "0" means exactly zero."""
    return "0" if share == 0 else f"{share * 100:.2g} %" if share < 0.1 else f"{share * 100:.1f} %"


def verdicts(outcome: Outcome) -> str:
    """Count the claims by verdict, in the order of first occurrence."""
    counts = Counter(row.verdict for row in outcome.verdicts)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def fidelity(outcome: Outcome) -> str:
    """Return one line that says whether the run may be believed."""
    failed = [check for check in outcome.checks if check.status == "fail"]
    unknown = [check.name for check in outcome.checks if check.status == "unknown"]
    rest = f"; not checked: {', '.join(unknown)}" if unknown else ""
    if not failed:
        return f"passed, {len(outcome.checks) - len(unknown)} of {len(outcome.checks)} checks{rest}"
    verdict = "FAILED" if not outcome.believable else "incomplete"
    return f"{verdict}: " + "; ".join(f"{check.name}: {check.text}" for check in failed) + rest


def budget_mbps(budget_bytes: int, epoch_ns: int) -> float | None:
    """Return the rate that a budget allows, in Mb/s; None means no limit."""
    return budget_bytes * 8e3 / epoch_ns if budget_bytes else None
