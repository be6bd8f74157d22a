"""Place the values of a sweep on the axis of a figure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qjump_mn.errors import UsageError
from qjump_mn.model import suggestions

NUMBER = r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*|%)"
"""Matches a number with an optional unit, such as "7ms"."""


def places(where: str, values: Sequence[float | str], names: list[str]) -> list[float]:
    """Return the position of each value on the axis: the number without its unit, or else 1, 2, 3,
    … by its index in ``names``, the names of the sweep's points.

    Raises :class:`UsageError` that begins with ``where``.
    """
    are_numbers = all(re.fullmatch(NUMBER, name) for name in names)
    return _numbers(where, values, names) if are_numbers else _by_name(where, values, names)


def _by_name(where: str, values: Sequence[float | str], names: list[str]) -> list[float]:
    """Number named values 1, 2, 3, … in the order of ``names``."""
    for name in names:
        if "," in name or re.fullmatch(NUMBER, name):
            reason = "has a comma" if "," in name else "is a number and others are not"
            raise UsageError(
                f"{where}.points: the name {name!r} {reason}: use words without a comma, or "
                "numbers with one unit for all"
            )
    _require_known(where, values, names)
    if not values or len(set(values)) < len(values):
        raise UsageError(f"{where}: values must name at least one point, and each point once")
    return [names.index(str(value)) + 1.0 for value in values]


def _require_known(where: str, values: Sequence[float | str], names: list[str]) -> None:
    for value in values:
        if names and str(value) not in names:
            raise UsageError(
                f"{where}: there is no point {value!r}: {suggestions.nearest(str(value), names)}"
            )


def _numbers(where: str, values: Sequence[float | str], names: list[str]) -> list[float]:
    """Return the values without their unit. If there are ``names``, the values must be among
    them."""
    _require_known(where, values, names)
    if not values:
        raise UsageError(f"{where}: the sweep has no values: give at least one")
    matches = [re.fullmatch(NUMBER, str(value)) for value in values]
    if not all(matches) or len({match[2] for match in matches if match}) > 1:
        raise UsageError(
            f"{where}: values must be numbers with one unit, such as '7ms', '8ms' (got "
            f"{', '.join(map(repr, values))}); to use words, give the sweep a table points.WORD "
            "for each"
        )
    numbers = [float(match[1]) for match in matches if match]
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"{where}: a value is given twice: give each once")
    return numbers
