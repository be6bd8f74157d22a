"""fanin: datagrams at set times, each with the time when it was sent and when it arrived."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import FaninPlan
from qjump_mn.workloads import datagrams
from qjump_mn.workloads.launch import Launch
from qjump_mn.workloads.text import transposed

COLUMNS = {"flow": "string", "stream": "int32", "sequence": "int32", "due_ns": "int64", "sent_ns": "int64", "latency_us": "double"}
"""A row for each datagram that was to be sent; ``latency_us``, from the sender's call to the receiver's socket, is null if it did not arrive."""

LINGER_S = 0.5
"""A receiver is ended after its senders: what is under way then has this long to arrive."""


def launches(plan: FaninPlan, trial: Trial) -> Iterator[Launch]:
    """A receiver for each destination, a sender for each flow."""
    most = 2 * len(plan.flows) * plan.streams * (trial.duration_ns // plan.interval_ns + 2)
    yield from datagrams.receivers(plan, rows=most, linger_s=LINGER_S)
    streams = ("--interval", str(plan.interval_ns), "--streams", str(plan.streams), "--payload", str(plan.payload_bytes))
    yield from datagrams.senders(plan, trial, "probe", streams, duration_ns=trial.duration_ns)


def columns(plan: FaninPlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """Every datagram of every flow."""
    arrivals = datagrams.arrivals(plan, trial, read)
    rows = []
    for flow in plan.flows:
        arrived = {(stream, sequence): when for stream, sequence, when in arrivals[flow]}
        sent = datagrams.sent(plan, flow[0], read)
        rows += [
            (">".join(flow), stream, sequence, due, start, (when - start) / 1e3 if when is not None else None)
            for stream, sequence, due, start in zip(*(sent[name] for name in ("stream", "sequence", "due_ns", "start_ns")), strict=True)
            for when in [arrived.get((stream, sequence))]
        ]
    return transposed(rows, COLUMNS)
