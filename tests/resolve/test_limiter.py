"""Limiters: epochs, budgets and slack by hand, the ends of each range, and what is remarked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from qjump_mn.errors import UsageError
from qjump_mn.model.experiment import ArmSpec, QJumpSpec
from qjump_mn.model.plan import ArmPlan, QJumpPlan
from qjump_mn.resolve import limiter, loading, plan

SCHEMES = loading.experiment("fig3a", "course", [])[0].schemes
MODES = {
    mode: msgspec.structs.replace(SCHEMES["qjump"], limiter=mode)
    for mode in ("delay", "drop", "2015", "tbf", "edt", None)
}
SHOWN = plan("fig3a", "course", [], only=["qjump"])
NETWORK = SHOWN.shown.network


def spec(**changes: Any) -> QJumpSpec:
    return QJumpSpec(**changes)


def experiment(**limiters: QJumpSpec) -> Any:
    return SimpleNamespace(
        schemes={str(mode): scheme for mode, scheme in MODES.items()}, qjump=limiters
    )


def resolved(given: QJumpSpec, mode: str = "delay", time_scale: int = 1) -> QJumpPlan:
    arm = ArmSpec(label="", workloads=[], scheme=mode)
    found = limiter.of_arm("here", "arm", arm, experiment(one=given), NETWORK, time_scale)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("given", "epoch_ns"),
    [
        (spec(), 28_800_000),  # 2 x 12 x 1500 B at 10 Mb/s
        (spec(hosts=1, packet=1), 1600),
        (spec(hosts=3, packet=1000), 4_800_000),
        (spec(epoch=1000), 1000),
        (spec(epoch=10**11), 10**11),
    ],
)
def test_epoch_is_that_of_equation_2_or_given(given: QJumpSpec, epoch_ns: int) -> None:
    assert resolved(given).epoch_ns == epoch_ns


@pytest.mark.parametrize(
    ("mode", "given", "slack_ns"),
    [
        ("delay", spec(), limiter.LATENESS_NS // 10),
        ("edt", spec(slack=7), 7),
        ("delay", spec(slack=0), 0),
        ("delay", spec(slack=10**11), 10**11),
        ("delay", spec(slack=7, epochs="aligned"), 0),
        ("tbf", spec(slack=7), 0),
        ("drop", spec(slack=7), 0),
    ],
)
def test_slack_extends_rolling_epochs_that_keep_budgets(
    mode: str, given: QJumpSpec, slack_ns: int
) -> None:
    assert resolved(given, mode, time_scale=10).slack_ns == slack_ns


@pytest.mark.parametrize(
    ("mode", "charged"),
    [("delay", (28, 84)), ("edt", (28, 84)), ("tbf", (28, 84)), ("drop", (0, 0)), ("2015", (0, 0))],
)
def test_wire_bytes_are_charged_unless_on_arrival(mode: str, charged: tuple[int, int]) -> None:
    found = resolved(spec(priomap=(7,) * 16, limit_packets=5), mode)
    assert (found.overhead, found.mpu) == charged
    assert found.epochs == ("rolling" if charged[0] else "first-packet")
    assert (found.mode, found.priomap, found.limit_packets) == (mode, (7,) * 16, 5)


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        (spec(limit_packets=1), "delay"),
        (spec(limit_packets=100_000), "delay"),
        (spec(overhead=0, mpu=limiter.MAX_OVERHEAD), "delay"),
        (spec(overhead=limiter.MAX_OVERHEAD, mpu=0), "delay"),
        (spec(epochs="aligned"), "delay"),
        (spec(budget_packet=84, factors={"7": 1}), "delay"),
        (spec(budget_packet=56 + 40, overhead=40, factors={"7": 1}), "delay"),
        (spec(budget_packet=64, factors={"7": 1}), "drop"),
        (spec(budget_packet=1, factors={"7": limiter.MAX_FACTOR_BYTES}), "delay"),
    ],
)
def test_ends_of_ranges_are_allowed(given: QJumpSpec, mode: str) -> None:
    resolved(given, mode)


@pytest.mark.parametrize(
    ("given", "mode", "sentence"),
    [
        (spec(hosts=0), "delay", r"at least 1 and 1B \(got 0 and 1.5kB\)"),
        (spec(packet=0), "delay", r"at least 1 and 1B \(got 12 and 0\)"),
        (spec(epoch=999), "delay", "an epoch of 0.999 us is out of range"),
        (spec(epoch=10**11 + 1), "delay", "an epoch of 1e.08 us is out of range"),
        (spec(limit_packets=0), "delay", "limit_packets = 0 is out of range"),
        (spec(limit_packets=100_001), "delay", "limit_packets = 100001 is"),
        (spec(overhead=-1), "delay", "overhead = -1 is out of range"),
        (spec(mpu=limiter.MAX_OVERHEAD + 1), "delay", "mpu = .* is out of range"),
        (spec(priomap=(0,) * 15), "delay", "priomap must have 16 levels"),
        (spec(priomap=(8,) * 16), "delay", "priomap must have 16 levels"),
        (spec(slack=-1), "delay", "a slack of"),
        (spec(slack=10**11 + 1), "delay", "a slack of"),
        (spec(epochs="aligned"), "drop", "in mode drop epochs start with the first packet"),
        (spec(budget_packet=83, factors={"7": 1}), "delay", r"83 bytes .* costs \(84 bytes\)"),
        (spec(budget_packet=95, overhead=40, factors={"7": 1}), "delay", r"\(96 bytes\)"),
        (spec(budget_packet=63, factors={"7": 1}), "drop", r"\(64 bytes\)"),
        (spec(factors={"6": 0}), "delay", r"factors\.6: a factor of 0 is out of range"),
        (
            spec(budget_packet=2, factors={"6": limiter.MAX_FACTOR_BYTES}),
            "delay",
            "a factor of",
        ),
        (spec(factors={"8": 1}), "delay", "'8' is not a level"),
        (spec(factors={"07": 1}), "delay", "'07' is not a level"),
    ],
)
def test_what_is_out_of_range_is_refused(given: QJumpSpec, mode: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^here: qjump.one.*{sentence}"):
        resolved(given, mode)


def test_budgets_are_rounded_and_in_the_place_of_their_level() -> None:
    found = resolved(spec(budget_packet=1001, factors={"0": 2.5, "7": 1}))
    assert found.budget_bytes == (2502, 0, 0, 0, 0, 0, 0, 1001)


def test_arm_names_its_limiter_or_has_the_first() -> None:
    limiters = experiment(first=spec(epoch=10**6), second=spec(epoch=10**7))

    def epoch_ns(scheme: str, name: str | None, which: Any = limiters) -> int | None:
        arm = ArmSpec(label="", workloads=[], scheme=scheme, qjump=name)
        found = limiter.of_arm("here", "mine", arm, which, NETWORK, 1)
        return None if found is None else found.epoch_ns

    assert [epoch_ns("delay", name) for name in (None, "first", "second")] == [10**6, 10**6, 10**7]
    assert epoch_ns("None", None) is None
    with pytest.raises(UsageError, match=r"arms\.mine: qjump = 'first' needs a scheme that limits"):
        epoch_ns("None", "first")
    with pytest.raises(
        UsageError, match=r"arms\.mine: there is no limiter qjump\.secnd: .*'second'"
    ):
        epoch_ns("delay", "secnd")
    with pytest.raises(UsageError, match=r"arms\.mine: scheme 'delay' needs a limiter"):
        epoch_ns("delay", None, experiment())


ARM = next(arm for arm in SHOWN.arms if arm.name == "qjump")


def with_limiter(given: QJumpSpec, mode: str = "delay") -> tuple[ArmSpec, Any, ArmPlan]:
    made = msgspec.structs.replace(ARM, qjump=resolved(given, mode))
    return ArmSpec(label="", workloads=[], scheme=mode), experiment(one=given), made


@pytest.mark.parametrize(
    ("given", "mode", "sentences"),
    [
        (
            spec(),
            "delay",
            [
                "a factor counts 1550 B per epoch, while the epoch of 28.8 ms is Eq. 2 with P = 1500 B, n = 12."
            ],
        ),
        (
            spec(epoch=10**6),
            "delay",
            ["a factor counts 1550 B per epoch, while the epoch of 1 ms is given."],
        ),
        (spec(budget_packet=1500), "delay", []),
        (
            spec(budget_packet=1500, factors=dict.fromkeys("0123456", 1)),
            "2015",
            ["nothing of level 7 passes"],
        ),
        (
            spec(budget_packet=1500, factors=dict.fromkeys("123456", 1)),
            "2015",
            ["nothing of level 0, 7 passes"],
        ),
    ],
)
def test_remarks_are_on_unequal_packets_and_blocked_levels(
    given: QJumpSpec, mode: str, sentences: list[str]
) -> None:
    found = limiter.remarks(*with_limiter(given, mode))
    assert len(found) == len(sentences)
    assert all(
        part in text and "Limiter 'one'" in text
        for text, part in zip(found, sentences, strict=True)
    )
    arm, made, planned = with_limiter(given, mode)
    assert limiter.remarks(arm, made, msgspec.structs.replace(planned, qjump=None)) == []


def test_long_epoch_is_remarked_from_twice_equation_2_of_the_sending_hosts() -> None:
    """Level 6 has a factor: of fig3a's arm, h8 and h10 ping there. Eq. 2 for two is 4.8 ms."""
    limits = {"factors": {"6": 1}, "budget_packet": 1500}

    def remark(**changes: Any) -> list[str]:
        return limiter.long_epoch(*with_limiter(spec(**limits, **changes)))

    assert remark() == remark(epoch=9_599_999) == remark(hosts=4, epoch=19_199_999) == []
    (sentence,) = remark(epoch=9_600_000)
    assert "its epoch, 9.6 ms, is 2 times as long as that of Eq. 2 for n = 2" in sentence
    assert "factor 1 is 1.25e+03 kb/s, 2 times less than Eq. 3's share, 2.5e+03 kb/s" in sentence
    assert "n = 4" in remark(hosts=4, epoch=19_200_000)[0]
    limits = {"factors": {"5": 1}}
    assert remark(epoch=10**9) == [], "nobody sends there"


