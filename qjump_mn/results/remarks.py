"""Write remarks that explain the medians, for the terminal and the report."""

from __future__ import annotations

from collections.abc import Iterator

from qjump_mn.model import hooks
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.results import formatting
from qjump_mn.results.outcome import Outcome


def of(plan: Plan, outcome: Outcome) -> list[str]:
    """Return the remarks on a run: the experiment's own, arms without a difference, stalled jobs,
    and what priorities explain."""
    return [
        *outcome.sentences,
        *outcome.alike,
        *_stalled(plan, outcome),
        *_priorities(plan, outcome),
    ]


def _stalled(plan: Plan, outcome: Outcome) -> Iterator[str]:
    """Point out jobs that completed no round.

    An arm that starves its background traffic looks as good as one that protects from it.
    """
    labels = {workload.name: workload.label for arm in plan.arms for workload in arm.workloads}
    for arm in outcome.arms:
        for workload, measured in arm.measures.items():
            rounds = measured.get("rounds")
            if rounds is None or (still := rounds.values.count(0)) == 0:
                continue
            some = (
                f", in {still} of {len(rounds.values)} replicates"
                if still < len(rounds.values)
                else ""
            )
            yield (
                f"In the arm '{arm.label}' {labels[workload]} completed no round while something "
                f"was measured{some}: its row says what others meet without it."
            )


def _priorities(plan: Plan, outcome: Outcome) -> list[str]:
    """Point out that priorities alone explain an effect, if a limiter never holds bulk traffic
    back.

    This needs such an arm and one that has priorities without a limiter.
    """
    medians = _medians(plan, outcome)
    measured = [arm for arm in plan.arms if arm.name in medians]
    limited = next((arm for arm in measured if _lets_bulk_pass(arm, plan)), None)
    alone = next(
        (arm for arm in measured if arm.uses_levels and not arm.qjump and len(arm.workloads) > 1),
        None,
    )
    if limited is None or alone is None:
        return []
    rate = _bulk_mbps(limited)[0]
    link = f"more than the link's {formatting.number(plan.shown.network.link.rate_bps / 1e6)} Mb/s"
    budget = (
        "has no limit"
        if rate is None
        else f"may send {formatting.number(rate)} Mb/s a host, {link}"
    )
    return [
        f"In the arm '{limited.label}' the bulk level {budget}: the limiter never holds the bulk "
        "traffic back, and the effect is that of the priorities. With priorities alone "
        f"('{alone.label}') the median is {formatting.magnitude(medians[alone.name])}, with the "
        f"limiter {formatting.magnitude(medians[limited.name])}."
    ]


def _lets_bulk_pass(arm: ArmPlan, plan: Plan) -> bool:
    """Whether the arm has limits, but none below the link rate for its bulk traffic."""
    rates = _bulk_mbps(arm)
    return bool(rates) and all(
        rate is None or rate >= plan.shown.network.link.rate_bps / 1e6 for rate in rates
    )


def _bulk_mbps(arm: ArmPlan) -> list[float | None]:
    """Return the limit of each bulk workload of an arm, in Mb/s; None means no limit."""
    levels = [workload.level for workload in arm.workloads if hooks.is_background(workload)]
    return (
        [
            formatting.budget_mbps(arm.qjump.budget_bytes[level], arm.qjump.epoch_ns)
            for level in levels
        ]
        if arm.qjump
        else []
    )


def _medians(plan: Plan, outcome: Outcome) -> dict[str, float]:
    workload = plan.shown.figure.workload
    return {
        arm.name: arm.measures[workload]["p50_ms"].median
        for arm in outcome.arms
        if "p50_ms" in arm.measures.get(workload, {})
    }
