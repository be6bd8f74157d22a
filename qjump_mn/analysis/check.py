"""Whether a plan can be judged and drawn: said before anything runs, and again before a run directory is
analysed."""

from __future__ import annotations

from qjump_mn.analysis import claims, sentences
from qjump_mn.model.plan import Plan
from qjump_mn.report.figures import registry as figures


def check(plan: Plan) -> None:
    """Raise :class:`UsageError` with the place of a claim, a sentence or a figure that makes no sense."""
    claims.check(plan)
    sentences.check(plan)
    figures.check(plan.figure)