def load_of(**hooks: Any) -> Any:
    """A workload with these hooks, which are asked of its class."""
    return type("Load", (), {"name": "ping", **hooks})()


@pytest.mark.parametrize(("budget", "refused"), [(84, False), (83, True), (0, False)])
def test_packet_must_fit_its_levels_budget(budget: int, refused: bool) -> None:
    load = load_of(levels={3, 6}, packet_bytes=28)
    budgets = (0, 0, 0, 0, 0, 0, budget, 0)
    made = msgspec.structs.replace(resolved(spec()), budget_bytes=budgets)
    if not refused:
        limiter.check_packets("here", made, [load])
        return
    with pytest.raises(
        UsageError, match="here: a packet of ping costs 84 B of level 6, whose budget is 83 B"
    ):
        limiter.check_packets("here", made, [load])


@pytest.mark.parametrize(
    ("levels", "who"), [(range(1, 8), "frames without a level"), (range(7), "ping")]
)
def test_level_that_lets_nothing_pass_is_refused(levels: range, who: str) -> None:
    load = load_of(levels={0, 7}, packet_bytes=None)
    made = resolved(spec(factors={str(level): 1 for level in levels}), "2015")
    with pytest.raises(UsageError, match=f"here: {who} would have level"):
        limiter.check_packets("here", made, [load])
