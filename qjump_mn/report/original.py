"""Compare a run with the original experiment: its size, its published numbers, and the run's."""

from __future__ import annotations

from typing import NamedTuple

from qjump_mn.model.plan import Plan
from qjump_mn.report.figures import behind, notes
from qjump_mn.report.figures.behind import Behind
from qjump_mn.results import formatting
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import Drawing, Outcome

OWN = "an experiment of one's own"
"""What the file of an experiment is taken to reproduce, "none: ...", where it says nothing."""


class Original(NamedTuple):
    """A table, and sentences about it."""

    heads: tuple[str, str, str, str]
    rows: tuple[tuple[str, str, str, str], ...]
    sentences: tuple[str, ...]


def original(plan: Plan, outcome: Outcome) -> Original:
    """Return every published number for which this run has a value: of its figures, then of its
    claims."""
    pictures = _behind(plan)
    drawn = [picture for picture in pictures if picture is not None]
    rows = [*(_numbers(plan, outcome, drawn[0]) if drawn else []), *_claims(outcome)]
    sentences = [_curves(drawn)] if drawn else []
    sentences += list(dict.fromkeys(f"{one.figure.source}." for one in drawn))
    if len(drawn) < len(pictures):
        sentences.append(
            "Figures that were published for links of another rate are not drawn behind those of "
            "this run: their values do not scale with it."
        )
    if not rows:
        sentences.insert(0, _nothing(plan, curves=bool(drawn)))
    heads = ("what", "published", f"this run, {plan.shown.network.told_links}", "source")
    return Original(heads, tuple(rows), tuple(sentences))


def lead(manifest: Manifest, drawing: Drawing) -> str:
    """Describe a figure in 40 words at most; its caption says the rest."""
    plan = manifest.plan
    how = (
        "the simulator"
        if manifest.backend == "simulator"
        else f"real Linux on a {manifest.clock} clock"
    )
    seeds = (
        f"{len(plan.run.seeds)} seeds" if len(plan.run.seeds) > 1 else f"seed {plan.run.seeds[0]}"
    )
    shown = any(one.shows for one in _behind(plan) if one)
    published = " What was published is hollow or grey." if shown else ""
    title = drawing.title[:1].upper() + drawing.title[1:]
    lacks = formatting.missing_glyphs(drawing)
    return (
        f"{title}. Preset {plan.shown.preset}: {plan.shown.network.told_links}, {how}, "
        f"{seeds}.{published}{f' {lacks}.' if lacks else ''}"
    )


def subset(plan: Plan, outcome: Outcome) -> str:
    """Say how much of the experiment was run and judged."""
    many = len(plan.run.seeds)
    judged = sum(row.verdict != "NOT RUN" for row in outcome.verdicts)
    left_out = ", ".join(f"'{arm.label}'" for arm in plan.arms if arm not in plan.run.arms)
    not_run = f" Not run: {left_out}." if left_out else ""
    return (
        f"This run has {len(plan.run.arms)} of the {len(plan.arms)} arms of experiment "
        f"{plan.shown.experiment}, preset {plan.shown.preset}, with {many} "
        f"seed{'' if many == 1 else 's'} each, and judges {judged} of its {len(outcome.verdicts)} "
        f"claims.{not_run}"
    )


def _numbers(plan: Plan, outcome: Outcome, picture: Behind) -> list[tuple[str, str, str, str]]:
    rows = []
    for entry, stretched in picture.values.items():
        name, workload, measure = entry.split(".")
        arm = outcome.arm(name)
        spread = arm.measures.get(workload, {}).get(measure) if arm else None
        if arm is None or spread is None:
            continue
        what = f"{arm.label}: {notes.heading(plan, f'{workload}.{measure}', named=True)}"
        told = _range(plan, measure, (stretched[0], stretched[1]))
        if picture.scale != 1 and formatting.is_time(measure):
            own = (stretched[0] / picture.scale, stretched[1] / picture.scale)
            told = f"{_range(plan, measure, own, in_us=True)}; at this run's rate {told}"
        rows.append(
            (
                what,
                told,
                _range(plan, measure, (spread.median, spread.median)),
                picture.figure.title,
            )
        )
    return rows


def _range(plan: Plan, measure: str, ends: tuple[float, float], *, in_us: bool = False) -> str:
    unit = "us" if in_us else formatting.unit(plan)
    tell = (
        (lambda value: formatting.duration(value, unit))
        if formatting.is_time(measure)
        else formatting.number
    )
    return formatting.span(ends, tell)


def _claims(outcome: Outcome) -> list[tuple[str, str, str, str]]:
    return [
        (
            row.statement,
            formatting.original(row),
            formatting.value(row),
            row.source,
        )
        for row in outcome.verdicts
        if row.published
    ]


def _behind(plan: Plan) -> list[Behind | None]:
    """Return what is drawn behind each panel of a figure that names published values."""
    return [behind.of(plan, picture) for picture in range(len(plan.shown.figure.published))]


def _curves(drawn: list[Behind]) -> str:
    shown = [one for one in drawn if one.shows]
    titles = " and ".join(dict.fromkeys(one.figure.title for one in shown or drawn))
    if not shown:
        return f"The figures above have the axes of {titles}, and nothing of it behind their data."
    how = (
        "at its scale: times are stretched by the ratio of the link rates"
        if drawn[0].scale != 1
        else "with its axes"
    )
    return f"The figures above have {titles} behind their data, hollow or grey, {how}."


def _nothing(plan: Plan, *, curves: bool) -> str:
    if plan.shown.reproduces.startswith("none"):
        what = plan.shown.reproduces.partition(":")[2].strip()
        if what == OWN:
            return "This experiment is one's own: it reproduces no published result."
        return "This experiment reproduces no published result" + (f": {what}." if what else ".")
    where = "what was published in words is in the source of each claim, in Verdicts."
    if curves:
        return f"No single number was published that a value of this run stands beside; {where}"
    return f"Not published as numbers or curves that this run could be put beside; {where}"
