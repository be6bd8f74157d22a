"""Judge claims from measures, and derive the exit code from the verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from qjump_mn.analysis import claims
from qjump_mn.analysis.measures import TrialMeasures
from qjump_mn.model.plan import Plan
from qjump_mn.programs.facts import Check
from qjump_mn.results.outcome import Spread, Verdict, VerdictRow

HOLDS, FAILS, INVALID, LOST = 0, 1, 4, 5


def judge(
    plan: Plan, trials: Sequence[TrialMeasures], checks: Sequence[Check]
) -> tuple[VerdictRow, ...]:
    """Return a verdict on every claim of ``plan``, seed by seed.

    A claim that divides by zero is INVALID by itself. If a check of fidelity fails, or a gate does
    not hold for every seed, every claim that could be checked is INVALID; its values stay, because
    they show what went wrong.
    """
    rows = [_row(plan, name, _by_seed(trials)) for name in plan.judged.claims]
    reasons = [
        f"fidelity: {check.name}"
        for check in checks
        if check.status == "fail" and not check.completeness
    ]
    reasons += [f"gate: {row.claim}" for row in rows if row.fails_gate]
    if not reasons:
        return tuple(rows)
    return tuple(
        row
        if row.verdict == "NOT RUN"
        else _with(row, "INVALID", "; ".join([*reasons, row.note] if row.note else reasons))
        for row in rows
    )


def exit_code(
    rows: Sequence[VerdictRow], missing: Mapping[str, str], checks: Sequence[Check]
) -> int:
    """Return 0 if every checked claim holds, 1 if one does not, 4 for an invalid run, 5 if
    something was lost.

    Invalid comes before lost, and lost before a claim that does not hold.
    """
    if any(row.verdict == "INVALID" for row in rows) or any(
        check.status == "fail" and not check.completeness for check in checks
    ):
        return INVALID
    if missing:
        return LOST
    return FAILS if any(row.verdict in ("PARTLY", "NOT REPRODUCED") for row in rows) else HOLDS


def _by_seed(
    trials: Sequence[TrialMeasures],
) -> dict[int, dict[str, Mapping[str, Mapping[str, float]]]]:
    by_seed: dict[int, dict[str, Mapping[str, Mapping[str, float]]]] = {}
    for trial in trials:
        by_seed.setdefault(trial.seed, {})[trial.arm] = trial.values
    return by_seed


def _row(plan: Plan, name: str, by_seed: Mapping[int, claims.Measured]) -> VerdictRow:
    claim = plan.judged.claims[name]
    judged = claims.Claim.of(plan, name)
    needed = set(judged.arms)
    checked = tuple(
        seed for seed in plan.run.seeds if seed in by_seed and needed <= set(by_seed[seed])
    )
    held = tuple(seed for seed in checked if judged.holds(by_seed[seed], plan.judged.constants))
    defines = [judged.is_defined(by_seed[seed], plan.judged.constants) for seed in checked]
    is_known = all(judged.is_knowable(by_seed[seed], plan.judged.constants) for seed in checked)
    undefined = "" if all(defines) else "its predicate has no value: a measure is missing"
    undefined = undefined if is_known else "its predicate divides by zero: nothing is known"
    values = {seed: judged.shown(by_seed[seed], plan.judged.constants) for seed in checked}
    defined = {seed: value for seed, value in values.items() if value is not None}
    size = judged.size
    is_size = size is None or all(size.is_met(value) for value in values.values())
    return VerdictRow(
        claim=name,
        statement=claim.statement,
        source=claim.source,
        predicate=claim.predicate,
        shows=claim.shows,
        gate=claim.gate,
        verdict=_verdict(held, checked, is_size=is_size) if is_known else "INVALID",
        shown=Spread.of(defined) if defined else None,
        held=held,
        checked=checked,
        note="; ".join(filter(None, [_note(plan, needed, by_seed, checked), undefined])),
        published=(size.least, size.most) if size else None,
        factor=size.factor if size else 1.0,
        because=size.because if size else "",
        better=size.better if size else "",
    )


def _verdict(held: tuple[int, ...], checked: tuple[int, ...], *, is_size: bool) -> Verdict:
    if not checked:
        return "NOT RUN"
    if held == checked:
        return "REPRODUCED" if is_size else "DIRECTION ONLY"
    return "PARTLY" if held else "NOT REPRODUCED"


def _note(
    plan: Plan, needed: set[str], by_seed: Mapping[int, claims.Measured], checked: tuple[int, ...]
) -> str:
    if not_run := needed & {arm.name for arm in plan.judged.not_run}:
        return f"not asked for: {', '.join(sorted(not_run))}"
    if not checked:
        absent = [
            arm.name
            for arm in plan.arms
            if arm.name in needed and not any(arm.name in arms for arms in by_seed.values())
        ]
        return f"no data of {', '.join(absent)}" if absent else "no seed has all of its arms"
    return (
        f"{len(checked)} of {len(plan.run.seeds)} seeds"
        if len(checked) < len(plan.run.seeds)
        else ""
    )


def _with(row: VerdictRow, verdict: Verdict, note: str) -> VerdictRow:
    return msgspec.structs.replace(row, verdict=verdict, note=note)
