"""Check that a plan can be judged and drawn, before a run and before its analysis."""

from __future__ import annotations

from qjump_mn.analysis import claims, sentences
from qjump_mn.errors import UsageError
from qjump_mn.model import suggestions
from qjump_mn.model.plan import Plan
from qjump_mn.report.figures import registry as figures
from qjump_mn.resolve import constants


def check(plan: Plan) -> None:
    """Raise :class:`UsageError` with the location of a bad claim, sentence or figure."""
    claims.check(plan)
    sentences.check(plan)
    figures.check(plan.shown.figure)
    _check_bounds(plan)


def _check_bounds(plan: Plan) -> None:
    """Raise :class:`UsageError` for a panel's bound that is neither a constant nor a measure of
    arms."""
    bounds = [
        panel.bound
        for panel in plan.shown.figure.panels
        if panel.bound not in ("", *plan.judged.constants)
    ]
    if not bounds:
        return
    series = sorted({name for arm in plan.arms for name in (arm.name, arm.series) if name})
    entries = sorted(constants.entries(plan.arms))
    measures = [f"{name}.{entry}" for name in series for entry in entries]
    for bound in bounds:
        if bound not in measures:
            nearest = suggestions.nearest(bound, [*plan.judged.constants, *measures])
            raise UsageError(
                f"experiment {plan.shown.experiment!r}: figure: there is no bound {bound!r}: "
                f"{nearest}"
            )
