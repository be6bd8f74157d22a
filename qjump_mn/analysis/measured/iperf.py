"""What bulk flows got and offered while something else was measured."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import IperfPlan
from qjump_mn.results.tables import TrialFacts


def values(table: pa.Table, plan: IperfPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """Goodput and offered load of all flows in Mb/s, and TCP's retransmissions. The simulator knows of TCP's streams what arrived, and no more."""
    found = {"goodput_mbps": sum(goodput_mbps(table, facts.window_s).values())}
    sent = table.filter(pc.field("side") == "sender")
    if sent.num_rows:
        found["offered_mbps"] = sum(goodput_mbps(table, facts.window_s, side="sender").values())
        found["retransmits"] = float(pc.sum(sent["retransmits"]).as_py() or 0)
    return found


def goodput_mbps(table: pa.Table, window_s: tuple[float, float], side: str = "receiver") -> dict[str, float]:
    """What each flow's receiver got (its sender's sockets took, for ``side`` "sender") in a second, in Mb/s.

    Only intervals that lie wholly inside the window count.
    """
    start, end = window_s
    rates: dict[str, float] = dict.fromkeys(table["flow"].unique().to_pylist(), 0.0)
    streams: dict[tuple[str, int], tuple[int, float]] = {}
    for row in table.filter(pc.field("side") == side).to_pylist():
        if start <= row["start_s"] and row["end_s"] <= end:
            received, seconds = streams.get((row["flow"], row["stream"]), (0, 0.0))
            streams[row["flow"], row["stream"]] = (received + row["bytes"], seconds + row["end_s"] - row["start_s"])
    for (flow, _), (received, seconds) in streams.items():
        rates[flow] += received * 8 / seconds / 1e6
    return rates
