"""``series.json`` of a simulated trial: what waited in the ports over time, and what was dropped, marked and
sent again by then."""

from __future__ import annotations

from pathlib import Path

import msgspec

NAME = "series.json"


class Port(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A port by the ends of its link: whose queue it is, and where that leads.

    ``queued``: bytes that it had taken and not sent, at each instant; ``levels``: of a queue with levels,
    bytes that waited in each that ever had any, by "0" to "7", and by "ACKs" where those wait by themselves,
    without what is being sent."""

    link: tuple[str, str]
    queued: list[int]
    levels: dict[str, list[int]] = {}


class Series(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Samples at the instants ``at_ps`` since the start, so far of the whole network: packets ``dropped`` in
    queues, data packets sent ``again``, data packets delivered with a mark, and ``timeouts`` of senders.

    ``ports`` are those with the longest queues, the longest first; ``others`` is the number of those that are
    left out."""

    at_ps: list[int]
    ports: list[Port]
    others: int
    dropped: list[int]
    again: list[int]
    marked: list[int]
    timeouts: list[int]


def read(trial: Path) -> Series | None:
    """That of a trial's folder, None if it has none; raise OSError or msgspec.DecodeError."""
    path = trial / NAME
    return msgspec.json.decode(path.read_bytes(), type=Series) if path.exists() else None
