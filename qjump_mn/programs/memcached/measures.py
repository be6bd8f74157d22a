"""Measures of memcached: latencies of requests in ms, from when each was due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.measures_api import Floats, Measures, Moved, OnTheWire, Said, Timeline
from qjump_mn.programs.memcached.program import OPERATIONS, MemcachedPlan
from qjump_mn.programs.statistics import milliseconds, of_latencies, percentile
from qjump_mn.programs.tracks import Track, took

BINS_S = (0.025, 0.25, 2.5)
"""Widths of bins over which a drawing averages: the paper's is the second; the first in which an
arm has at least ``FEWEST`` SETs is used."""
FEWEST = 5

MINIMUM_RTO_MS = 200.0
"""Linux's minimum retransmission timeout: a request that takes longer has lost a packet at the end
of a burst."""


def values(
    table: pa.Table, plan: MemcachedPlan, trial: Trial, facts: TrialFacts
) -> dict[str, float]:
    """The measures of all flows together. ``over_200ms`` is a share of all requests, including
    unanswered ones.

    ``requests_per_s`` counts the answers within the trial's duration since the first request was
    due.
    """
    latencies_ms = milliseconds(table)
    measures = of_latencies(table)
    measures["requests_per_s"] = 0.0
    if table.num_rows:
        # Answers after the end of the load do not count as throughput: behind a small budget they
        # would be a third of all.
        answered = table.filter(pc.is_valid(table["latency_us"]))
        done_ns = answered["due_ns"].to_numpy() + answered["latency_us"].to_numpy() * 1e3
        in_time = np.count_nonzero(done_ns <= pc.min(table["due_ns"]).as_py() + trial.duration_ns)
        measures["requests_per_s"] = int(in_time) / (trial.duration_ns / 1e9)
        measures["over_200ms"] = (
            int(np.count_nonzero(latencies_ms > MINIMUM_RTO_MS))
            + table.num_rows
            - len(latencies_ms)
        ) / table.num_rows
    if len(latencies_ms):
        measures["rms_ms"] = float(np.sqrt(np.mean(latencies_ms**2)))
    gets, sets = (
        np.sort(milliseconds(table.filter(pc.field("op") == op))) for op in ("GET", "SET")
    )
    if len(gets):
        measures["get_p50_ms"] = percentile(gets, 50)
    if len(sets):
        measures["set_mean_ms"] = float(np.mean(sets))
    return measures


def wire(table: pa.Table, plan: MemcachedPlan, trial: Trial) -> OnTheWire | None:
    """Round trip of a request and its answer, by operation; None if one of them needs several
    frames."""
    sizes = plan.ip_bytes
    if max(map(max, sizes.values())) > trial.network.mtu_bytes:
        return None
    least_us = {
        (">".join(flow), op): sum(
            theory.one_way_ns(theory.frame_bytes(size), trial.network.speeds(*flow))
            for size in pair
        )
        / 1e3
        for flow in plan.flows
        for op, pair in sizes.items()
    }
    requests = zip(table["flow"].to_pylist(), table["op"].to_pylist(), strict=True)
    least: Floats = np.array([least_us[request] for request in requests], dtype=np.float64)
    return OnTheWire(table["latency_us"].to_numpy(), least)


def timeline(table: pa.Table, plan: MemcachedPlan, trial: Trial, facts: TrialFacts) -> Timeline:
    """Mean SET latency in each bin, as in Figure 5."""
    sets = table.filter((pc.field("op") == "SET") & pc.field("latency_us").is_valid())
    duration_s = trial.duration_ns / 1e9
    width_s = next(
        (width for width in BINS_S if sets.num_rows * width >= FEWEST * duration_s), BINS_S[-1]
    )
    at_s = (sets["due_ns"].to_numpy() - facts.began_ns) / 1e9
    latency_ms = sets["latency_us"].to_numpy() / 1e3
    x, y = means(at_s, latency_ms, width_s, duration_s)
    words = f"mean SET {{}} (drawn: of {width_s:g} s each)"
    return Timeline(
        "memcached, mean of SET latencies",
        "set_mean_ms",
        words,
        "#882255",
        x,
        y,
        gap="without an answered SET",
    )


def means(at_s: Floats, values: Floats, width_s: float, duration_s: float) -> tuple[Floats, Floats]:
    """The middle of each bin of ``width_s``, up to ``duration_s``, and the mean of the values in
    it; nan if it is empty."""
    edges = np.arange(0, duration_s + width_s / 2, width_s)
    counts, _ = np.histogram(at_s, edges)
    sums, _ = np.histogram(at_s, edges, weights=values)
    y = np.full(len(counts), np.nan)
    np.divide(sums, counts, out=y, where=counts > 0)
    return (edges[:-1] + edges[1:]) / 2, y


def tracks(
    table: pa.Table, plan: MemcachedPlan, trial: Trial, facts: TrialFacts
) -> Iterator[Track]:
    """Every request from when it was due, by operation and flow."""
    labels = [
        f"{op} {flow}"
        for op, flow in zip(table["op"].to_pylist(), table["flow"].to_pylist(), strict=True)
    ]
    yield from took(table, "due_ns", facts.began_ns, labels, "latency of requests")


def moved(said: Said) -> Iterator[Moved]:
    """Requests and answers; each message begins a segment of its own."""
    plan: MemcachedPlan = said.plan
    mtu_bytes = said.trial.network.mtu_bytes
    sizes = plan.message_bytes
    columns = (said.table[name].to_pylist() for name in ("flow", "op", "latency_us"))
    counts = Counter(
        (flow, op) for flow, op, latency in zip(*columns, strict=True) if latency is not None
    )
    for flow in plan.flows:
        for number, direction in enumerate((flow, flow[::-1])):
            frames = size = 0
            for op in OPERATIONS:
                message = Moved.stream(direction, plan.level, sizes[op][number], mtu_bytes)
                count = counts[">".join(flow), op]
                frames += count * message.arrived_frames
                size += count * message.arrived_bytes
            yield Moved(direction, plan.level, frames, size)


MEASURES = Measures(values=values, wire=wire, timeline=timeline, moved=moved, tracks=tracks)
