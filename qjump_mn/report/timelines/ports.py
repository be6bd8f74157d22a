"""Make the lines of a trial's ports: queues, drops and pauses, at and between readings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from qjump_mn.programs.tracks import MOST_LABELS, Kind, Track
from qjump_mn.results import formatting
from qjump_mn.results.counter_readings import WHENS, Reading


class Row(NamedTuple):
    """One port and level: its name, and its cells below :data:`HEADS`."""

    name: str
    cells: tuple[str, ...]


HEADS = (
    *(f"waiting {when}, B" for when in WHENS),
    *(f"most until {when}, B" for when in WHENS),
    *(f"dropped, {first} to {last}" for first, last in pairwise(WHENS)),
    *(f"paused, {first} to {last}, ms" for first, last in pairwise(WHENS)),
)


class _Line(NamedTuple):
    """One port and level in each reading."""

    name: str
    level: int | None
    readings: Sequence[Reading]

    def most(self) -> list[float]:
        """Return the longest queue until each reading, in bytes; nan if not counted."""
        return [_or_nan(reading.counts[self.level].most_bytes) for reading in self.readings]

    def waiting(self) -> list[float]:
        return [float(reading.waiting[self.level]) for reading in self.readings]

    def drops(self) -> list[float]:
        """Return the drops between each reading and the next."""
        counts = [reading.counts[self.level].drops for reading in self.readings]
        return [float(last - first) for first, last in pairwise(counts)]

    def paused_ms(self) -> list[float]:
        """Return the paused time between each reading and the next; nan without flow control."""
        times = [_or_nan(reading.paused_ns) / 1e6 for reading in self.readings]
        return [last - first for first, last in pairwise(times)]


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _lines(readings: Sequence[Reading]) -> list[_Line]:
    by_link: dict[tuple[str, str], list[Reading]] = {}
    for reading in readings:
        by_link.setdefault(reading.link, []).append(reading)
    return [
        _Line(f"{formatting.flow(link)}, {_level(level)}", level, each)
        for link, each in by_link.items()
        for level in each[0].counts
    ]


def _level(level: int | None) -> str:
    return "all levels" if level is None else f"priority {level}"


def tracks(readings: Sequence[Reading], began_ns: int, *, between: bool) -> Iterator[Track]:
    """Return queue lengths at each reading, their maxima so far, drops and pauses of the most
    affected ports; without ``between`` only the maxima and pauses."""
    lines = _lines(readings)
    if between:
        yield from _drawn(
            "bytes that wait at a port", "B", "instant", [(x, x.waiting()) for x in lines], began_ns
        )
    yield from _drawn(
        "most bytes that have waited at a port until then",
        "B",
        "instant",
        [(x, x.most()) for x in lines],
        began_ns,
    )
    if between:
        yield from _drawn(
            "packets dropped between two readings",
            "",
            "holds",
            [(x, x.drops()) for x in lines],
            began_ns,
        )
    # A link is paused, not one of its levels: once for each.
    links = {line.readings[0].link: line for line in lines}
    paused = [(x._replace(name=formatting.flow(link)), x.paused_ms()) for link, x in links.items()]
    yield from _drawn(
        "time for which a port was paused between two readings", "ms", "holds", paused, began_ns
    )


def _drawn(
    what: str, unit: str, kind: Kind, found: list[tuple[_Line, list[float]]], began_ns: int
) -> Iterator[Track]:
    greatest = {line.name: np.nanmax([0.0, *values]) for line, values in found}
    shown = sorted((name for name in greatest if greatest[name]), key=lambda name: -greatest[name])
    left_out = len(shown) - MOST_LABELS
    others = (
        f" {left_out} that have less of it are in the table of readings only."
        if left_out > 0
        else ""
    )
    note = f"Known at the readings only.{others}"
    for line, values in found:
        if line.name in shown[:MOST_LABELS]:
            at_ns = np.array(
                [reading.at_ns - began_ns for reading in line.readings], dtype=np.float64
            )
            ends_ns = at_ns[1:] if kind == "holds" else None
            yield Track(
                what, unit, kind, line.name, at_ns[: len(values)], np.array(values), ends_ns, note
            )


def rows(readings: Sequence[Reading]) -> list[Row]:
    """Return ports and levels with anything to report, below :data:`HEADS`; empty if a reading is
    missing."""
    table = []
    for line in _lines(readings):
        if len(line.readings) != len(WHENS):
            return []
        cells = [*line.waiting(), *line.most(), *line.drops(), *line.paused_ms()]
        if np.nansum(cells):
            told = (
                formatting.NONE if np.isnan(cell) else formatting.number(cell) for cell in cells
            )
            table.append(Row(line.name, tuple(told)))
    return table
