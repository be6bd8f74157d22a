"""Tracks: values over time from a program's table, which a trial's time line draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float64]
Times = npt.NDArray[np.float64] | npt.NDArray[np.int64]

Kind = Literal["took", "instant", "holds"]
"""Kinds of values: "took" is how long something that began then took (ms), "instant" a value at
that time, "holds" a value until another time."""

MOST_LABELS = 8
"""More flows than this are drawn as one: nobody can tell so many colours apart."""


class Track(NamedTuple):
    """Values of one quantity over time: ``what`` it is, its ``unit``, and its ``label``, such as a
    flow; "" if there is only one.

    ``at_ns`` ascends and counts from the start of the measurement. ``values`` has nan for what
    never came, such as an answer. ``until_ns`` is for kind "holds". All have shape (rows,).
    ``note`` is a sentence for readers.
    """

    what: str
    unit: str
    kind: Kind
    label: str
    at_ns: Times
    values: Floats
    until_ns: Times | None = None
    note: str = ""


def split(track: Track, labels: Sequence[str]) -> Iterator[Track]:
    """Split a track by label, in the order of the labels' first rows. ``labels`` has one label for
    each row of ``track``, whose times may be unordered.

    More than ``MOST_LABELS`` labels stay in one track.
    """
    names = list(dict.fromkeys(labels))
    if len(names) > MOST_LABELS:
        yield _ascending(track._replace(label=f"all {len(names)}"), np.arange(len(labels)))
        return
    row_labels = np.array(labels, dtype=np.str_)
    for name in names:
        yield _ascending(track._replace(label=name), np.flatnonzero(row_labels == name))


def _ascending(track: Track, rows: npt.NDArray[np.intp]) -> Track:
    rows = rows[np.argsort(track.at_ns[rows], kind="stable")]
    until_ns = None if track.until_ns is None else track.until_ns[rows]
    return track._replace(at_ns=track.at_ns[rows], values=track.values[rows], until_ns=until_ns)


def milliseconds(table: pa.Table, column: str = "latency_us") -> Floats:
    """A column in us as ms, nan for null; shape (rows,)."""
    return floats(table, column) / 1e3


def floats(table: pa.Table, column: str) -> Floats:
    """A column as floats, nan for null; shape (rows,)."""
    values: Floats = table[column].to_numpy(zero_copy_only=False).astype(np.float64)
    return values


def took(
    table: pa.Table, since: str, began_ns: int, labels: Sequence[str], what: str
) -> Iterator[Track]:
    """Tracks of the rows' latencies, each from the time in column ``since``. The measurement began
    at ``began_ns`` of the same clock."""
    at_ns = table[since].to_numpy() - began_ns
    yield from split(Track(what, "ms", "took", "", at_ns, milliseconds(table)), labels)
