"""Make the lines of a trial in the guest: queues and drops, window by window."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qjump_mn.model.topology import Network
from qjump_mn.programs.tracks import Track
from qjump_mn.results import formatting
from qjump_mn.results.queues import Line, Queues


def tracks(queues: Queues, network: Network, began_ns: int) -> Iterator[Track]:
    """Return the queue lengths and drops of the recorded ports."""
    ways = network.ways()
    others = f" {queues.others} with shorter queues are left out." if queues.others else ""
    lost = " The first windows are missing." if queues.lost else ""
    note = f"The most in each window of {queues.window_ns / 1e3:g} us.{others}{lost}"
    named = [
        (f"{formatting.flow(ways[line.device])}, priority {line.level}", line)
        for line in queues.lines
    ]
    for name, line in named:
        yield _waiting(name, line, queues.window_ns, began_ns)._replace(note=note)
    for name, line in named:
        if any(line.dropped):
            at_ns = np.array(line.at, dtype=np.float64) * queues.window_ns - began_ns
            yield Track(
                "packets dropped in a window",
                "",
                "holds",
                name,
                at_ns,
                np.array(line.dropped, dtype=np.float64),
                at_ns + queues.window_ns,
                note,
            )


def _waiting(name: str, line: Line, window_ns: int, began_ns: int) -> Track:
    """Return the most that waited in each window, and what waited between two of them."""
    at = np.array(line.at, dtype=np.float64)
    following = np.append(at[1:], at[-1] + 1)
    # Rows by turns: the window, and the time from its end to the next one.
    starts = np.column_stack([at, at + 1]).ravel()
    ends = np.column_stack([at + 1, following]).ravel()
    values = np.column_stack([line.peak, line.then]).ravel().astype(np.float64)
    lasts = ends > starts
    return Track(
        "bytes that wait at a port",
        "B",
        "holds",
        name,
        starts[lasts] * window_ns - began_ns,
        values[lasts],
        ends[lasts] * window_ns - began_ns,
    )
