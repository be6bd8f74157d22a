"""Results with read-only arrays: equality, hashes, a short repr, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import ClassVar

import numpy as np

_PIECE = 1 << 16
"""Numbers that become text at once; Ctrl-C is heard between two pieces."""


class ReadOnly:
    """A class whose arrays are read-only, also in copies: `copy` and `pickle` would make them
    writable. Two objects are equal if their arrays and other values are."""

    _ROWS: ClassVar[str] = "values"
    """The name of a row of its arrays."""

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.__dict__.update(state)

    def __eq__(self, other: object, /) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(value, vars(other)[name]) for name, value in vars(self).items())

    def __hash__(self) -> int:
        return hash(tuple(map(_hashable, vars(self).values())))

    def __repr__(self) -> str:
        rows = next((f"<{len(value)} {self._ROWS}>" for value in vars(self).values() if isinstance(value, np.ndarray)), "")
        numbers = (f"{name}={value}" for name, value in vars(self).items() if isinstance(value, int))
        return f"{type(self).__name__}({', '.join([rows, *numbers])})"


def _same(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return one == other


def _hashable(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


def to_json(value: object) -> Iterator[str]:
    """Yield the pieces of a result's JSON: objects of fields in their order, arrays as lists."""
    if isinstance(value, np.ndarray):
        yield "["
        for begin in range(0, len(value), _PIECE):
            yield ("," if begin else "") + json.dumps(value[begin : begin + _PIECE].tolist(), separators=(",", ":"))[1:-1]
        yield "]"
    elif isinstance(value, tuple) and not hasattr(value, "_asdict"):
        yield from _joined("[]", (to_json(item) for item in value))
    elif items := _fields(value):
        yield from _joined("{}", (_member(name, item) for name, item in items.items()))
    else:
        yield json.dumps(value)


def _fields(value: object) -> Mapping[str, object]:
    if isinstance(value, dict):
        return value
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    named = value._asdict() if isinstance(value, tuple) else {}  # type: ignore[attr-defined]
    return dict(named)


def _member(name: str, value: object) -> Iterator[str]:
    yield f"{json.dumps(name)}:"
    yield from to_json(value)


def _joined(brackets: str, parts: Iterator[Iterator[str]]) -> Iterator[str]:
    yield brackets[0]
    for number, part in enumerate(parts):
        yield "," if number else ""
        yield from part
    yield brackets[1]
