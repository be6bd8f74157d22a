"""Parse the reports of iperf3."""

from __future__ import annotations

import json
from typing import NamedTuple

from qjump_mn.errors import LostError

ENDED = "the client has terminated"
"""What both ends report when the sender was stopped. A receiver whose report is due at that moment
(iperf3 3.18) then reads from the closed socket, fails, and writes that as a second "error"."""


class Interval(NamedTuple):
    """Bytes of one TCP stream (its socket number) between two instants, in s since the start of the
    test; ``retransmits`` only at the sender."""

    stream: int
    start_s: float
    end_s: float
    bytes: int
    retransmits: int | None


def parse(text: str) -> list[Interval]:
    """Every interval of every stream; raise :class:`LostError`, with iperf3's own message, if the
    test failed or its report is incomplete."""
    try:
        # Of a duplicate key take the first value: the first error caused the second.
        report = json.loads(text, object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    except json.JSONDecodeError as error:
        raise LostError(f"iperf3's report is not complete: {error}") from None
    if not isinstance(report, dict):
        raise LostError("iperf3's report is not a JSON object")
    if "error" in report and ENDED not in report["error"]:
        raise LostError(f"iperf3 failed: {report['error']}")
    intervals = [
        Interval(
            stream["socket"],
            stream["start"],
            stream["end"],
            stream["bytes"],
            stream.get("retransmits"),
        )
        for interval in report.get("intervals", [])
        for stream in interval["streams"]
    ]
    if not intervals:
        raise LostError("iperf3's report has no intervals: nothing was sent")
    # A receiver whose sender was stopped reports its last interval once more.
    return list(dict.fromkeys(intervals))
