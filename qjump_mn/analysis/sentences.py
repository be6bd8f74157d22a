"""What an experiment says of its medians: sentences with the values of expressions."""

from __future__ import annotations

from collections.abc import Iterable

from qjump_mn.analysis import claims
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Plan
from qjump_mn.results import formatting
from qjump_mn.results.outcome import ArmSummary, medians

PLACE = "{value}"


def check(plan: Plan) -> None:
    """Check every sentence without any data; raise :class:`UsageError` with the place of a wrong one."""
    of(plan, ())


def of(plan: Plan, arms: Iterable[ArmSummary]) -> tuple[str, ...]:
    """The sentences of ``plan`` that have a value; one about an arm that was not run has none."""
    measured, sentences = medians(arms), []
    for number, sentence in enumerate(plan.shown.figure.sentences, start=1):
        where = f"experiment {plan.shown.experiment!r}: figure.sentences, sentence {number}"
        if PLACE not in sentence.text:
            what = f"text has no {PLACE}: say in it where the value of {sentence.of!r} goes"
            raise UsageError(f"{where}: {what}")
        value = claims.parse(sentence.of, "number", plan, f"{where}: of").number(
            measured, plan.judged.constants
        )
        if value is not None:
            sentences.append(sentence.text.replace(PLACE, formatting.number(value)))
    return tuple(sentences)
