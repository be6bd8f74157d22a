"""What an experiment says of its medians: each sentence with the value of an expression of the claims' language."""

from __future__ import annotations

from collections.abc import Iterable

from qjump_mn.analysis import claims
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Plan
from qjump_mn.results import wording
from qjump_mn.results.outcome import ArmSummary, medians

PLACE = "{value}"


def check(plan: Plan) -> None:
    """Check every sentence of ``plan`` without any data; raise :class:`UsageError` with its place for one that is wrong."""
    of(plan, ())


def of(plan: Plan, arms: Iterable[ArmSummary]) -> tuple[str, ...]:
    """The sentences of ``plan``, without those whose expression has no value: an arm was not run, or has no answer."""
    measured, sentences = medians(arms), []
    for number, sentence in enumerate(plan.figure.sentences, start=1):
        where = f"experiment {plan.experiment!r}: figure.sentences, sentence {number}"
        if PLACE not in sentence.text:
            raise UsageError(f"{where}: text has no {PLACE}: say in it where the value of {sentence.of!r} goes")
        value = claims.parse(sentence.of, "number", plan, f"{where}: of").number(measured, plan.constants)
        if value is not None:
            sentences.append(sentence.text.replace(PLACE, wording.number(value)))
    return tuple(sentences)
