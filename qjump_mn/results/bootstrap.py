"""Compute bootstrap confidence intervals of medians, by the percentile method.

See Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13. The median of a
resample is the mean of its two middle values. Their ranks depend only on what is drawn, so one list
of resamples serves all samples of the same size.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence

MIN_VALUES = 3
"""The fewest values that give an interval."""
MAX_EXHAUSTIVE = 5
"""Up to this many values, all n^n resamples are counted. The interval then runs from the least to
the greatest value: each is the median of more than 2.5 % of the resamples."""
RESAMPLES = 10_000
"""The number of resamples for more values, from a generator with a fixed seed."""
TAIL = 40
"""At most 1/TAIL (2.5 %) of the resamples lie below the interval, and as many above."""

Ranks = tuple[int, int]
"""The ranks of a resample's two middle values in the ordered sample; equal if its size is odd."""


def interval95(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % percentile interval of the median of ``values``; None for fewer than
    three."""
    if len(values) < MIN_VALUES:
        return None
    ordered = sorted(values)
    medians = sorted(
        ((ordered[low] + ordered[high]) / 2, count) for (low, high), count in _ranks(len(values))
    )
    return _tail(medians), _tail(medians[::-1])


def _tail(medians: Sequence[tuple[float, int]]) -> float:
    """Return the first of the counted ``medians`` at which at least 2.5 % of all are reached."""
    total, reached = sum(count for _, count in medians), 0
    for median, count in medians:
        reached += count
        if reached * TAIL >= total:
            return median
    raise AssertionError("the counts add up to the total")


@functools.cache
def _ranks(size: int) -> tuple[tuple[Ranks, int], ...]:
    """Return each pair of middle ranks of resamples of ``size`` values, with its count."""
    ranks = range(size)
    resamples: Iterable[Sequence[int]]
    if size <= MAX_EXHAUSTIVE:
        resamples = itertools.product(ranks, repeat=size)
    else:
        generator = random.Random(size)
        resamples = (generator.choices(ranks, k=size) for _ in range(RESAMPLES))
    middles = Counter(
        (drawn[(size - 1) // 2], drawn[size // 2]) for drawn in map(sorted, resamples)
    )
    return tuple(sorted(middles.items()))
