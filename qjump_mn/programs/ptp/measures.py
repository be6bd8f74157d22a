"""Measures of ptp: one-way delays of messages, and the offsets that clocks would have had."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.measures_api import (
    Measures,
    Moved,
    OnTheWire,
    Said,
    Timeline,
    Whole,
    by_flow,
)
from qjump_mn.programs.ptp.plan import EVENT_BYTES, PtpPlan
from qjump_mn.programs.statistics import percentile
from qjump_mn.programs.tracks import Track, milliseconds, split


def values(table: pa.Table, plan: PtpPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of the messages that were timed within the trial's duration.

    Claims are about delays, of both directions together, because each is of one message alone. An
    offset is not: ptpd averages, and a load of 2 s makes its offset wrong by 13 ms for more than 5
    s afterwards.
    """
    inside = measured(table, facts, trial)
    numbers = {"samples": float(inside.num_rows)}
    if inside.num_rows:
        delays = np.sort(delays_us(inside).to_numpy() / 1e3)
        numbers |= {
            f"delay_{name}_ms": percentile(delays, percent)
            for name, percent in (("p50", 50), ("p99", 99), ("max", 100))
        }
    offsets = offsets_us(inside)["offset_us"].to_numpy() / 1e3
    if len(offsets):
        numbers |= {
            "offset_rms_ms": float(np.sqrt(np.mean(offsets**2))),
            "offset_mean_ms": float(np.mean(offsets)),
        }
        numbers |= {
            "offset_min_ms": float(np.min(offsets)),
            "offset_max_ms": float(np.max(offsets)),
        }
    return numbers


def wire(table: pa.Table, plan: PtpPlan, trial: Trial) -> OnTheWire:
    """One-way time of each message; all have one length, and both directions the same links."""
    least_us = {">".join(flow): plan.one_way_ns(trial.network, flow) / 1e3 for flow in plan.flows}
    return OnTheWire(delays_us(table).to_numpy(), by_flow(table, least_us))


def timeline(table: pa.Table, plan: PtpPlan, trial: Trial, facts: TrialFacts) -> Timeline:
    """The offset after each Sync, as in Figure 5; also in its own figure for all arms, as in Figure
    1a."""
    inside = offsets_us(measured(table, facts, trial))
    x, y = (
        (inside["at_ns"].to_numpy() - facts.began_utc_ns) / 1e9,
        inside["offset_us"].to_numpy() / 1e3,
    )
    whole = Whole("offset", "PTP's offset", "PTP offset, ms", "as in Figure 1a of the paper")
    return Timeline("PTP offset", "offset_rms_ms", "offset RMS {}", "#0072B2", x, y, whole=whole)


def measured(table: pa.Table, facts: TrialFacts, trial: Trial) -> pa.Table:
    """The rows of the measurement. PTP starts long before it, and ends after it."""
    since = pc.subtract(table["at_ns"], facts.began_utc_ns)
    return table.filter(pc.and_(pc.greater_equal(since, 0), pc.less(since, trial.duration_ns)))


def offsets_us(table: pa.Table) -> pa.Table:
    """The rows with a new offset: each Sync gives one, while an answer to a slave's own message
    only gives a new delay."""
    return table.filter(
        pc.and_(pc.is_valid(table["master_to_slave_us"]), pc.is_valid(table["offset_us"]))
    )


def delays_us(table: pa.Table) -> pa.ChunkedArray:
    """Each message's one-way delay, whatever its direction."""
    return pc.coalesce(table["master_to_slave_us"], table["slave_to_master_us"])


def tracks(table: pa.Table, plan: PtpPlan, trial: Trial, facts: TrialFacts) -> Iterator[Track]:
    """The slave's offset after each Sync, and the delay of each message."""
    offsets = offsets_us(table)
    at_ns = offsets["at_ns"].to_numpy() - facts.began_utc_ns
    track = Track(
        "offset of the clock", "ms", "instant", "", at_ns, milliseconds(offsets, "offset_us")
    )
    yield from split(track, offsets["flow"].to_pylist())
    for column, label in (
        ("master_to_slave_us", "master to slave"),
        ("slave_to_master_us", "slave to master"),
    ):
        rows = table.filter(pc.is_valid(table[column]))
        at_ns, delays_ms = rows["at_ns"].to_numpy() - facts.began_utc_ns, milliseconds(rows, column)
        track = Track("one-way time of messages", "ms", "instant", "", at_ns, delays_ms)
        yield from split(track, [f"{label}, {flow}" for flow in rows["flow"].to_pylist()])


def moved(said: Said) -> Iterator[Moved]:
    """The messages that were timed; there are at least as many others."""
    plan: PtpPlan = said.plan
    size = theory.UDP_HEADERS_BYTES + EVENT_BYTES
    for slave, master in plan.flows:
        rows = said.table.filter(pc.field("flow") == f"{slave}>{master}")
        # The table also has messages from before the first reading of the counters.
        began_ns = said.facts.began_utc_ns
        inside = rows.filter(pc.field("at_ns") >= began_ns)
        down = inside.num_rows - inside["master_to_slave_us"].null_count
        yield Moved.datagrams((master, slave), plan.level, size, down, None)
        yield Moved.datagrams((slave, master), plan.level, size, inside.num_rows - down, None)


MEASURES = Measures(values=values, wire=wire, timeline=timeline, moved=moved, tracks=tracks)
