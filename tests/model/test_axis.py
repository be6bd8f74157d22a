"""Where the values of a sweep are on an axis."""

from __future__ import annotations

import pytest

from qjump_mn.errors import UsageError
from qjump_mn.model import axis


@pytest.mark.parametrize(
    ("values", "names", "found"),
    [
        (["7ms", "8.5 ms"], [], [7, 8.5]),
        ([1, 2.5], [], [1, 2.5]),
        (["2Mbit"], ["1Mbit", "2Mbit"], [2]),
        (["red", "blue"], ["blue", "green", "red"], [3, 1]),
    ],
)
def test_places_are_numbers_or_the_order_of_names(
    values: list[float | str], names: list[str], found: list[float]
) -> None:
    assert axis.places("here", values, names) == found


@pytest.mark.parametrize(
    ("values", "names", "sentence"),
    [
        ([], [], "here: the sweep has no values"),
        ([], ["red"], "must name at least one point"),
        (["red", "red"], ["red", "blue"], "each point once"),
        (["7ms", "8us"], [], "numbers with one unit"),
        (["7ms", "many"], [], "numbers with one unit"),
        (["7ms", "7.0ms"], [], "a value is given twice"),
        (["3Mbit"], ["1Mbit", "2Mbit"], "there is no point '3Mbit'"),
        (["pink"], ["red", "blue"], "there is no point 'pink'"),
        (["red"], ["red", "5"], r"here\.points: the name '5' is a number and others are not"),
        (["red"], ["red", "a,b"], r"here\.points: the name 'a,b' has a comma"),
    ],
)
def test_places_refuses_values_without_one(
    values: list[float | str], names: list[str], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        axis.places("here", values, names)
