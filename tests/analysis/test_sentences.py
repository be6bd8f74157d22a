"""What experiments say of their medians: left out without a value, refused where it makes no
sense."""

from __future__ import annotations

import msgspec
import pytest

from qjump_mn import resolve
from qjump_mn.analysis import sentences
from qjump_mn.errors import UsageError
from qjump_mn.model.experiment import SentenceSpec
from qjump_mn.model.plan import Plan
from qjump_mn.programs import registry
from qjump_mn.resolve import loading
from qjump_mn.results.outcome import ArmSummary, Spread


@pytest.fixture(scope="module")
def plan() -> Plan:
    return resolve.plan("fig3a", "smoke", [])


def arm(name: str, *medians: float) -> ArmSummary:
    """An arm whose ping has one median a seed."""
    spread = Spread.of(dict(enumerate(medians, start=1)))
    measures = {"ping": {"p50_ms": spread}}
    return ArmSummary(
        name=name, label=name, scheme="", planned=1, done=1, measures=measures, flows={}
    )


def saying(plan: Plan, of: str, text: str) -> Plan:
    """A copy of ``plan`` with one sentence."""
    plan = msgspec.convert(msgspec.to_builtins(plan), Plan, dec_hook=registry.decode)
    plan.shown.figure.sentences[:] = [SentenceSpec(of=of, text=text)]
    return plan


def test_a_sentence_has_the_value_of_the_medians_over_the_seeds(plan: Plan) -> None:
    arms = [arm("idle", 1), arm("contended", 90, 120, 1000), arm("qjump", 2, 2.5, 3)]
    assert sentences.of(plan, arms) == (
        'The median with QJump is 48 times smaller than without (published: "up to 300 times").',
        "The median with QJump is 2.5 times the idle one.",
    )


def test_a_sentence_about_an_arm_that_was_not_run_is_left_out(plan: Plan) -> None:
    printed = sentences.of(plan, [arm("idle", 1), arm("qjump", 2)])
    assert printed == ("The median with QJump is 2 times the idle one.",)
    assert sentences.of(plan, [arm("idle", 0), arm("qjump", 2)]) == ()
    assert sentences.of(plan, []) == ()


def test_a_sentence_is_of_any_arms_and_measures(plan: Plan) -> None:
    own = saying(
        plan, "window_only.ping.p50_ms - idle.ping.p50_ms", "The window costs {value} ms: {value}!"
    )
    assert sentences.of(own, [arm("idle", 1), arm("window_only", 28)]) == (
        "The window costs 27 ms: 27!",
    )


@pytest.mark.parametrize(
    ("of", "text", "reason"),
    [
        ("idle.ping.p50_ms", "It is fast.", "text has no {value}: say in it where the value of"),
        ("idel.ping.p50_ms", "{value} ms", "did you mean 'idle'"),
        ("idle.ping.p50_ms < 1", "{value} ms", "condition"),
    ],
)
def test_a_sentence_that_makes_no_sense_is_refused_before_anything_runs(
    plan: Plan, of: str, text: str, reason: str
) -> None:
    with pytest.raises(UsageError) as refused:
        sentences.check(saying(plan, of, text))
    assert str(refused.value).startswith("experiment 'fig3a': figure.sentences, sentence 1")
    assert reason in str(refused.value)


@pytest.mark.parametrize("experiment", loading.names("experiments"))
def test_the_sentences_of_every_experiment_and_preset_make_sense(experiment: str) -> None:
    for preset in loading.presets(experiment):
        sentences.check(resolve.plan(experiment, preset, []))
