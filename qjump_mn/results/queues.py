"""Read what the guest recorded of queues over time (steps/queues.py)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from qjump_mn.model import filenames


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One level of the port ``device``, in the windows ``at`` in which frames waited or were
    dropped.

    A window's number is its start divided by its length. ``peak`` is the most bytes that waited in
    it, ``then`` what waited from its end until the next of these windows, ``dropped`` the frames
    that found the queue full."""

    device: str
    level: int
    at: list[int]
    peak: list[int]
    then: list[int]
    dropped: list[int]

    def __post_init__(self) -> None:
        lengths = {len(column) for column in (self.at, self.peak, self.then, self.dropped)}
        if len(lengths) > 1 or lengths == {0}:
            raise ValueError("its columns are empty or not of one length")


class Queues(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ``lines`` with the longest queues; ``others`` is the number of those left out, ``lost``
    that of the first windows' reports for which there was no room. Windows are of ``window_ns`` on
    the guest's monotonic clock."""

    window_ns: int
    lost: int
    others: int
    lines: list[Line]


def read(trial: Path) -> Queues | None:
    """Return a trial's queues; None if it has none.

    Raises OSError, or ValueError for a file that is damaged.
    """
    path = trial / filenames.QUEUES
    return msgspec.json.decode(path.read_bytes(), type=Queues) if path.exists() else None
