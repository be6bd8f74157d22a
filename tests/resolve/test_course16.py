"""The parameters of the 2016 course: what the check of a limiter says of them."""

from __future__ import annotations

import pytest

from qjump_mn import resolve


def test_the_budgets_as_they_were_are_told_to_be_too_small() -> None:
    plan = resolve.plan("course16", "course", [])
    (said,) = (
        remark for remark in plan.shown.remarks if "times as long as that of Eq. 2" in remark
    )
    # 256 B every 192 ms, where Eq. 3 gives 15 Mb/s / 24.
    assert said.startswith(
        "Limiter 'was': its epoch, 192 ms, is 10 times as long as that of Eq. 2 for n = 12: "
        "factor 1 is 10.7 kb/s, 58.6 times less"
    )
    assert "625 kb/s" in said


def test_the_arms_are_what_was_run_and_what_was_meant() -> None:
    arms = {arm.name: arm.qjump for arm in resolve.plan("course16", "course", []).arms}
    was, meant = arms["as_was"], arms["qjump"]
    assert was is not None and meant is not None
    assert (was.mode, was.epoch_ns, was.budget_bytes[7], was.budget_bytes[5]) == (
        "2015",
        192_000_000,
        256,
        2560,
    )
    assert [level for level in range(8) if was.blocks(level)] == [1, 2]
    assert (
        meant.mode,
        meant.epoch_ns,
        meant.budget_bytes[7],
        meant.budget_bytes[5],
        meant.budget_bytes[0],
    ) == ("delay", 19_200_000, 1500, 150_000, 0)


@pytest.mark.parametrize(("epoch", "times"), [("38ms", 0), ("39ms", 1)])
def test_twice_the_length_of_eq_2_is_the_limit(epoch: str, times: int) -> None:
    remarks = resolve.plan("course16", "course", [f"qjump.was.epoch={epoch}"]).shown.remarks
    assert sum("times as long as that of Eq. 2" in remark for remark in remarks) == times
