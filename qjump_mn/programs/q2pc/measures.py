"""Measures of q2pc: the number of completed requests, and how long each took, in ms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.measures_api import HEADERS_BYTES, Floats, Measures, Moved, OnTheWire, Said
from qjump_mn.programs.q2pc.program import Q2PCPlan
from qjump_mn.programs.statistics import of_latencies
from qjump_mn.programs.tracks import Track, took

KERNELS_LEVEL = 0
"""Level of packets that kernels send by themselves."""


def values(table: pa.Table, plan: Q2PCPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of the requests that ended in time; ``failed`` and ``retries`` are counts. The
    request that the end cut off is not included."""
    numbers = of_latencies(table)
    return numbers | {
        "requests_per_s": numbers["received"] / (trial.duration_ns / 1e9),
        "retries": float(pc.sum(table["retries"]).as_py() or 0),
        "failed": numbers["sent"] - numbers["received"],
    }


def wire(table: pa.Table, plan: Q2PCPlan, trial: Trial) -> OnTheWire:
    """Both phases, to the farthest client and back."""
    least: Floats = np.full(table.num_rows, plan.constants(trial.network)["analytic_ms"] * 1e3)
    return OnTheWire(table["latency_us"].to_numpy(), least)


def tracks(table: pa.Table, plan: Q2PCPlan, trial: Trial, facts: TrialFacts) -> Iterator[Track]:
    """Every request from its start."""
    yield from took(table, "start_ns", facts.began_ns, [""] * table.num_rows, "latency of requests")


def moved(said: Said) -> Iterator[Moved]:
    """Two messages to each client and two answers for each completed request, without retries; and
    the kernels' packets at the end."""
    plan: Q2PCPlan = said.plan
    completed = said.table.num_rows - said.table["latency_us"].null_count
    tcp = plan.transport == "tcp"
    size = plan.message_bytes + (theory.TCP_HEADERS_BYTES if tcp else theory.UDP_HEADERS_BYTES)
    for flow in plan.flows:
        # A broadcast is one frame as long as the paths to several clients are the same.
        for direction in (flow[::-1],) if plan.copied else (flow, flow[::-1]):
            yield Moved.datagrams(direction, plan.level, size, 2 * completed, None)
        if not tcp:
            # The end cuts a request off. The coordinator's kernel then answers late replies with an
            # ICMP error, which has no level and quotes the reply.
            error = theory.PING_HEADERS_BYTES + size
            beyond = max(0, theory.wire_bytes(error) - HEADERS_BYTES)
            yield Moved(flow, KERNELS_LEVEL, sent_frames=1, sent_payload=beyond)


MEASURES = Measures(values=values, wire=wire, moved=moved, tracks=tracks)
