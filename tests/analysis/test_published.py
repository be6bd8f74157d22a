"""Published numbers: claims are compared with them on both sides, and may not ask for what they
refute."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from qjump_mn import resolve
from qjump_mn.analysis import claims, verdicts
from qjump_mn.analysis.measures import TrialMeasures
from qjump_mn.errors import UsageError
from qjump_mn.model.experiment import ClaimSpec, Published, SizeSpec
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import loading
from qjump_mn.results import formatting
from qjump_mn.results.outcome import Spread, VerdictRow

PUBLISHED_RATE = "link.rate=10Gbit"
EXPERIMENTS = [
    name
    for name in loading.names("experiments")
    if resolve.plan(name, "smoke", []).judged.published
]
PRESETS = [
    (name, preset)
    for name in loading.names("experiments")
    for preset in loading.presets(name)
    if resolve.plan(name, preset, []).judged.published
]


def at_the_published_rate(experiment: str, preset: str = "course") -> Plan:
    return resolve.plan(experiment, preset, [PUBLISHED_RATE])


def refuted(plan: Plan) -> Iterator[str]:
    """The claims that the published numbers themselves would fail, of those that ask for nothing
    else."""
    published = plan.judged.published
    for name, spec in plan.judged.claims.items():
        claim = claims.Claim.of(plan, name)
        measures = claims.measures_of(spec.predicate)
        if (
            measures
            and measures <= set(published)
            and not all(
                claim.holds(corner, plan.judged.constants) for corner in claims.corners(published)
            )
        ):
            yield name


@pytest.mark.parametrize(("experiment", "preset"), PRESETS)
def test_no_claim_asks_for_what_was_not_published(experiment: str, preset: str) -> None:
    assert list(refuted(at_the_published_rate(experiment, preset))) == []


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_published_number_is_used(experiment: str) -> None:
    plan = resolve.plan(experiment, "course", [])
    used = set[str]()
    for spec in plan.judged.claims.values():
        used |= claims.measures_of(spec.predicate)
        used |= claims.measures_of(spec.shows) if spec.shows else set()
    assert set(plan.judged.published) - used == set()


def test_a_claim_that_the_published_numbers_refute_is_found() -> None:
    plan = at_the_published_rate("fig3b")
    harder = replace(
        plan.judged.claims["better"],
        predicate="qjump.memcached.p99_ms <= contended.memcached.p99_ms / 5",
    )
    judged = replace(plan.judged, claims={**plan.judged.claims, "better": harder})
    assert list(refuted(replace(plan, judged=judged))) == ["better"]


def plan_of(known: Published, **size: Any) -> Plan:
    """One claim, that contended is above QJump, which shows their ratio."""
    plan = resolve.plan("fig3a", "smoke", [], replicates=2)
    claim = ClaimSpec(
        statement="s", source="s", predicate="contended.ping.p50_ms > qjump.ping.p50_ms",
        shows="contended.ping.p50_ms / qjump.ping.p50_ms",
        size=SizeSpec(**{"factor": 2.0, "because": "of what", **size}),
    )  # fmt: skip
    judged = replace(plan.judged, claims={"claim": claim}, published=known)
    return replace(plan, judged=judged)


RATIO: Published = {"contended.ping.p50_ms": 0.9, "qjump.ping.p50_ms": 0.003}
"""300."""


def row_of(plan: Plan, *ratios: float) -> VerdictRow:
    trials = [
        TrialMeasures(arm, seed, {"ping": {"p50_ms": value}}, {})
        for seed, ratio in enumerate(ratios, 1)
        for arm, value in (("contended", ratio), ("qjump", 1.0))
    ]
    return verdicts.judge(plan, trials, [])[0]


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((300, 300), "REPRODUCED"),
        ((150, 600), "REPRODUCED"),
        ((149, 300), "DIRECTION ONLY"),
        ((300, 601), "DIRECTION ONLY"),
        ((0.5, 300), "PARTLY"),
        ((0.5, 0.4), "NOT REPRODUCED"),
    ],
)
def test_a_size_has_two_sides(ratios: tuple[float, ...], verdict: str) -> None:
    row = row_of(plan_of(RATIO), *ratios)
    assert (row.verdict, row.factor) == (verdict, 2.0)
    assert row.published == pytest.approx((300, 300))


@pytest.mark.parametrize(
    ("published", "ratios", "verdict"),
    [
        (300, (150, 600), "REPRODUCED"),
        (300, (149, 300), "DIRECTION ONLY"),
        ((200, 300), (100, 600), "REPRODUCED"),
        ((200, 300), (99, 300), "DIRECTION ONLY"),
    ],
)
def test_a_ratio_may_be_what_was_published(
    published: float | tuple[float, float], ratios: tuple[float, ...], verdict: str
) -> None:
    row = row_of(plan_of({}, published=published), *ratios)
    assert row.verdict == verdict
    assert row.published == (published if isinstance(published, tuple) else (published, published))


@pytest.mark.parametrize("published", [0, -1, (3, 2), (0, 1)])
def test_what_cannot_have_been_published_is_refused(published: float | tuple[float, float]) -> None:
    with pytest.raises(
        UsageError, match=r"claims\.claim\.size\.published: give a number above 0, or two of"
    ):
        claims.check(plan_of({}, published=published))


RATIO_OF = re.compile(r"([a-z]\w*\.\w+\.\w+)(?: / ([a-z]\w*\.\w+\.\w+))?")
WITH_RATIOS = [
    (name, claim)
    for name in loading.names("experiments")
    for claim, spec in resolve.plan(name, "course", []).judged.claims.items()
    if spec.size and spec.size.published is not None
]


def measured_as_published(plan: Plan, spec: ClaimSpec) -> Iterator[Published]:
    """The measures of a claim that shows one of them, or one over another, such that it shows what
    was published, a series' at each of its arms; nothing where the claim is about more than
    these."""
    assert spec.size is not None
    found, ends = RATIO_OF.fullmatch(spec.shows), spec.size.published
    if found and claims.measures_of(spec.predicate) <= set(found.groups()):
        for end in ends if isinstance(ends, tuple) else (ends,):
            assert end is not None
            values = [
                (name.partition("."), value)
                for name, value in ((found[1], end), (found[2], 1.0))
                if name
            ]
            yield {
                f"{arm.name}.{measure}": value
                for (name, _, measure), value in values
                for arm in plan.arms
                if name in (arm.name, arm.series)
            }


def cases_of_ratios() -> Iterator[tuple[str, str]]:
    """The claims among ``WITH_RATIOS`` that what was published can be put into."""
    for experiment, name in WITH_RATIOS:
        plan = resolve.plan(experiment, "course", [])
        if list(measured_as_published(plan, plan.judged.claims[name])):
            yield experiment, name


@pytest.mark.parametrize(("experiment", "name"), list(cases_of_ratios()))
def test_no_claim_asks_for_what_a_published_ratio_refutes(experiment: str, name: str) -> None:
    plan = resolve.plan(experiment, "course", [])
    for published in measured_as_published(plan, plan.judged.claims[name]):
        (measured,) = claims.corners(published)
        assert claims.Claim.of(plan, name).holds(measured, plan.judged.constants), published


def test_a_range_has_the_ends_of_what_it_makes() -> None:
    plan = plan_of({"contended.ping.p50_ms": (1.1, 1.5), "qjump.ping.p50_ms": 0.5})
    assert row_of(plan, 1.2, 5.9).verdict == "REPRODUCED"
    row = row_of(plan, 1.05, 6.1)
    assert row.verdict == "DIRECTION ONLY" and row.published == pytest.approx((2.2, 3.0))
    assert formatting.published(row) == (
        "published: 2.2 to 3, within a factor of 2: of what; this run: 1.192 times the published "
        "number"
    )


@pytest.mark.parametrize(
    ("shows", "values", "told"),
    [
        ("contended.ping.p50_ms / qjump.ping.p50_ms", (2.0, 3.0), "2.5 [2..3]"),
        ("contended.ping.p50_ms - qjump.ping.p50_ms", (2.0, 3.0), "2.5 [2..3] ms"),
        ("max(contended.ping.p50_ms, idle.ping.p50_ms)", (0.25, 0.25), "250 us"),
        ("qjump.ping.loss", (0.0, 0.5), "0.25 [0..0.5]"),
        ("contended.ping.p50_ms", (), "\N{EN DASH}"),
        ("", (2.0, 3.0), "2.5 [2..3]"),
    ],
)
def test_a_value_has_its_unit(shows: str, values: tuple[float, ...], told: str) -> None:
    spread = Spread.of(dict(enumerate(values))) if values else None
    row = replace(row_of(plan_of(RATIO), 300), shows=shows, shown=spread)
    assert formatting.value(row) == told


def test_a_direction_is_no_failure() -> None:
    assert verdicts.exit_code([row_of(plan_of(RATIO), 2, 2)], {}, []) == 0


@pytest.mark.parametrize(
    ("published", "size", "sentence"),
    [
        (RATIO, {"factor": 0.9}, "set `factor` to 1 or more"),
        (RATIO, {"factor": float("nan")}, "set `factor` to 1 or more"),
        (RATIO, {"because": ""}, "explain it in `because`"),
        ({"qjump.ping.p50_ms": 0.003}, {}, r"add to the table \[published\] what is missing"),
        ({**RATIO, "contended.ping.p50_ms": -1.0}, {}, "make no number above 0"),
        ({**RATIO, "contended": 1.0}, {},
         "published.contended: is not a measure: write arm.workload.measure"),
    ],
)  # fmt: skip
def test_impossible_size_is_refused(
    published: Published, size: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        claims.check(plan_of(published, **size))


def test_a_size_is_of_measures_alone() -> None:
    plan = plan_of(RATIO)
    claim = plan.judged.claims["claim"]
    scaled = replace(claim, shows=f"{claim.shows} / frame_ms")
    judged = replace(plan.judged, claims={"claim": scaled})
    with pytest.raises(UsageError, match="make no number above 0"):
        claims.check(replace(plan, judged=judged))
