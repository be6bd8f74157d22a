"""Where the values of a sweep stand on its axis."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qjump_mn.errors import UsageError
from qjump_mn.model import suggestions

NUMBER = r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)"
"""A value of a sweep that is one, with its unit."""


def places(where: str, values: Sequence[float | str], names: list[str]) -> list[float]:
    """The place of each value: the number that it is without its unit, else that of its name among ``names``,
    those of the sweep's points. Raises :class:`UsageError` that begins with ``where``."""
    are_numbers = all(re.fullmatch(NUMBER, name) for name in names)
    return _numbers(where, values, names) if are_numbers else _by_name(where, values, names)


def _by_name(where: str, values: Sequence[float | str], names: list[str]) -> list[float]:
    """1, 2, 3, …: where the values of a sweep stand among those that are known by name."""
    for name in names:
        if "," in name or re.fullmatch(NUMBER, name):
            why = "has a comma" if "," in name else "reads as a number with a unit"
            raise UsageError(
                f"{where}.points: {name!r} {why} and is no name for a value beside others: use words without "
                "a comma, or numbers with one unit for all"
            )
    _known(where, values, names)
    if not values or len(set(values)) < len(values):
        raise UsageError(f"{where}: name at least one value, and each once")
    return [names.index(str(value)) + 1.0 for value in values]


def _known(where: str, values: Sequence[float | str], names: list[str]) -> None:
    for value in values:
        if names and str(value) not in names:
            raise UsageError(
                f"{where}: there is no point {value!r}: {suggestions.nearest(str(value), names)}"
            )


def _numbers(where: str, values: Sequence[float | str], names: list[str]) -> list[float]:
    """The values of a sweep without their unit; those of points are among the ``names``."""
    _known(where, values, names)
    if not values:
        raise UsageError(f"{where}: no values: give at least one")
    matches = [re.fullmatch(NUMBER, str(value)) for value in values]
    if not all(matches) or len({match[2] for match in matches if match}) > 1:
        raise UsageError(
            f"{where}: values are numbers with one unit, such as '7ms', '8ms', not "
            f"{', '.join(map(repr, values))}; words are names of points: give the sweep a table for "
            "each"
        )
    numbers = [float(match[1]) for match in matches if match]
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"{where}: a value is named twice: give each once")
    return numbers
