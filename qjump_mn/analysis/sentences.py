"""Fill the medians into the sentences that an experiment file writes about them."""

from __future__ import annotations

from collections.abc import Iterable

from qjump_mn.analysis import claims
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Plan
from qjump_mn.results import formatting
from qjump_mn.results.outcome import ArmSummary, medians

PLACE = "{value}"


def check(plan: Plan) -> None:
    """Check every sentence without data. Raises :class:`UsageError` with the location of an
    error."""
    of(plan, ())


def of(plan: Plan, arms: Iterable[ArmSummary]) -> tuple[str, ...]:
    """Return the sentences of ``plan`` whose value is known: their arms were run."""
    measured, sentences = medians(arms), []
    for number, sentence in enumerate(plan.shown.figure.sentences, start=1):
        where = f"experiment {plan.shown.experiment!r}: figure.sentences, sentence {number}"
        if PLACE not in sentence.text:
            problem = f"text has no {PLACE}: say in it where the value of {sentence.of!r} goes"
            raise UsageError(f"{where}: {problem}")
        value = claims.parse(sentence.of, "number", plan, f"{where}: of").number(
            measured, plan.judged.constants
        )
        if value is not None:
            sentences.append(sentence.text.replace(PLACE, formatting.number(value)))
    return tuple(sentences)
