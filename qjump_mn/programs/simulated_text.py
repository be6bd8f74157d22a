"""Tables as the simulator leaves them: text with a line for each row and a comma between values, nothing
where there is no value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from qjump_mn.errors import LostError
from qjump_mn.programs.text import transposed

_READ: dict[str, Callable[[str], Any]] = {"string": str, "int32": int, "int64": int, "double": float}

_BITS = {"int32": 32, "int64": 64}

KINDS = tuple(_READ)
"""The types that a column may have."""


def output_name(workload: str) -> str:
    """The raw file of a workload."""
    return f"{workload}.csv"


def text(columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    """The file; floating point is written so that the same number is read."""
    lines = [
        ",".join(columns),
        *(",".join("" if value is None else str(value) for value in row) for row in rows),
    ]
    return "\n".join(lines) + "\n"


def is_a(kind: str, value: object) -> bool:
    """Whether a column of this kind reads back what :func:`text` writes of ``value``."""
    if value is None:
        return True
    shown = str(value)
    try:
        read = _READ[kind](shown)
    except ValueError:
        return False
    return not (kind == "string" and set(shown) & set(",\r\n")) and _fits(kind, read)


def _fits(kind: str, value: Any) -> bool:
    return kind not in _BITS or -(1 << _BITS[kind] - 1) <= value < 1 << _BITS[kind] - 1


def columns(content: str, kinds: Mapping[str, str], rows: int | None = None) -> dict[str, Sequence[Any]]:
    """The table, whose columns have these ``kinds`` by Arrow's name; raise :class:`LostError` unless it has
    them, and ``rows`` if that is given."""
    head, *lines = content.splitlines()
    if head.split(",") != list(kinds) or not content.endswith("\n"):
        raise LostError(f"it has not the columns {', '.join(kinds)}, whole")
    if rows is not None and len(lines) != rows:
        raise LostError(f"it has {len(lines)} rows of {rows}")
    readers = [_READ[kind] for kind in kinds.values()]
    return transposed(
        (
            [read(value) if value else None for read, value in zip(readers, line.split(","), strict=True)]
            for line in lines
        ),
        kinds,
    )
