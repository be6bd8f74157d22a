"""Whether the requests of q2pc follow each other as its loop does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qjump_mn import theory
from qjump_mn.programs import pace
from qjump_mn.programs.measures_api import HEADERS_BYTES, Moved, Said
from qjump_mn.programs.q2pc.program import Q2PCPlan, output_name
from qjump_mn.programs.text import log

KERNELS_LEVEL = 0
"""The level of what kernels send by themselves."""


def agrees(said: Said) -> Iterator[str]:
    """A request begins when the one before has ended, and not sooner than its interval."""
    plan: Q2PCPlan = said.plan
    logged = log(said.read(output_name(plan, plan.coordinator)), "q2pc").columns
    start, votes, end = (
        np.array(logged[name], dtype=np.int64) for name in ("start_ns", "votes_ns", "end_ns")
    )
    if not len(start):
        return
    yield from pace.outside("its requests", int(start[0]), int(end.max()), said.facts)
    if odd := np.count_nonzero((votes > 0) & ((votes < start) | (votes > end))):
        yield f"{odd} requests had their votes before they began, or after they ended"
    pause_ns = start[1:] - np.maximum(end[:-1], start[:-1] + plan.interval_ns)
    # Who is past its interval begins the next one at the very instant at which the last one ended.
    late_ns = pace.latest_ns(said.trial) if said.virtual else np.inf
    at_once = end[:-1] >= start[:-1] + plan.interval_ns
    wrong = pace.pauses(pause_ns, late_ns) | (at_once & (pause_ns > 0))
    if np.any(wrong):
        first = int(np.argmax(wrong))
        yield (
            f"{np.count_nonzero(wrong)} of {len(pause_ns)} requests did not begin when the one before had "
            f"ended, such as one that began {pause_ns[first] / 1e6:.4g} ms later"
        )


def moved(said: Said) -> Iterator[Moved]:
    """Two messages to each client and two answers for each request that was completed; what was sent again
    is not counted. And what kernels say at the end."""
    plan: Q2PCPlan = said.plan
    completed = said.table.num_rows - said.table["latency_us"].null_count
    tcp = plan.transport == "tcp"
    size = plan.message_bytes + (theory.TCP_HEADERS_BYTES if tcp else theory.UDP_HEADERS_BYTES)
    for flow in plan.flows:
        # Of a broadcast there is one frame where the ways to several clients are one.
        for way in (flow[::-1],) if plan.copied else (flow, flow[::-1]):
            yield Moved.datagrams(way, plan.level, size, 2 * completed, None)
        if not tcp:
            # The end cuts a request off, and the coordinator's kernel tells whoever answers that it has gone:
            # an ICMP error, which has no level, quotes the answer.
            error = theory.PING_HEADERS_BYTES + size
            beyond = max(0, theory.wire_bytes(error) - HEADERS_BYTES)
            yield Moved(flow, KERNELS_LEVEL, sent_frames=1, sent_payload=beyond)
