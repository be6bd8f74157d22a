"""Whether a plan can be judged and drawn: said before anything runs, and again before a run directory is
analysed."""

from __future__ import annotations

from qjump_mn.analysis import claims, sentences
from qjump_mn.errors import UsageError
from qjump_mn.model import choices
from qjump_mn.model.plan import Plan
from qjump_mn.programs import registry
from qjump_mn.report.figures import registry as figures


def check(plan: Plan) -> None:
    """Raise :class:`UsageError` with the place of a claim, a sentence or a figure that makes no sense."""
    claims.check(plan)
    sentences.check(plan)
    figures.check(plan.figure)
    _check_bounds(plan)


def _check_bounds(plan: Plan) -> None:
    """Raise :class:`UsageError` for a panel's bound that is neither a constant nor a measure of arms."""
    series = {name for arm in plan.arms for name in (arm.name, arm.series) if name}
    known = {
        f"{workload.name}.{measure}"
        for arm in plan.arms
        for workload in arm.workloads
        for measure in registry.headings(workload)
    }
    for panel in plan.figure.panels:
        name, _, measure = panel.bound.partition(".")
        if panel.bound and panel.bound not in plan.constants and (name not in series or measure not in known):
            nearest = choices.nearest(
                panel.bound, [*plan.constants, *(f"{a}.{b}" for a in sorted(series) for b in sorted(known))]
            )
            raise UsageError(
                f"experiment {plan.experiment!r}: figure: there is no bound {panel.bound!r}: {nearest}"
            )
