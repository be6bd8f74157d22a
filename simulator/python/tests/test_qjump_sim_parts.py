"""Runs in parts from Python: one on several cores, whatever their number."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from qjump_sim import FIG9, Flows, LeafSpine, Poisson, Progress, Scenario, Watch, ms, run

FABRIC = LeafSpine(4, 6, 2, FIG9.edge, FIG9.uplink)
SCENARIO = Scenario(FABRIC, "dctcp", Poisson("search", load=0.6, count=400), seed=2, stop=ms(30), parts=2)


def test_one_core_gives_what_all_give() -> None:
    cores = os.sched_getaffinity(0)
    whole = run(SCENARIO)
    try:
        os.sched_setaffinity(0, {min(cores)})
        alone = run(SCENARIO)
    finally:
        os.sched_setaffinity(0, cores)
    assert whole.counters == alone.counters
    assert np.array_equal(whole.finish, alone.finish)
    assert (whole.ports, whole.series, whole.flows, whole.trace) == ((), None, None, None)


def test_parts_change_only_which_of_two_goes_first() -> None:
    """The same flows, of which one alone in the network takes the same time."""
    one = run(replace(SCENARIO, parts=1))
    parted = run(SCENARIO)
    assert np.array_equal(one.packets, parted.packets) and np.array_equal(one.start, parted.start)
    assert parted.counters["delivered"].data == pytest.approx(one.counters["delivered"].data, rel=0.02)
    alone = replace(SCENARIO, flows=Flows([0], [0], [23], [200]))
    assert run(alone).finish[0] == run(replace(alone, parts=1)).finish[0]


def test_progress_and_what_it_raises() -> None:
    seen: list[Progress] = []
    long = replace(SCENARIO, flows=Poisson("search", load=0.6, count=100_000), stop=None)

    def look(progress: Progress) -> None:
        seen.append(progress)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(long, progress=look)
    assert seen[0].flows == 100_000 and 0 < seen[0].share < 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"parts": 9}, "parts: 9 must be 1 to 4"),
        ({"parts": "two"}, "parts: "),
        ({"scheme": "homa"}, "parts: a run with receivers that grant must have one part"),
    ],
)
def test_what_cannot_be(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}"):
        run(replace(SCENARIO, **change))  # type: ignore[arg-type]


def test_a_run_in_parts_is_not_watched() -> None:
    with pytest.raises(ValueError, match=r"^parts: a run in 2 parts cannot be watched: watch it in one$"):
        run(SCENARIO, watch=Watch(flows=True))
