"""Parse the logs of our own programs (native/), and turn rows into columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from qjump_mn.errors import LostError


def transposed(
    rows: Iterable[Sequence[Any]], columns: Mapping[str, str]
) -> dict[str, Sequence[Any]]:
    """Turn ``rows`` into columns; each row has a value for each of ``columns``."""
    by_column = list(zip(*rows, strict=True)) or [()] * len(columns)
    return dict(zip(columns, by_column, strict=True))


class Log(NamedTuple):
    """A log: a list of integers for each column, and its totals (``end``)."""

    columns: dict[str, list[int]]
    end: dict[str, str]


def log(text: str, program: str) -> Log:
    """Parse a log of ``program``; raise :class:`LostError` if another program or version wrote it,
    or if it is incomplete."""
    lines = text.splitlines()
    head = lines[0].split() if lines else []
    if head[:3] != ["#", program, "1"]:
        raise LostError(
            f"this is not a log of {program}, version 1: it begins with "
            f"{' '.join(head[:4]) or 'nothing'!r}"
        )
    if len(lines) < 3 or not lines[-1].startswith("# end "):
        raise LostError(f"{program}'s log has no end: it was cut off after {len(lines)} lines")
    names = lines[1].split()[2:]
    rows = [line.split() for line in lines[2:-1]]
    end = dict(word.split("=", 1) for word in lines[-1].split()[2:] if "=" in word)
    if str(len(rows)) != end.get("rows"):
        raise LostError(f"{program}'s log has {len(rows)} rows, but its end says {end.get('rows')}")
    if "early" in end and end["early"] != "0":
        raise LostError(f"{program} was stopped early")
    columns = {
        name: [int(value) for value in values]
        for name, values in transposed(rows, dict.fromkeys(names, "")).items()
    }
    return Log(columns, end)
