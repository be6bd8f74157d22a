"""Measures of iperf: goodput, offered load and retransmissions of bulk flows during the
measurement."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import Check, TrialFacts, TrialTables
from qjump_mn.programs.iperf.parse import parse
from qjump_mn.programs.iperf.program import IperfPlan, output_name, report_s
from qjump_mn.programs.measures_api import HEADERS_BYTES, Measures, Moved, Said
from qjump_mn.programs.tracks import Floats, Track, floats, split

CONTROL_BYTES = 16_384
"""Bytes of iperf3's control connection, each way: the request, and both results in JSON (seen: 3
kB)."""

LATE_S = 3.0
"""By so much a flow starts later where links lose frames: of each of its two connections the first
frame may be lost, which TCP sends again after 1 s."""

SUMS = {"client": "sum_sent", "server": "sum_received"}


def values(table: pa.Table, plan: IperfPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """Goodput and offered load of all flows in Mb/s, and TCP's retransmissions. In the simulator,
    TCP flows have a goodput only."""
    goodput = goodput_mbps(table, facts.window_s)
    if not goodput:
        return {}  # the window is shorter than a report interval
    rates = {"goodput_mbps": sum(goodput.values())}
    sent = table.filter(pc.field("side") == "sender")
    if sent.num_rows:
        rates["offered_mbps"] = sum(goodput_mbps(table, facts.window_s, side="sender").values())
        rates["retransmits"] = float(pc.sum(sent["retransmits"]).as_py() or 0)
    return rates


def goodput_mbps(
    table: pa.Table, window_s: tuple[float, float], side: str = "receiver"
) -> dict[str, float]:
    """Mb/s that each flow's receiver got, or that its sender's sockets accepted (``side``
    "sender").

    Only intervals entirely inside the window count. Without any, nothing is known, and the result
    is empty.
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
    """Goodput of each flow during the measurement, in Mb/s."""
    return goodput_mbps(table, facts.window_s)


def checks(clock: str, data: Sequence[TrialTables]) -> Iterator[Check]:
    """Check that every bulk flow ran, with all its streams, to the end of the measurement."""
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
    # A ping waits for lost replies, so the window may end a little later than the flows. The
    # goodput counts only complete intervals.
    start_s, end_s = tables.facts.window_s
    until_s = min(end_s, start_s + tables.trial.duration_ns / 1e9)
    # A receiver whose sender was stopped does not report its last, incomplete interval.
    least_s = until_s - report_s(tables.trial)
    if any(one.loss_ppb for _, one in tables.trial.network.impaired):
        least_s -= LATE_S
    for flow in map(">".join, workload.flows):
        for side in ("sender", "receiver"):
            side_rows = [row for row in rows if row["flow"] == flow and row["side"] == side]
            ends_s: dict[int, float] = {}
            for row in side_rows:
                ends_s[row["stream"]] = max(row["end_s"], ends_s.get(row["stream"], 0.0))
            if len(ends_s) != workload.streams:
                yield (
                    f"{tables.trial.name}: {flow} has {len(ends_s)} of {workload.streams} streams "
                    f"at the {side}"
                )
            elif (ended_s := min(ends_s.values())) < least_s:
                yield (
                    f"{tables.trial.name}: {flow} ended at {ended_s:.2f} s at the {side}, the "
                    f"window at {until_s:.2f} s"
                )


def tracks(table: pa.Table, plan: IperfPlan, trial: Trial, facts: TrialFacts) -> Iterator[Track]:
    """Goodput and offered load of each flow in each report interval, and its retransmissions."""
    sides = (("receiver", "goodput"), ("sender", "offered load"))
    for side, quantity in sides:
        rows = table.filter(pc.field("side") == side)
        for flow in rows["flow"].unique().to_pylist():
            at_s, until_s, mbps = _summed(rows.filter(pc.field("flow") == flow))
            start_ns, end_ns = ((times - facts.window_s[0]) * 1e9 for times in (at_s, until_s))
            yield Track(quantity, "Mb/s", "holds", flow, start_ns, mbps, end_ns)
    resent = table.filter(pc.greater(table["retransmits"], 0))
    at_ns = (floats(resent, "end_s") - facts.window_s[0]) * 1e9
    counts = floats(resent, "retransmits")
    track = Track("packets sent again since the last report", "", "instant", "", at_ns, counts)
    yield from split(track, resent["flow"].to_pylist())


def _summed(flow: pa.Table) -> tuple[Floats, Floats, Floats]:
    """A flow's total rate in Mb/s over all streams, and from when to when (s) it held: the instants
    at which a stream reported."""
    start, end = floats(flow, "start_s"), floats(flow, "end_s")
    not_empty = end > start
    start, end, size = start[not_empty], end[not_empty], floats(flow, "bytes")[not_empty]
    rates = size * 8 / (end - start) / 1e6
    edges, positions = np.unique(np.concatenate([start, end]), return_inverse=True)
    steps = np.zeros(len(edges))
    np.add.at(steps, positions, np.concatenate([rates, -rates]))
    return edges[:-1], edges[1:], np.maximum(np.cumsum(steps)[:-1], 0)


def moved(said: Said) -> Iterator[Moved]:
    """Everything that the receiver got has crossed every link; the sender sent no more than it
    wrote and retransmitted.

    What reached the receiver's link but was not read either waited on the path when the receiver
    was stopped, or arrived twice.
    """
    plan: IperfPlan = said.plan
    network = said.trial.network
    mss = network.mtu_bytes - theory.TCP_HEADERS_BYTES
    for flow in plan.flows:
        reports = {end: said.read(output_name(plan, flow, end)) for end in SUMS}
        totals = {end: _total(_ends(json.loads(text)), end) for end, text in reports.items()}
        received = totals["server"] or sum(interval.bytes for interval in parse(reports["server"]))
        if plan.udp_rate_bps is not None:
            payload = network.mtu_bytes - theory.UDP_HEADERS_BYTES
            beyond_headers = theory.wire_bytes(network.mtu_bytes) - HEADERS_BYTES
            sent, last = (
                None if total is None else total // payload * beyond_headers + CONTROL_BYTES
                for total in (totals["client"], received)
            )
            forward = Moved.datagrams(
                flow, plan.level, network.mtu_bytes, received // payload, None
            )
        else:
            retransmits = sum(interval.retransmits or 0 for interval in parse(reports["client"]))
            extra = retransmits * mss + CONTROL_BYTES
            sent = None if totals["client"] is None else totals["client"] + extra
            last = received + extra
            forward = Moved.stream(flow, plan.level, received, network.mtu_bytes)
        yield forward._replace(sent_payload=sent, last_payload=last)
        yield Moved(flow[::-1], plan.level, sent_payload=CONTROL_BYTES)


def _total(ends: dict[str, Any], end: str) -> int | None:
    """Bytes that one end reports to have moved; None if it was stopped before its report."""
    total = ends.get(SUMS[end], {}).get("bytes")
    return None if total is None else int(total)


def _ends(document: dict[str, Any]) -> dict[str, Any]:
    ends = document.get("end", {})
    return ends if isinstance(ends, dict) else {}


MEASURES = Measures(
    values=values, checks=checks, flow_goodput=flow_goodput, moved=moved, tracks=tracks
)
