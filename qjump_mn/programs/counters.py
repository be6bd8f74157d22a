"""Read ``raw/counters.json`` of a simulated trial: packets sent, delivered and dropped."""

from __future__ import annotations

from pathlib import Path

import msgspec

NAME = "counters.json"

FAILED = "failed"
"""Packets lost on failed links: present only if a link failed."""

DROPS = {
    "full": "queue full",
    "pushed_out": "pushed out",
    "early": "early",
    FAILED: "by a failed link",
    "limited": "by the limiter",
}
"""Why a packet was dropped, and how reports word it."""

FATES = ("delivered", *DROPS, "in_flight")
"""What becomes of a packet."""

Counters = dict[str, int | dict[str, int]]
"""Counts of packets, most of them split by kind of packet."""


def read(raw: Path) -> Counters:
    """Return the counters in the folder ``raw``. Raises OSError or msgspec.DecodeError."""
    return parsed((raw / NAME).read_bytes())


def parsed(text: bytes | str) -> Counters:
    """Parse the text of counters.json. Raises msgspec.DecodeError."""
    return {FAILED: {}, **msgspec.json.decode(text, type=Counters)}


def total(count: int | dict[str, int]) -> int:
    """Return a count over all kinds of packets."""
    return count if isinstance(count, int) else sum(count.values())
