"""Which settings of two plans differ, and how they are shown."""

from __future__ import annotations

import msgspec

from qjump_mn.model import differences
from qjump_mn.model.differences import Difference, between
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import plan

ARMS = ["idle", "qjump"]
FIRST = plan("fig3a", "smoke", [], only=ARMS)


def of_run(second: Plan) -> list[Difference]:
    """The differences from `FIRST` that are not of arms left out of both."""
    return [change for change in between(FIRST, second) if not change.path.startswith("not_run.")]


def judged_by(constants: dict[str, float]) -> Plan:
    return msgspec.structs.replace(
        FIRST, judged=msgspec.structs.replace(FIRST.judged, constants=constants)
    )


def test_between_lists_what_is_run_and_judged_by_path() -> None:
    second = plan("fig3a", "smoke", ["workloads.ping.interval=20ms"], seed=3, only=ARMS)
    arms = [
        Difference(f"arms.{arm}.workloads.ping.{name}", before, after)
        for arm in ARMS
        for name, before, after in (
            ("interval_ns", "10000000", "20000000"),
            ("count", "400", "200"),
        )
    ]
    assert of_run(second) == [
        Difference("seeds", "[1]", "[3]"),
        *arms,
        Difference("constants.ping_interval_ms", "10.0", "20.0"),
    ]


def test_between_compares_arms_by_name_whatever_their_order() -> None:
    assert between(FIRST, plan("fig3a", "smoke", [], only=ARMS[::-1])) == []
    (missing,) = of_run(plan("fig3a", "smoke", [], only=ARMS[:1]))
    assert (missing.path, missing.second) == ("arms.qjump", "nothing")
    assert missing.first.startswith('{"name":"qjump",') and missing.first.endswith("…")
    assert len(missing.first) == differences.MAX_CHARACTERS


def test_between_shows_short_values_whole() -> None:
    number = 10 ** (differences.MAX_CHARACTERS - 1)
    (changed,) = between(judged_by({"x": number}), judged_by({"x": 1}))
    assert changed == Difference("constants.x", str(number), "1")
