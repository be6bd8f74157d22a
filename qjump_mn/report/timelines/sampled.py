"""Make the lines of a simulated trial: queues at each instant, and events between instants."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qjump_mn.programs.tracks import Floats, Track
from qjump_mn.results import formatting
from qjump_mn.results.series import Port, Series


def tracks(series: Series, began_ns: int) -> Iterator[Track]:
    """Return queue lengths of the recorded ports, and the network's drops, marks, timeouts and
    retransmissions."""
    at_ns = np.array(series.at_ps, dtype=np.float64) / 1e3 - began_ns
    others = f" {series.others} ports with shorter queues are left out." if series.others else ""
    note = f"Sampled at {len(at_ns)} instants.{others}"
    for port in series.ports:
        waiting = np.array(port.queued, dtype=np.float64)
        yield Track(
            "bytes that wait at a port",
            "B",
            "instant",
            formatting.flow(port.link),
            at_ns,
            waiting,
            None,
            note,
        )
    for port in series.ports:
        yield from _by_level(port, at_ns)
    counted = {
        "dropped in queues": series.dropped,
        "marked": series.marked,
        "sent again": series.again,
    }
    for what, counts in counted.items():
        yield from _between(f"packets {what} between two instants", counts, at_ns)
    yield from _between("timeouts of senders between two instants", series.timeouts, at_ns)


def _by_level(port: Port, at_ns: Floats) -> Iterator[Track]:
    """Return a line for each level of a port at which several waited."""
    if sum(level.isdecimal() for level in port.levels) < 2:
        return
    what = f"bytes that wait at {formatting.flow(port.link)}, by level"
    for level, waiting in port.levels.items():
        name = f"level {level}" if level.isdecimal() else level
        values = np.array(waiting, dtype=np.float64)
        yield Track(
            what, "B", "instant", name, at_ns, values, None, "Without the packet being sent."
        )


def _between(what: str, counts: list[int], at_ns: Floats) -> Iterator[Track]:
    if counts and counts[-1]:
        yield Track(
            what,
            "",
            "holds",
            "",
            at_ns[:-1],
            np.diff(np.array(counts, dtype=np.float64)),
            at_ns[1:],
        )
