"""``raw/counters.json`` of a simulated trial: how many packets were sent, and what became of them."""

from __future__ import annotations

from pathlib import Path

import msgspec

NAME = "counters.json"

FAILED = "failed"
"""Packets that links lost which failed: told only where some did."""

DROPS = {
    "full": "queue full",
    "pushed_out": "pushed out",
    "early": "early",
    FAILED: "by a failed link",
    "limited": "by the limiter",
}
"""Why a packet is dropped, with the words for it."""

FATES = ("delivered", *DROPS, "in_flight")
"""What becomes of a packet."""

Counters = dict[str, int | dict[str, int]]
"""Counts, of packets mostly by what they are."""


def read(raw: Path) -> Counters:
    """Those in a folder of raw files; raise OSError or msgspec.DecodeError."""
    return parsed((raw / NAME).read_bytes())


def parsed(text: bytes | str) -> Counters:
    """Those of a file; none failed where nothing is said of that. Raise msgspec.DecodeError."""
    return {FAILED: {}, **msgspec.json.decode(text, type=Counters)}


def total(count: int | dict[str, int]) -> int:
    """All kinds together."""
    return count if isinstance(count, int) else sum(count.values())
