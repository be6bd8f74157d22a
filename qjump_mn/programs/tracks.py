"""What of a program's table has a time: what the time line of a trial draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float64]
Times = npt.NDArray[np.float64] | npt.NDArray[np.int64]

Kind = Literal["took", "instant", "holds"]
"""What a value is: how long took what began at its time (ms), what was so at that instant, or what was so
until another time."""

MOST_LABELS = 8
"""More flows than this are drawn as one: nobody tells so many colours apart."""


class Track(NamedTuple):
    """Values of one thing over time. ``what`` is measured, in ``unit``, of ``label``, such as a flow; ""
    where there is only one.

    ``at_ns`` ascends, from when the measurement began; ``values`` has nan for what never came, such as an
    answer, and ``until_ns`` is for kind "holds". All have shape (rows,). ``note`` is a sentence for readers.
    """

    what: str
    unit: str
    kind: Kind
    label: str
    at_ns: Times
    values: Floats
    until_ns: Times | None = None
    note: str = ""


def split(whole: Track, labels: Sequence[str]) -> Iterator[Track]:
    """A track for each label, in the order of their first rows; ``labels`` has one for each row of
    ``whole``, whose times may be in any order. Too many of them stay together."""
    names = list(dict.fromkeys(labels))
    if len(names) > MOST_LABELS:
        yield _ascending(whole._replace(label=f"all {len(names)}"), np.arange(len(labels)))
        return
    of_row = np.array(labels, dtype=np.str_)
    for name in names:
        yield _ascending(whole._replace(label=name), np.flatnonzero(of_row == name))


def _ascending(whole: Track, rows: npt.NDArray[np.intp]) -> Track:
    rows = rows[np.argsort(whole.at_ns[rows], kind="stable")]
    until_ns = None if whole.until_ns is None else whole.until_ns[rows]
    return whole._replace(at_ns=whole.at_ns[rows], values=whole.values[rows], until_ns=until_ns)


def milliseconds(table: pa.Table, column: str = "latency_us") -> Floats:
    """A column of us in ms, with nan for null; shape (rows,)."""
    return floats(table, column) / 1e3


def floats(table: pa.Table, column: str) -> Floats:
    """A column with nan for null; shape (rows,)."""
    values: Floats = table[column].to_numpy(zero_copy_only=False).astype(np.float64)
    return values


def took(table: pa.Table, since: str, began_ns: int, labels: Sequence[str], what: str) -> Iterator[Track]:
    """The rows' latencies, each from the time in the column ``since``, of a clock on which the measurement
    began at ``began_ns``."""
    at_ns = table[since].to_numpy() - began_ns
    yield from split(Track(what, "ms", "took", "", at_ns, milliseconds(table)), labels)
