"""Runs in parts from Python: the outcome of one part, on any number of cores."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from qjump_sim import FIG9, LeafSpine, Poisson, Progress, Scenario, Watch, ms, run

FABRIC = LeafSpine(4, 6, 2, FIG9.edge, FIG9.uplink)
SCENARIO = Scenario(FABRIC, "dctcp", Poisson("search", load=0.6, count=400), seed=2, stop=ms(30), parts=2)


def test_parts_and_cores_change_nothing() -> None:
    cores = os.sched_getaffinity(0)
    whole = run(SCENARIO)
    try:
        os.sched_setaffinity(0, {min(cores)})
        alone = run(SCENARIO)
    finally:
        os.sched_setaffinity(0, cores)
    for other in (alone, run(replace(SCENARIO, parts=1)), run(replace(SCENARIO, parts=3))):
        assert whole.counters == other.counters
        assert np.array_equal(whole.finish, other.finish)
    assert (whole.ports, whole.series, whole.flows, whole.trace) == ((), None, None, None)


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
