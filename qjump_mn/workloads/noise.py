"""Bursts of fanin's datagrams, counted where they are sent and where they arrive."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import NoisePlan
from qjump_mn.workloads import datagrams
from qjump_mn.workloads.launch import Launch
from qjump_mn.workloads.text import transposed

COLUMNS = {"flow": "string", "start_ns": "int64", "end_ns": "int64", "sent": "int64", "arrived": "int64"}
"""A row for each burst: when it began and when the kernel had its last datagram, how many there were, and how many of them arrived."""

LINGER_S = 1.0
"""A receiver is ended after its senders: a full buffer of 10 Mb/s takes 0.12 s to drain, and there may be one at each of a path's switches."""


def launches(plan: NoisePlan, trial: Trial) -> Iterator[Launch]:
    """A receiver for each destination, a sender for each flow."""
    payload = trial.network.mtu_bytes - theory.IP_HEADER_BYTES - theory.UDP_HEADER_BYTES
    lasts_ns = trial.background_s * 10**9
    yield from datagrams.receivers(plan, rows=len(plan.flows) * plan.burst * (lasts_ns // plan.interval_ns + 2), linger_s=LINGER_S)
    bursts = ("--payload", str(payload), "--interval", str(plan.interval_ns), "--burst", str(plan.burst))
    yield from datagrams.senders(plan, trial, "load", bursts, duration_ns=lasts_ns)


def columns(plan: NoisePlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """Every burst of every flow."""
    arrivals = datagrams.arrivals(plan, trial, read)
    rows = []
    for flow in plan.flows:
        arrived = sorted(sequence for _, sequence, _ in arrivals[flow])
        bursts = datagrams.sent(plan, flow[0], read)
        for first, start, end, sent, dropped in zip(
            *(bursts[name] for name in ("sequence", "start_ns", "end_ns", "sent", "dropped")), strict=True
        ):
            # A burst's datagrams have the numbers from its first on.
            came = bisect.bisect_left(arrived, first + sent + dropped) - bisect.bisect_left(arrived, first)
            rows.append((">".join(flow), start, end, sent, came))
    return transposed(rows, COLUMNS)
