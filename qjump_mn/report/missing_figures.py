"""Explain why a run has no figure."""

from __future__ import annotations

from qjump_mn.model.plan import Plan
from qjump_mn.results.outcome import Outcome

PANELLED = ("bars", "sweep", "variations")
"""Figures that draw what the experiment names in ``panels``."""
UNSWEPT = ("bars", "timeline")
"""Figures that draw no arms of a sweep."""


def why(plan: Plan, outcome: Outcome) -> str:
    """Return a sentence for a run whose figure has nothing to draw."""
    return f"There is no figure: {_reason(plan, outcome)}."


def _reason(plan: Plan, outcome: Outcome) -> str:
    figure = plan.shown.figure
    names = {arm.name for arm in outcome.arms if arm.done}
    done = [arm for arm in plan.run.arms if arm.name in names]
    asked = [arm for arm in done if {arm.name, arm.series} & set(figure.arms)]
    draws = f'plot = "{figure.plot}" draws'
    if not done:
        return "no trial is done"
    if figure.plot in PANELLED and not figure.panels:
        return f"{draws} panels, and [figure] of the experiment has none"
    if figure.plot == "latency_cdf":
        return "no trial that is done has requests with latencies"
    if figure.plot in (*PANELLED, *UNSWEPT) and not asked:
        return "no trial of the arms that it shows is done"
    if figure.plot in UNSWEPT and all(arm.series for arm in asked):
        return f"{draws} no arms of a sweep, and it shows no others that are done"
    if figure.plot == "variations" and not any(arm.series for arm in done):
        return f"{draws} the arms of sweeps, and none of them is done"
    if figure.plot in PANELLED:
        return "no trial that is done has what its panels show, or what that is relative to"
    return f'plot = "{figure.plot}" found nothing to draw'
