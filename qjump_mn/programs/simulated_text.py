"""Write and read the simulator's tables: a line for each row, commas between values, nothing for
null."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from qjump_mn.errors import LostError
from qjump_mn.programs.text import transposed

_PARSERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "int32": int,
    "int64": int,
    "double": float,
}

KINDS = tuple(_PARSERS)
"""The possible types of a column."""


def output_name(workload: str) -> str:
    """The raw file of a workload."""
    return f"{workload}.csv"


def text(columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    """The file's text; floating point is written so that reading gives the same number."""
    lines = [
        ",".join(columns),
        *(",".join("" if value is None else str(value) for value in row) for row in rows),
    ]
    return "\n".join(lines) + "\n"


def columns(
    content: str, kinds: Mapping[str, str], rows: int | None = None
) -> dict[str, Sequence[Any]]:
    """Parse a table whose columns have the types ``kinds``, by Arrow's names. Raise
    :class:`LostError` if it has other columns, or not ``rows`` rows if that is given."""
    head, *lines = content.splitlines()
    if head.split(",") != list(kinds) or not content.endswith("\n"):
        raise LostError(f"it is incomplete, or has other columns than {', '.join(kinds)}")
    if rows is not None and len(lines) != rows:
        raise LostError(f"it has {len(lines)} of {rows} rows")
    parsers = [_PARSERS[kind] for kind in kinds.values()]
    return transposed(
        (
            [
                parse(text) if text else None
                for parse, text in zip(parsers, line.split(","), strict=True)
            ]
            for line in lines
        ),
        kinds,
    )
