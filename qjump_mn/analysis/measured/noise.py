"""What bursts offered, and what of them arrived, while something else was measured."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import NoisePlan
from qjump_mn.results.tables import TrialFacts


def values(table: pa.Table, plan: NoisePlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of the bursts that began while something was measured; both rates are of payload in Mb/s, over that time."""
    start_s, end_s = facts.window_s
    end_ns = facts.began_ns + round((end_s - start_s) * 1e9)
    inside = table.filter((pc.field("start_ns") >= facts.began_ns) & (pc.field("start_ns") <= end_ns))
    bits = 8 * (trial.network.mtu_bytes - theory.IP_HEADER_BYTES - theory.UDP_HEADER_BYTES)
    sent, arrived = (float(pc.sum(inside[name]).as_py() or 0) for name in ("sent", "arrived"))
    found = {"bursts": float(inside.num_rows), "offered_mbps": sent * bits / (end_s - start_s) / 1e6, "goodput_mbps": arrived * bits / (end_s - start_s) / 1e6}
    return found | ({"loss": 1 - arrived / sent} if sent else {})
