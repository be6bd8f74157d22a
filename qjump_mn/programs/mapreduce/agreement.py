"""Whether a simulated job agrees with what the simulator counted of its packets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qjump_mn.programs.measures_api import Said
from qjump_mn.results import counters

ROUNDED = 1e-9
"""Of what was divided as floating point numbers."""


def agrees(said: Said) -> Iterator[str]:
    """Packets, drops and the mean latency are those of the counters; nothing ended after the simulation."""
    counted: Any = counters.parsed(said.read(counters.NAME))
    (row,) = said.table.to_pylist()
    sums = [counted[name] for name in ("latency", "latency_again")]
    packets = sum(one["packets"] for one in sums)
    mean_ps = sum(one["sum"] for one in sums) / packets if packets else None
    expected = {
        "packets": counters.total(counted["sent"]),
        "data": counted["delivered"]["data"],
        "marked": counted["marked"],
        "timeouts": counted["timeouts"],
        "dropped_data": sum(counted[why].get("data", 0) for why in counters.DROPS),
    }
    for name, value in expected.items():
        if row[name] != value:
            yield f"it says {row[name]} of {name}, and {counters.NAME} {value}"
    told = row["latency_ps"]
    if (told is None) != (mean_ps is None) or (
        told is not None and mean_ps is not None and abs(told - mean_ps) > ROUNDED * mean_ps
    ):
        yield f"it says a mean latency of {told} ps, and {counters.NAME} {mean_ps} ps"
    for name in ("shuffled_ps", "runtime_ps"):
        if row[name] is not None and row[name] > counted["end_ps"]:
            yield f"it says {row[name]} ps of {name}, and the simulation ended at {counted['end_ps']} ps"
    if row["shuffled_ps"] and row["runtime_ps"] and row["shuffled_ps"] > row["runtime_ps"]:
        yield f"it had all after {row['shuffled_ps']} ps, and ended after {row['runtime_ps']} ps"
