"""Read ``series.json`` of a simulated trial: queues, drops, marks and retransmissions over time."""

from __future__ import annotations

from pathlib import Path

import msgspec

NAME = "series.json"


class Port(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A port, named by the two ends of its ``link``; the first has the queue.

    ``queued`` has the bytes accepted and not yet sent, at each instant. ``levels`` has the bytes
    waiting in each level ("0" to "7", "ACKs" if they have their own queue), without the frame being
    sent."""

    link: tuple[str, str]
    queued: list[int]
    levels: dict[str, list[int]] = {}


class Series(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Samples at the instants ``at_ps`` since the start, as totals of the whole network so far.

    They are packets ``dropped`` in queues, data packets sent ``again``, data packets delivered
    ``marked``, and senders' ``timeouts``. ``ports`` has the ports with the longest queues, the
    longest first; ``others`` is the number of ports left out."""

    at_ps: list[int]
    ports: list[Port]
    others: int
    dropped: list[int]
    again: list[int]
    marked: list[int]
    timeouts: list[int]


def read(trial: Path) -> Series | None:
    """Return a trial's series; None if it has none. Raises OSError or msgspec.DecodeError."""
    path = trial / NAME
    return msgspec.json.decode(path.read_bytes(), type=Series) if path.exists() else None
