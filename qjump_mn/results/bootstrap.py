"""The bootstrap's interval of a median: how it would lie, were the same few values drawn again (Efron and
Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13: the percentile interval).

The median of a resample is the mean of two of the values in their order, which depend on what is drawn and on
no value. So one list of resamples serves all samples of a size.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence

LEAST = 3
"""Values from which on there is an interval."""
WHOLE = 5
"""Up to so many values every resample counts, n to the power of n. Of so few the interval is from the least
to the greatest value: either is the median of more than 2.5 % of the resamples."""
RESAMPLES = 10_000
"""Of more values, from a generator with a fixed seed."""
TAIL = 40
"""One resample in so many, 2.5 %, lies below the interval at most, and as many above."""

Ranks = tuple[int, int]
"""The two values in the middle of a resample, by their places among the values in order; one if it is odd."""


def interval95(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % percentile interval of the median of ``values``; None of fewer than three."""
    if len(values) < LEAST:
        return None
    ordered = sorted(values)
    medians = sorted(
        ((ordered[low] + ordered[high]) / 2, count) for (low, high), count in _ranks(len(values))
    )
    return _tail(medians), _tail(medians[::-1])


def _tail(medians: Sequence[tuple[float, int]]) -> float:
    """The first median, of those with their counts, that more than 2.5 % of all do not lie before."""
    total, before = sum(count for _, count in medians), 0
    for median, count in medians:
        before += count
        if before * TAIL >= total:
            return median
    raise AssertionError("all medians together are all")


@functools.cache
def _ranks(size: int) -> tuple[tuple[Ranks, int], ...]:
    """How many resamples of so many values have which middle."""
    places = range(size)
    resamples: Iterable[Sequence[int]]
    if size <= WHOLE:
        resamples = itertools.product(places, repeat=size)
    else:
        chance = random.Random(size)
        resamples = (chance.choices(places, k=size) for _ in range(RESAMPLES))
    middles = Counter((drawn[(size - 1) // 2], drawn[size // 2]) for drawn in map(sorted, resamples))
    return tuple(sorted(middles.items()))
