"""Parse what iputils' ping and nsping print."""

from __future__ import annotations

import re
from typing import NamedTuple

from qjump_mn.errors import LostError
from qjump_mn.programs.text import log

_REPLY = re.compile(
    r"^\[(\d+\.\d+)\] \d+ bytes from \S+ icmp_seq=(\d+) ttl=\d+ time=([\d.]+) ms( \(DUP!\))?$",
    re.MULTILINE,
)
_SUMMARY = re.compile(r"^(\d+) packets transmitted, (\d+) received", re.MULTILINE)


class Echo(NamedTuple):
    """One request: its number (from 1), when its reply arrived (s since 1970, None if lost) and the
    round trip in us (None if lost)."""

    sequence: int
    received_s: float | None
    rtt_us: float | None


def parse(text: str, count: int) -> list[Echo]:
    """Parse iputils' output into a row for each of ``count`` requests; raise :class:`LostError` if
    it did not send them all."""
    summary = _SUMMARY.search(text)
    if summary is None:
        raise LostError("ping's output has no summary: it was stopped early")
    if int(summary[1]) != count:
        raise LostError(f"ping sent {summary[1]} requests, not {count}")
    replies: dict[int, Echo] = {}
    for received_s, sequence, milliseconds, duplicate in _REPLY.findall(text):
        if not duplicate:
            # The number has 16 bits and wraps; replies are out of order by far less than that.
            number = int(sequence)
            number += max(0, round((len(replies) - number) / 65536)) * 65536
            replies[number] = Echo(number, float(received_s), float(milliseconds) * 1000)
    if len(replies) != int(summary[2]):
        raise LostError(
            f"ping's output has {len(replies)} replies, but its summary says {summary[2]}"
        )
    return [replies.get(number, Echo(number, None, None)) for number in range(1, count + 1)]


def parse_nsping(text: str, count: int) -> list[Echo]:
    """Parse nsping's log in the same way."""
    echoes = log(text, "nsping")
    if echoes.end.get("sent") != str(count):
        raise LostError(f"nsping sent {echoes.end.get('sent')} requests, not {count}")
    columns = (echoes.columns[name] for name in ("sequence", "sent_ns", "rtt_ns"))
    return [
        Echo(sequence, (sent_ns + rtt_ns) / 1e9, rtt_ns / 1e3)
        if rtt_ns
        else Echo(sequence, None, None)
        for sequence, sent_ns, rtt_ns in zip(*columns, strict=True)
    ]
