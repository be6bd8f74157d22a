"""What two plans have otherwise: setting by setting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from qjump_mn.model.plan import Plan

MOST_LETTERS = 60


class Difference(NamedTuple):
    """A leaf of two plans that is not the same, by its path; the values as they are shown."""

    path: str
    first: str
    second: str


def between(first: Plan, second: Plan) -> list[Difference]:
    """All that is run and judged otherwise."""
    return list(_leaves(_parts(first), _parts(second)))


def _parts(plan: Plan) -> dict[str, Any]:
    return {**msgspec.to_builtins(plan.run), **msgspec.to_builtins(plan.judged)}


def _leaves(first: Any, second: Any, path: str = "") -> Iterator[Difference]:
    first, second = _by_name(first), _by_name(second)
    if isinstance(first, dict) and isinstance(second, dict):
        for key in dict.fromkeys([*first, *second]):
            yield from _leaves(first.get(key), second.get(key), f"{path}.{key}" if path else str(key))
    elif first != second:
        yield Difference(path, _shown(first), _shown(second))


def _by_name(value: Any) -> Any:
    """Things with names as a table of them: their order and number tell little."""
    if (
        isinstance(value, list | tuple)
        and value
        and all(isinstance(one, dict) and "name" in one for one in value)
    ):
        return {one["name"]: one for one in value}
    return value


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
