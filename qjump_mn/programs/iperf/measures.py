"""What bulk flows got and offered while something else was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.model.plan import Trial
from qjump_mn.programs.iperf.agreement import agrees, moved
from qjump_mn.programs.iperf.program import IperfPlan, report_s
from qjump_mn.programs.measures_api import Measures
from qjump_mn.programs.tracks import Floats, Track, floats, split
from qjump_mn.results.outcome import Check
from qjump_mn.results.tables import TrialFacts, TrialTables


def values(table: pa.Table, plan: IperfPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """Goodput and offered load of all flows in Mb/s, and TCP's retransmissions. The simulator knows of TCP's
    streams what arrived, and no more."""
    goodput = goodput_mbps(table, facts.window_s)
    if not goodput:
        return {}  # the window is shorter than what iperf3 reports of
    rates = {"goodput_mbps": sum(goodput.values())}
    sent = table.filter(pc.field("side") == "sender")
    if sent.num_rows:
        rates["offered_mbps"] = sum(goodput_mbps(table, facts.window_s, side="sender").values())
        rates["retransmits"] = float(pc.sum(sent["retransmits"]).as_py() or 0)
    return rates


def goodput_mbps(table: pa.Table, window_s: tuple[float, float], side: str = "receiver") -> dict[str, float]:
    """What each flow's receiver got (its sender's sockets took, for ``side`` "sender") in a second, in Mb/s.

    Only intervals that lie wholly inside the window count; without any nothing is known, and there is no
    flow.
    """
    start, end = window_s
    rates: dict[str, float] = dict.fromkeys(table["flow"].unique().to_pylist(), 0.0)
    streams: dict[tuple[str, int], tuple[int, float]] = {}
    for row in table.filter(pc.field("side") == side).to_pylist():
        if start <= row["start_s"] and row["end_s"] <= end:
            received, seconds = streams.get((row["flow"], row["stream"]), (0, 0.0))
            streams[row["flow"], row["stream"]] = (
                received + row["bytes"],
                seconds + row["end_s"] - row["start_s"],
            )
    if not streams:
        return {}
    for (flow, _), (received, seconds) in streams.items():
        rates[flow] += received * 8 / seconds / 1e6
    return rates


def flow_goodput(table: pa.Table, facts: TrialFacts) -> dict[str, float]:
    """What each flow's receiver got while something was measured, in Mb/s."""
    return goodput_mbps(table, facts.window_s)


def checks(clock: str, data: Sequence[TrialTables]) -> Iterator[Check]:
    """That every bulk flow ran with all of its streams to the end of what was measured beside it."""
    problems: list[str] = []
    flows = 0
    for tables in data:
        for workload in tables.trial.arm.workloads:
            if isinstance(workload, IperfPlan):
                flows += len(workload.flows)
                problems += _ended_early(tables, workload)
    yield Check.of("bulk flows", problems, f"all {flows} flows ran to the end of their windows")


def _ended_early(tables: TrialTables, workload: IperfPlan) -> Iterator[str]:
    rows = tables.tables[workload.name].to_pylist()
    # A ping waits for replies that were lost, so the window may end a little later than the flows, which the
    # goodput allows for.
    start_s, end_s = tables.facts.window_s
    until_s = min(end_s, start_s + tables.trial.duration_ns / 1e9)
    # A receiver whose sender was ended does not report the interval that had begun.
    least_s = until_s - report_s(tables.trial)
    for flow in map(">".join, workload.flows):
        for side in ("sender", "receiver"):
            own_rows = [row for row in rows if row["flow"] == flow and row["side"] == side]
            ends_s: dict[int, float] = {}
            for row in own_rows:
                ends_s[row["stream"]] = max(row["end_s"], ends_s.get(row["stream"], 0.0))
            if len(ends_s) != workload.streams:
                yield (
                    f"{tables.trial.name}: {flow} has {len(ends_s)} of {workload.streams} streams at the "
                    f"{side}"
                )
            elif (ended_s := min(ends_s.values())) < least_s:
                yield (
                    f"{tables.trial.name}: {flow} ended at {ended_s:.2f} s at the {side}, the window at "
                    f"{until_s:.2f} s"
                )


def tracks(table: pa.Table, plan: IperfPlan, trial: Trial, facts: TrialFacts) -> Iterator[Track]:
    """What each flow got, and offered, from report to report; and how often TCP sent again in between."""
    sides = (("receiver", "goodput"), ("sender", "offered load"))
    for side, what in sides:
        rows = table.filter(pc.field("side") == side)
        for flow in rows["flow"].unique().to_pylist():
            at_s, until_s, mbps = _summed(rows.filter(pc.field("flow") == flow))
            start_ns, end_ns = ((times - facts.window_s[0]) * 1e9 for times in (at_s, until_s))
            yield Track(what, "Mb/s", "holds", flow, start_ns, mbps, end_ns)
    again = table.filter(pc.greater(table["retransmits"], 0))
    at_ns = (floats(again, "end_s") - facts.window_s[0]) * 1e9
    whole = Track(
        "packets sent again since the last report", "", "instant", "", at_ns, floats(again, "retransmits")
    )
    yield from split(whole, again["flow"].to_pylist())


def _summed(flow: pa.Table) -> tuple[Floats, Floats, Floats]:
    """From when to when (s) a flow's streams had which rate together, in Mb/s: the instants at which one of
    them reported."""
    start, end = floats(flow, "start_s"), floats(flow, "end_s")
    whole = end > start
    start, end, size = start[whole], end[whole], floats(flow, "bytes")[whole]
    rates = size * 8 / (end - start) / 1e6
    edges, place = np.unique(np.concatenate([start, end]), return_inverse=True)
    steps = np.zeros(len(edges))
    np.add.at(steps, place, np.concatenate([rates, -rates]))
    return edges[:-1], edges[1:], np.maximum(np.cumsum(steps)[:-1], 0)


MEASURES = Measures(
    values=values, checks=checks, flow_goodput=flow_goodput, agrees=agrees, moved=moved, tracks=tracks
)
