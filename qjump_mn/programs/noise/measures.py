"""What bursts offered, and what of them arrived, while something else was measured."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.programs.measures_api import Measures
from qjump_mn.programs.noise.agreement import agrees, moved
from qjump_mn.programs.noise.program import NoisePlan
from qjump_mn.programs.tracks import Track, floats, split
from qjump_mn.results.tables import TrialFacts


def values(table: pa.Table, plan: NoisePlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of the bursts that began while something was measured; both rates are of payload in Mb/s,
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
    """How many datagrams of each burst did not arrive, when it began."""
    dropped = floats(table, "sent") - floats(table, "arrived")
    at_ns = table["start_ns"].to_numpy() - facts.began_ns
    whole = Track("datagrams of a burst that did not arrive", "", "instant", "", at_ns, dropped)
    yield from split(whole, table["flow"].to_pylist())


MEASURES = Measures(values=values, agrees=agrees, moved=moved, tracks=tracks)
