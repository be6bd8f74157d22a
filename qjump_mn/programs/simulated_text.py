"""Tables as the simulator leaves them: text with a line for each row and a comma between values, nothing
where there is no value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from qjump_mn.errors import LostError
from qjump_mn.programs.text import transposed

_READ: dict[str, Callable[[str], Any]] = {"string": str, "int32": int, "int64": int, "double": float}


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
