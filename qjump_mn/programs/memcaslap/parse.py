"""Parse the statistics that memcaslap prints."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from qjump_mn.errors import LostError

VERSION = "memaslap v1.0"
"""The version that the parser supports: libmemcached 1.1.4."""

_OPERATION = r"(Get|Set|Total)"
_PERIODS = re.compile(
    rf"^{_OPERATION} Statistics\nType .*\nPeriod +1 +(.*)\nGlobal +(\d+) +(.*)$", re.M
)
_RUN = re.compile(
    rf"^{_OPERATION} Statistics \((\d+) events\)\n((?:   [A-Z]\w\w: +\S+\n)+)"
    r"   Log2 Dist:\n((?: +\d+:(?: "
    r"+\d+)+\n)+)",
    re.M,
)
_SCREEN = "\033[1;1H\033[2J\n"
"""Printed before each second's statistics."""


def check_version(text: str) -> None:
    """Raise :class:`LostError` unless the parser supports this version."""
    if text.strip() != VERSION:
        raise LostError(
            f"this is {text.strip() or 'no version'!r}, but only output of {VERSION!r} can be read"
        )


Row = tuple[Any, ...]
"""A row without its flow."""


def parse(text: str, seconds: int) -> list[Row]:
    """The rows of a run of ``seconds``; raise :class:`LostError` if it ended otherwise, got no
    answer, or lost connections."""
    if not text.startswith("servers: "):
        raise LostError(f"this is not output of memcaslap: it begins with {text[:20]!r}")
    *_, last = ("", *text.rstrip("\n").split("\n"))
    if not re.fullmatch(rf"Run time: {seconds}\.\ds Ops: \d+ TPS: \d+ Net_rate: \S+M/s", last):
        raise LostError(
            f"memcaslap's output does not end like a run of {seconds} s: its last line is {last!r}"
        )
    # Once a connection is lost, it prints no more statistics, but ends as if nothing had happened.
    seconds_shown = text.count(_SCREEN)
    if seconds_shown != seconds:
        raise LostError(
            f"memcaslap has statistics of {seconds_shown} of {seconds} s: connections were lost"
        )
    runs = {match[1]: match for match in _RUN.finditer(text)}
    if "Total" not in runs:
        raise LostError("memcached answered none of memcaslap's requests")
    misses = re.search(r"^get_misses: (\d+)$", text, re.M)
    if misses is None:
        raise LostError("memcaslap's output has no line get_misses")
    rows = [_period(match) for match in _PERIODS.finditer(text)]
    for name, run in runs.items():
        rows += _run(name, run, seconds, 0 if name == "Set" else int(misses[1]))
    return rows


def _period(match: re.Match[str]) -> Row:
    ops, tps, net, misses, least, most, mean, deviation, geometric = match[2].split()
    latencies = (
        (int(least), int(most), int(mean), _finite(deviation), _finite(geometric))
        if int(ops)
        else (None,) * 5
    )
    return (
        "period",
        match[1].upper(),
        int(match[3]),
        int(ops),
        int(tps),
        float(net),
        int(misses),
        *latencies,
        None,
    )


def _run(name: str, match: re.Match[str], seconds: int, misses: int) -> Iterator[Row]:
    values = dict(re.findall(r"(\w+): +(\S+)", match[3]))
    latencies = (
        *(int(values[key]) for key in ("Min", "Max", "Avg")),
        _finite(values.get("Std", "nan")),
        _finite(values["Geo"]),
    )
    yield ("run", name.upper(), seconds, int(match[2]), None, None, misses, *latencies, None)
    # A line has the exponent of its first bucket, and the counts of four powers of two.
    buckets = {
        1 << (int(exponent) + offset): int(count)
        for exponent, counts in re.findall(r"(\d+):(.*)", match[4])
        for offset, count in enumerate(counts.split())
    }
    if sum(buckets.values()) != int(match[2]):
        raise LostError(
            f"memcaslap's distribution of {name.upper()} has {sum(buckets.values())} of {match[2]} "
            "answers"
        )
    for at_most, count in buckets.items():
        yield ("bucket", name.upper(), seconds, count, *(None,) * 8, at_most)


def _finite(text: str) -> float | None:
    """The number, or None if memcaslap divided by zero."""
    return value if math.isfinite(value := float(text)) else None
