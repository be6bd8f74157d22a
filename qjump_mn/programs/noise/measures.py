"""Measures of noise: what bursts offered during the measurement, and what arrived."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import Check, TrialFacts, TrialTables
from qjump_mn.programs.measures_api import Measures, Moved, Said
from qjump_mn.programs.noise.program import NoisePlan
from qjump_mn.programs.tracks import Track, floats, split

LONGEST_PAUSE = 2
"""Longest time between the last burst and the end of the measurement, in intervals of bursts."""


def values(table: pa.Table, plan: NoisePlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of bursts that started during the measurement. Both rates are payload in Mb/s
    over that time."""
    start, end = facts.window_ns
    inside = table.filter((pc.field("start_ns") >= start) & (pc.field("start_ns") <= end))
    bits = 8 * (trial.network.mtu_bytes - theory.UDP_HEADERS_BYTES)
    sent, arrived = (float(pc.sum(inside[name]).as_py() or 0) for name in ("sent", "arrived"))
    seconds = facts.window_s[1] - facts.window_s[0]
    numbers = {
        "bursts": float(inside.num_rows),
        "offered_mbps": sent * bits / seconds / 1e6,
        "goodput_mbps": arrived * bits / seconds / 1e6,
    }
    return numbers | ({"loss": 1 - arrived / sent} if sent else {})


def tracks(table: pa.Table, plan: NoisePlan, trial: Trial, facts: TrialFacts) -> Iterator[Track]:
    """The number of lost datagrams of each burst, at its start."""
    dropped = floats(table, "sent") - floats(table, "arrived")
    at_ns = table["start_ns"].to_numpy() - facts.began_ns
    track = Track("datagrams of a burst that did not arrive", "", "instant", "", at_ns, dropped)
    yield from split(track, table["flow"].to_pylist())


def checks(clock: str, data: Sequence[TrialTables]) -> Iterator[Check]:
    """Check that bursts went on until the measurement ended. A workload that starts late, such as a
    connection whose SYN was lost, might otherwise be measured after the last burst."""
    problems, flows = [], 0
    for tables in data:
        began_ns, ended_ns = tables.facts.window_ns
        for plan in tables.trial.arm.workloads:
            if not isinstance(plan, NoisePlan):
                continue
            for flow in map(">".join, plan.flows):
                flows += 1
                starts = tables.tables[plan.name].filter(pc.field("flow") == flow)["start_ns"]
                last_ns = pc.max(starts).as_py() or began_ns
                if ended_ns - last_ns > LONGEST_PAUSE * plan.interval_ns:
                    problems.append(
                        f"{tables.trial.name}: the last burst of {flow} began "
                        f"{(last_ns - began_ns) / 1e9:.4g} s into the measurement, which lasted "
                        f"{(ended_ns - began_ns) / 1e9:.4g} s: the rest was not disturbed"
                    )
    yield Check.of(
        "bursts", problems, f"the bursts of {flows} flows lasted until the measurement ended"
    )


def moved(said: Said) -> Iterator[Moved]:
    """The datagrams that were sent, and those that arrived."""
    plan: NoisePlan = said.plan
    for flow in plan.flows:
        rows = said.table.filter(pc.field("flow") == ">".join(flow))
        sent, arrived = (int(pc.sum(rows[name]).as_py() or 0) for name in ("sent", "arrived"))
        yield Moved.datagrams(flow, plan.level, said.trial.network.mtu_bytes, arrived, sent)


MEASURES = Measures(values=values, checks=checks, moved=moved, tracks=tracks)
