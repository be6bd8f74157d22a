"""iputils ping: round trips of small requests, one at a time or overlapping."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import PingPlan
from qjump_mn.workloads.launch import Launch
from qjump_mn.workloads.text import transposed

_REPLY = re.compile(r"^\[(\d+\.\d+)\] \d+ bytes from \S+ icmp_seq=(\d+) ttl=\d+ time=([\d.]+) ms( \(DUP!\))?$", re.MULTILINE)
_SUMMARY = re.compile(r"^(\d+) packets transmitted, (\d+) received", re.MULTILINE)

PRELOAD = "libpatience.so"
"""Keeps ping from spinning (native/patience)."""

GOOD = (0, 1)
"""Exit statuses that are results: 1 is ping's word for lost replies."""

LINGER_S = 5
"""How long ping waits for the last replies; a full buffer at 10 Mb/s holds 0.12 s."""


COLUMNS = {"flow": "string", "sequence": "int32", "received_s": "double", "latency_us": "double"}
"""``sequence`` from 1; received_s is Unix time; both it and latency_us, the round trip, are null for what was lost."""


class Echo(NamedTuple):
    """One request: its number (from 1), when its reply came (s since 1970, None if lost) and the round trip in us (None if lost)."""

    sequence: int
    received_s: float | None
    rtt_us: float | None


def output_name(plan: PingPlan, flow: tuple[str, str]) -> str:
    """The raw file of one flow."""
    return f"{plan.name}-{flow[0]}-{flow[1]}.ping.txt"


def argv(plan: PingPlan, destination: str) -> tuple[str, ...]:
    """The command line towards the address ``destination``."""
    interval = f"{plan.interval_ns / 1e9:g}"
    return ("ping", "-D", "-n", "-i", interval, "-c", str(plan.count), "-s", str(plan.payload_bytes), "-W", str(LINGER_S), destination)


def launches(plan: PingPlan, trial: Trial) -> Iterator[Launch]:
    """One ping a flow."""
    longest_s = plan.longest_ns / 1e9 + LINGER_S
    for source, destination in plan.flows:
        output = output_name(plan, (source, destination))
        yield Launch("probe", source, argv(plan, trial.network.addresses[destination]), output, longest_s=longest_s, good=GOOD, preload=PRELOAD)


def columns(plan: PingPlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """The table: every request of every flow; flow is "h8>h10"."""
    rows = [
        (f"{source}>{destination}", *echo)
        for source, destination in plan.flows
        for echo in parse(read(output_name(plan, (source, destination))), plan.count)
    ]
    return transposed(rows, COLUMNS)


def parse(text: str, count: int) -> list[Echo]:
    """One row for each of ``count`` requests; raise :class:`LostError` if the output is not that of a ping that sent them all."""
    summary = _SUMMARY.search(text)
    if summary is None:
        raise LostError("ping's output has no summary: it was ended early")
    if int(summary[1]) != count:
        raise LostError(f"ping sent {summary[1]} requests, not {count}")
    replies: dict[int, Echo] = {}
    for when, sequence, milliseconds, duplicate in _REPLY.findall(text):
        if not duplicate:
            # The number has 16 bits and wraps; replies come in order to within far less than that.
            number = int(sequence)
            number += max(0, round((len(replies) - number) / 65536)) * 65536
            replies[number] = Echo(number, float(when), float(milliseconds) * 1000)
    if len(replies) != int(summary[2]):
        raise LostError(f"ping's output has {len(replies)} replies where its summary says {summary[2]}")
    return [replies.get(number, Echo(number, None, None)) for number in range(1, count + 1)]
