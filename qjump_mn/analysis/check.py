"""Whether a plan can be judged and drawn: said before anything runs, and again before a run directory is
analysed."""

from __future__ import annotations

from qjump_mn.analysis import beside, claims, sentences
from qjump_mn.model.plan import Plan
from qjump_mn.report.figures import registry as figures


def check(plan: Plan) -> None:
    """Raise :class:`UsageError` with the place of a claim, a sentence, a figure or a table ``beside`` that
    makes no sense."""
    claims.check(plan)
    sentences.check(plan)
    figures.check(plan.figure)
    beside.spec(plan.experiment)
