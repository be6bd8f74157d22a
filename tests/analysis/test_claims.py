"""The claims' language and the verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from qjump_mn import resolve
from qjump_mn.analysis import claims, verdicts
from qjump_mn.analysis.measures import TrialMeasures
from qjump_mn.errors import UsageError
from qjump_mn.model.experiment import ClaimSpec, SizeSpec
from qjump_mn.model.plan import Plan
from qjump_mn.programs.facts import Check
from qjump_mn.results.outcome import VerdictRow
from tests.support import synthetic
from tests.support.processes import printed

PLAN = resolve.plan("fig3a", "smoke", [])
MEASURED = {
    "idle": {"ping": {"p50_ms": 0.78, "p99_ms": 0.79, "loss": 0.0}},
    "contended": {
        "ping": {"p50_ms": 113.0, "p99_ms": 126.0, "loss": 0.1},
        "bulk": {"goodput_mbps": 9.36, "retransmits": 7.0},
    },
}


def number(text: str, measured: claims.Measured = MEASURED) -> float | None:
    return claims.parse(text, "number", PLAN, "here").number(measured, PLAN.judged.constants)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("rate_mbps", 10),
        ("idle.ping.p50_ms", 0.78),
        ("contended.bulk.goodput_mbps / rate_mbps", 0.936),
        ("(contended.ping.p50_ms - idle.ping.p50_ms) / frame_ms", (113 - 0.78) / 1.2336),
    ],
)
def test_numbers(text: str, value: float) -> None:
    assert number(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("idel.ping.p50_ms < 1",
         "here: character 1: 'idel.ping.p50_ms' names no arm: there is no 'idel', did you mean "
         "'idle'?"),
        ("idle.pign.p50_ms < 1", "did you mean 'ping'?"),
        ("idle.bulk.goodput_mbps < 1", "names no workload of that arm: there is no 'bulk'"),
        ("idle.ping.p5_ms < 1",
         "names no measure of that workload: there is no 'p5_ms', did you mean 'p50_ms'?"),
        ("contended.bulk.p50_ms < 1", "known are goodput_mbps, offered_mbps, retransmits"),
        ("frame_msx < 1", "'frame_msx' is not known: did you mean 'frame_ms'?"),
        ("idle < 1", "is an arm: write a measure of it, such as idle.ping.sent"),
        ("idle.ping < 1", "is not a measure: write arm.workload.measure, such as idle.ping.sent"),
        ("idle.ping.p50_ms.real < 1", "is not a measure"),
    ],
)  # fmt: skip
def test_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        claims.parse(text, "truth", PLAN, "here")
    assert message in str(caught.value)
    assert str(caught.value).startswith("here: ")


def test_shows_must_be_a_number() -> None:
    with pytest.raises(UsageError, match="is a condition, but must be a number: write one"):
        claims.parse("1 < 2", "number", PLAN, "here")


def test_plans_are_checked_without_data() -> None:
    for preset in ("smoke", "course", "paper"):
        claims.check(resolve.plan("fig3a", preset, []))
    wrong = {
        **PLAN.judged.claims,
        "extra": ClaimSpec(statement="s", source="s", predicate="1 < 2", shows="idle.ping.p51_ms"),
    }
    place = r"experiment 'fig3a': claims\.extra\.shows: character 1: "
    judged = replace(PLAN.judged, claims=wrong)
    with pytest.raises(UsageError, match=place + r"'idle\.ping\.p51_ms' names no measure"):
        claims.check(replace(PLAN, judged=judged))


def test_plans_are_checked_with_what_sudo_has() -> None:
    code = """
