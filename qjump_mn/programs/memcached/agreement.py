"""Whether the requests of memload agree with each other, with the trial's own times, and with what links
carried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from qjump_mn.programs import pace
from qjump_mn.programs.measures_api import Moved, Said
from qjump_mn.programs.memcached.program import OPERATIONS, MemcachedPlan, output_name
from qjump_mn.programs.text import log

Columns = Mapping[str, np.ndarray[tuple[int], np.dtype[np.int64]]]


def agrees(said: Said) -> Iterator[str]:
    """A connection has one request at a time; one that was sent late had no connection that was free."""
    plan: MemcachedPlan = said.plan
    for flow in plan.flows:
        logged = log(said.read(output_name(plan, flow, "load")), "memload").columns
        rows = {name: np.array(column, dtype=np.int64) for name, column in logged.items()}
        name = ">".join(flow)
        if not len(rows["due_ns"]):
            continue
        first_ns, last_ns = int(rows["due_ns"][0]), int(rows["done_ns"].max(initial=0))
        yield from pace.outside(f"requests of {name}", first_ns, last_ns, said.facts)
        yield from (f"{name}: {problem}" for problem in _connections(rows, plan))
        if said.virtual and plan.rate_per_s is not None:
            yield from (f"{name}: {problem}" for problem in _queue(rows, plan, pace.latest_ns(said.trial)))


def _connections(rows: Columns, plan: MemcachedPlan) -> Iterator[str]:
    """By the log's own times, which are exact on any clock."""
    order = np.lexsort((rows["sent_ns"], rows["connection"]))
    connection, due, sent, done = (
        rows[name][order] for name in ("connection", "due_ns", "sent_ns", "done_ns")
    )
    early = (sent < due) | ((done > 0) & (done < sent))
    if np.any(early):
        yield f"{np.count_nonzero(early)} requests were sent before they were due, or answered before that"
    next_one = (connection[1:] == connection[:-1]) & (done[:-1] > 0)
    overlap = next_one & (sent[1:] < done[:-1])
    if np.any(overlap):
        yield f"{np.count_nonzero(overlap)} requests were sent on a connection that waited for an answer"
    # In the closed loop the next request is due when the client has thought.
    if plan.rate_per_s is None:
        off_ns = np.where(next_one, due[1:] - done[:-1] - plan.think_ns, 0)
        if np.any(off_ns):
            worst = int(np.argmax(np.abs(off_ns)))
            yield (
                f"{np.count_nonzero(off_ns)} requests were not due {plan.think_ns / 1e6:g} ms after the "
                f"answer before, such as one that was due {off_ns[worst] / 1e6:+.4g} ms from then"
            )


def _queue(rows: Columns, plan: MemcachedPlan, latest_ns: float) -> Iterator[str]:
    """In the open loop a request waits only while every connection waits for an answer."""
    due, sent, done = (rows[name] for name in ("due_ns", "sent_ns", "done_ns"))
    late = np.flatnonzero(sent - due > latest_ns)
    if not len(late):
        return
    at_ns = due[late] + (sent[late] - due[late]) // 2
    begun = np.searchsorted(np.sort(sent), at_ns, side="left")
    ended = np.searchsorted(np.sort(done[done > 0]), at_ns, side="right")
    free = begun - ended < plan.connections
    if np.count_nonzero(free) > max(pace.FEW, pace.SHARE * len(due)):
        first = late[int(np.argmax(free))]
        yield (
            f"{np.count_nonzero(free)} requests waited while a connection was free, such as one for "
            f"{(sent[first] - due[first]) / 1e6:.4g} ms"
        )


def moved(said: Said) -> Iterator[Moved]:
    """What was asked and answered; each message begins a segment of its own."""
    plan: MemcachedPlan = said.plan
    mtu_bytes = said.trial.network.mtu_bytes
    sizes = plan.message_bytes
    columns = (said.table[name].to_pylist() for name in ("flow", "op", "latency_us"))
    counts = Counter((flow, op) for flow, op, latency in zip(*columns, strict=True) if latency is not None)
    for flow in plan.flows:
        for number, way in enumerate((flow, flow[::-1])):
            frames = size = 0
            for op in OPERATIONS:
                one = Moved.stream(way, plan.level, sizes[op][number], mtu_bytes)
                count = counts[">".join(flow), op]
                frames, size = frames + count * one.arrived_frames, size + count * one.arrived_bytes
            yield Moved(way, plan.level, frames, size)
