"""Whether the Syncs of a master left on their schedule."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.programs import pace
from qjump_mn.programs.measures_api import Moved, Said
from qjump_mn.programs.ptp.plan import EVENT_BYTES, PtpPlan


def agrees(said: Said) -> Iterator[str]:
    """A Sync leaves when the master's timer says so, whatever it then takes. A slave's own messages have no
    schedule: their intervals are drawn. A slave writes a row when the Follow_Up is there, which tells it when
    the Sync left."""
    if not said.virtual:
        return
    drawn = dict(said.trial.network.jittery)
    for slave, master in said.plan.flows:
        flow = f"{slave}>{master}"
        syncs = said.table.filter((pc.field("flow") == flow) & pc.field("master_to_slave_us").is_valid())
        if not syncs.num_rows:
            continue
        latency_us = syncs["master_to_slave_us"].to_numpy()
        # As a difference first: ns since 1970 are more than a float holds.
        at_us = (syncs["at_ns"].to_numpy() - syncs["at_ns"][0].as_py()) / 1e3
        expected = pace.second_later(drawn.get(slave, ()), latency_us)
        time_scale = said.trial.arm.time_scale
        if moves := pace.follows(at_us - latency_us, latency_us, expected, time_scale=time_scale):
            yield f"Syncs to {slave}: {moves}"


def moved(said: Said) -> Iterator[Moved]:
    """The messages that were timed; others are as many, or more."""
    plan: PtpPlan = said.plan
    size = theory.UDP_HEADERS_BYTES + EVENT_BYTES
    for slave, master in plan.flows:
        rows = said.table.filter(pc.field("flow") == f"{slave}>{master}")
        # What was timed before the first reading of the counters is in the table too.
        since = said.facts.began_utc_ns
        inside = rows.filter(pc.field("at_ns") >= since)
        down = inside.num_rows - inside["master_to_slave_us"].null_count
        yield Moved.datagrams((master, slave), plan.level, size, down, None)
        yield Moved.datagrams((slave, master), plan.level, size, inside.num_rows - down, None)
