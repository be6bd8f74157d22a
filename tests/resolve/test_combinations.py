"""Settings with several values: one run for each combination."""

from __future__ import annotations

import pytest

from qjump_mn.errors import UsageError
from qjump_mn.resolve import sweep


@pytest.mark.parametrize(
    ("settings", "runs"),
    [
        ([], [()]),
        (["link.rate=10Mbit"], [("link.rate=10Mbit",)]),
        (
            [" link.rate =1Mbit, 2Mbit,1Mbit", "replicates=1,2"],
            [
                ("link.rate=1Mbit", "replicates=1"),
                ("link.rate=1Mbit", "replicates=2"),
                ("link.rate=2Mbit", "replicates=1"),
                ("link.rate=2Mbit", "replicates=2"),
            ],
        ),
        # A list, an empty text and nothing may be meant to have commas.
        (["arms.idle.workloads=ping,bulk"], [("arms.idle.workloads=ping,bulk",)]),
        (["nosuch=1,2", "replicates=3"], [("nosuch=1,2", "replicates=3")]),
    ],
)
def test_combinations_are_in_the_given_order(
    settings: list[str], runs: list[tuple[str, ...]]
) -> None:
    assert sweep.combinations("fig3a", "course", settings) == runs


def test_combinations_has_one_hundred_runs_at_most() -> None:
    def numbers(count: int) -> list[str]:
        return [f"replicates={','.join(map(str, range(count)))}"]

    assert len(sweep.combinations("fig3a", "course", numbers(sweep.MAX_RUNS))) == 100
    with pytest.raises(UsageError, match="the settings make 101 runs, more than 100"):
        sweep.combinations("fig3a", "course", numbers(sweep.MAX_RUNS + 1))
    with pytest.raises(UsageError, match="'replicates=1,' has an empty value"):
        sweep.combinations("fig3a", "course", ["replicates=1,"])