import sys
from qjump_mn.analysis import claims
from qjump_mn import resolve
from qjump_mn.report.figures import registry
plan = resolve.plan("fig3a", "smoke", [])
claims.check(plan)
registry.check(plan.shown.figure)
print(*{name.split(".")[0] for name in sys.modules})
"""
    assert not {"numpy", "pyarrow", "matplotlib", "jinja2"} & set(printed(code).split())


def test_arms_in_the_order_of_their_names() -> None:
    assert claims.parse(
        "contended.ping.loss + idle.ping.loss + contended.ping.p50_ms", "number", PLAN, "here"
    ).arms == ("contended", "idle")


@pytest.mark.parametrize(
    ("value", "met"),
    [(None, False), (1.0, True), (0.999, False), (8.0, True), (8.001, False), (3.0, True)],
)
def test_size_is_met_within_its_factor_on_both_sides(value: float | None, met: bool) -> None:
    assert claims.Size(2, 4, 2, "because", "").is_met(value) is met


def published(size: SizeSpec, **numbers: float | tuple[float, float]) -> claims.Claim:
    claim = ClaimSpec(
        statement="s",
        source="s",
        predicate="idle.ping.p50_ms > 0",
        shows="contended.ping.p50_ms / idle.ping.p50_ms",
        size=size,
    )
    numbered = {f"{arm}.ping.p50_ms": value for arm, value in numbers.items()}
    judged = replace(PLAN.judged, claims={"one": claim}, published=numbered)
    return claims.Claim.of(replace(PLAN, judged=judged), "one")


@pytest.mark.parametrize(
    ("size", "numbers", "ends"),
    [
        (SizeSpec(factor=1, because="b"), {"idle": 2.0, "contended": 6.0}, (3, 3)),
        (SizeSpec(factor=2, because="b"), {"idle": (1.0, 2.0), "contended": (6.0, 8.0)}, (3, 8)),
        (SizeSpec(factor=2, because="b", published=5), {}, (5, 5)),
        (SizeSpec(factor=2, because="b", published=(5, 5)), {}, (5, 5)),
        (SizeSpec(factor=2, because="b", published=(0.1, 7)), {}, (0.1, 7)),
    ],
)
def test_published_size_is_given_or_of_all_published_ends(
    size: SizeSpec, numbers: dict[str, float], ends: tuple[float, float]
) -> None:
    made = published(size, **numbers).size
    assert made is not None and (made.least, made.most, made.factor) == (*ends, size.factor)


@pytest.mark.parametrize(
    ("size", "numbers", "sentence"),
    [
        (SizeSpec(factor=0.99, because="b"), {}, "set `factor` to 1 or more"),
        (SizeSpec(factor=2, because=""), {}, "explain it in `because`"),
        (SizeSpec(factor=2, because="b", published=0), {}, "give a number above 0"),
        (SizeSpec(factor=2, because="b", published=(2, 1)), {}, "the first is smaller"),
        (SizeSpec(factor=2, because="b"), {"idle": 2.0}, "there is no 'contended.ping.p50_ms'"),
        (
            SizeSpec(factor=2, because="b"),
            {"idle": 2.0, "contended": (0.0, 2.0)},
            "no number above",
        ),
        (SizeSpec(factor=2, because="b"), {"idel": 2.0}, "because there is no"),
    ],
)
def test_size_without_published_numbers_is_refused(
    size: SizeSpec, numbers: dict[str, float], sentence: str
) -> None:
    with pytest.raises(UsageError, match=rf"claims\.one\.size.*{re.escape(sentence)}"):
        published(size, **numbers)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("idle.ping.p50", "names no measure"),
        ("idle.p50_ms", "is not a measure"),
        ("other.ping.p50_ms.more", "is not a measure"),
        ("other.ping.nosuch", None),
    ],
)
def test_published_numbers_are_of_measures(name: str, sentence: str | None) -> None:
    judged = replace(PLAN.judged, claims={}, published={name: 1.0})
    made = replace(PLAN, judged=judged)
    if sentence is None:
        claims.check(made)  # the arm may be another preset's
        return
    with pytest.raises(UsageError, match=rf"published\.{re.escape(name)}: {sentence}"):
        claims.check(made)


SWEPT = resolve.plan("fig10", "smoke", [])
"""The series delay at x = 100, 250, 450, 500 and dropped at 250, 500; and the arm free."""
OVER_SERIES = "delay.memcached.requests_per_s < 10 * x"
OVER_BOTH = "delay.memcached.requests_per_s < dropped.memcached.requests_per_s"


def swept(predicate: str, where: str = "", shows: str = "") -> claims.Claim:
    claim = ClaimSpec(statement="s", source="s", predicate=predicate, where=where, shows=shows)
    judged = replace(SWEPT.judged, claims={"one": claim})
    return claims.Claim.of(replace(SWEPT, judged=judged), "one")


@pytest.mark.parametrize(
    ("predicate", "where", "arms"),
    [
        (OVER_SERIES, "", ("delay_100", "delay_250", "delay_450", "delay_500")),
        (OVER_SERIES, "x >= 450", ("delay_450", "delay_500")),
        (OVER_SERIES, "x <= 10 * rate_mbps", ("delay_100",)),
        (OVER_BOTH, "", ("delay_250", "dropped_250", "delay_500", "dropped_500")),
        ("free.memcached.requests_per_s > 1", "", ("free",)),
        ("delay_250.memcached.requests_per_s > 1", "", ("delay_250",)),
    ],
)
def test_claim_over_series_is_about_each_x_that_all_have(
    predicate: str, where: str, arms: tuple[str, ...]
) -> None:
    assert swept(predicate, where).arms == arms


def requests(**values: float) -> claims.Measured:
    return {arm: {"memcached": {"requests_per_s": value}} for arm, value in values.items()}


def test_claim_over_series_holds_at_every_x_and_shows_the_largest() -> None:
    claim = swept(OVER_SERIES, "x <= 250", "delay.memcached.requests_per_s / x")
    for values, held, shown in (((999, 2499), True, 9.996), ((999, 2501), False, 10.004)):
        measured = requests(delay_100=values[0], delay_250=values[1])
        assert claim.holds(measured, {}) is held
        assert claim.shown(measured, {}) == pytest.approx(shown)


@pytest.mark.parametrize(
    ("predicate", "where", "sentence"),
    [
        ("free.memcached.requests_per_s > 1", "x > 1", "so there is no x: leave `where` out"),
        (OVER_SERIES, "x > 500", "no value of the sweep is left"),
        (
            OVER_SERIES,
            "delay.memcached.loss > 0",
            "is a measure, which is not known before the run",
        ),
        (OVER_SERIES, "x", "is a number, but must be a condition"),
        ("free.memcached.requests_per_s > x", "", "'x' is not known"),
        ("delay > 1", "", "is a series: write a measure of it, such as delay.memcached."),
        ("delay_250 > 1", "", "is an arm: write a measure of it, such as delay_250.memcached."),
        ("1 / (x - 100) > delay.memcached.loss", "", "never has a value"),
    ],
)
def test_claim_over_series_that_cannot_be_is_refused(
    predicate: str, where: str, sentence: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        swept(predicate, where)


# Verdicts


def plan_of(
    predicate: str, *, gate: str = "1 < 2", replicates: int = 3, only: Sequence[str] = ()
) -> Plan:
    plan = resolve.plan("fig3a", "smoke", [], replicates=replicates, only=only)
    made = {
        "claim": ClaimSpec(
            statement="s", source="s", predicate=predicate, shows="qjump.ping.p50_ms"
        ),
        "gate": ClaimSpec(statement="s", source="s", predicate=gate, gate=True),
    }
    return synthetic.altered(plan, judged={"claims": made})


def trials(**medians: list[float]) -> list[TrialMeasures]:
    return [
        TrialMeasures(arm, seed, {"ping": {"p50_ms": value}}, {})
        for arm, values in medians.items()
        for seed, value in enumerate(values, 1)
    ]


def judged(
    plan: Plan, measured: list[TrialMeasures], checks: list[Check] | None = None
) -> tuple[VerdictRow, VerdictRow, int]:
    checks = checks or []
    claim, gate = verdicts.judge(plan, measured, checks)
    done = {f"{trial.arm}/{trial.seed}" for trial in measured}
    missing = {
        trial.name: "lost"
        for trial in plan.trials()
        if trial.arm.name == "qjump" and trial.name not in done
    }
    return claim, gate, verdicts.exit_code((claim, gate), missing, checks)


@pytest.mark.parametrize(
    ("predicate", "part"),
    [
        ("1 / 0 > 0", "1 / 0"),
        ("0 / 0 == 1", "0 / 0"),
        ("qjump.ping.p50_ms / (hosts - hosts) > 1", "qjump.ping.p50_ms / (hosts - hosts)"),
        ("1 < 2 / (1 / qjump.ping.p50_ms / 0)", "1 / qjump.ping.p50_ms / 0"),
        ("qjump.ping.p50_ms > 1 and 1 / (hosts - hosts) > 0", "1 / (hosts - hosts)"),
        ("qjump.ping.p50_ms < max(1e308 * 10, 1)", "1e308 * 10"),
    ],
)
def test_a_predicate_that_never_has_a_value_is_refused(predicate: str, part: str) -> None:
    with pytest.raises(
        UsageError, match=rf"claims\.\w+\.predicate: .*'{re.escape(part)}' never has a value"
    ) as caught:
        claims.check(plan_of(predicate))
    assert caught.value.exit_code == 2


def test_invalid_when_fidelity_fails_but_not_when_it_is_unknown_or_incomplete() -> None:
    plan, measured = plan_of("qjump.ping.p50_ms < 5"), trials(qjump=[2, 3, 4])
    claim, _, code = judged(plan, measured, [Check(name="CPU", status="fail", text="")])
    assert (claim.verdict, claim.note, code) == ("INVALID", "fidelity: CPU", 4)
    for check in (
        Check(name="CPU", status="unknown", text=""),
        Check(name="complete", status="fail", text="", completeness=True),
    ):
        assert judged(plan, measured, [check])[0].verdict == "REPRODUCED"


BY_ZERO = "its predicate divides by zero: nothing is known"
MISSING = "its predicate has no value: a measure is missing"


@pytest.mark.parametrize(
    ("predicate", "gate", "medians", "expected"),
    [
        ("qjump.ping.p50_ms < 5", "1 < 2", [2, 3, 4], ("REPRODUCED", (1, 2, 3), "", 0)),
        ("qjump.ping.p50_ms < 5", "1 < 2", [2, 3], ("REPRODUCED", (1, 2), "2 of 3 seeds", 5)),
        ("qjump.ping.p50_ms < 4", "1 < 2", [2, 3, 4], ("PARTLY", (1, 2), "", 1)),
        ("qjump.ping.p50_ms < 1", "1 < 2", [2, 3, 4], ("NOT REPRODUCED", (), "", 1)),
        ("qjump.ping.loss < 1", "1 < 2", [2, 3, 4], ("NOT REPRODUCED", (), MISSING, 1)),
        ("not qjump.ping.loss > 1", "1 < 2", [2, 3, 4], ("NOT REPRODUCED", (), MISSING, 1)),
        ("1 / (qjump.ping.p50_ms - 3) > 0", "1 < 2", [2, 3, 4], ("INVALID", (3,), BY_ZERO, 4)),
        ("not 1 / (qjump.ping.p50_ms - 3) > 0", "1 < 2", [2, 3, 4], ("INVALID", (1,), BY_ZERO, 4)),
        ("qjump.ping.p50_ms < 5", "qjump.ping.p50_ms < 4", [2, 3, 4],
         ("INVALID", (1, 2, 3), "gate: gate", 4)),
        ("qjump.ping.p50_ms < 5", "2 < 1", [2, 3],
         ("INVALID", (1, 2), "gate: gate; 2 of 3 seeds", 4)),
    ],
)  # fmt: skip
def test_verdict_follows_seeds_and_gates(
    predicate: str, gate: str, medians: list[float], expected: tuple[object, ...]
) -> None:
    claim, _, code = judged(plan_of(predicate, gate=gate), trials(qjump=medians))
    assert (claim.verdict, claim.held, claim.note, code) == expected
    assert claim.checked == tuple(range(1, len(medians) + 1)) and claim.shown is not None
    assert (claim.shown.minimum, claim.shown.maximum) == (medians[0], medians[-1])
    assert (claim.published, claim.factor, claim.because) == (None, 1.0, "")


def test_not_run_without_the_arm() -> None:
    claim, _, code = judged(plan_of("qjump.ping.p50_ms < idle.ping.p50_ms"), trials(idle=[2, 3, 4]))
    found = (claim.verdict, claim.checked, claim.shown, claim.note, code)
    assert found == ("NOT RUN", (), None, "no data of qjump", 5)


def test_arms_that_were_not_asked_for_are_no_loss() -> None:
    plan = plan_of(
        "qjump.ping.p50_ms < idle.ping.p50_ms", gate="idle.ping.p50_ms > 1", only=["idle"]
    )
    claim, gate, code = judged(plan, trials(idle=[2, 3, 4]))
    assert (claim.verdict, claim.note, gate.verdict, code) == (
        "NOT RUN",
        "not asked for: qjump",
        "REPRODUCED",
        0,
    )


def test_not_run_when_no_seed_has_both_arms() -> None:
    measured = [
        TrialMeasures("qjump", 1, {"ping": {"p50_ms": 1}}, {}),
        TrialMeasures("idle", 2, {"ping": {"p50_ms": 1}}, {}),
    ]
    claim, _, _ = judged(plan_of("qjump.ping.p50_ms <= idle.ping.p50_ms"), measured)
    assert (claim.verdict, claim.note) == ("NOT RUN", "no seed has all of its arms")
