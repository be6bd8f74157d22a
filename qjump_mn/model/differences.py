"""List the settings in which two plans differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from qjump_mn.model.plan import Plan

MAX_CHARACTERS = 60


class Difference(NamedTuple):
    """A setting that differs between two plans: its path and both values, as text."""

    path: str
    first: str
    second: str


def between(first: Plan, second: Plan) -> list[Difference]:
    """Return the differences in what is run and how it is judged."""
    return list(_leaves(_parts(first), _parts(second)))


def _parts(plan: Plan) -> dict[str, Any]:
    return {**msgspec.to_builtins(plan.run), **msgspec.to_builtins(plan.judged)}


def _leaves(first: Any, second: Any, path: str = "") -> Iterator[Difference]:
    first, second = _by_name(first), _by_name(second)
    if isinstance(first, dict) and isinstance(second, dict):
        for key in dict.fromkeys([*first, *second]):
            yield from _leaves(
                first.get(key), second.get(key), f"{path}.{key}" if path else str(key)
            )
    elif first != second:
        yield Difference(path, _shown(first), _shown(second))


def _by_name(value: Any) -> Any:
    """Turn a list of tables with names into a table, because their order and number matter
    little."""
    if (
        isinstance(value, list | tuple)
        and value
        and all(isinstance(entry, dict) and "name" in entry for entry in value)
    ):
        return {entry["name"]: entry for entry in value}
    return value


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"
