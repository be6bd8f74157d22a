"""Compute percentiles (nearest rank), mean and loss of latencies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

PERCENTILES = {
    "min_ms": 0.0,
    "p50_ms": 50.0,
    "p90_ms": 90.0,
    "p99_ms": 99.0,
    "p999_ms": 99.9,
    "max_ms": 100.0,
}


def percentile(ascending: Sequence[float] | npt.NDArray[np.float64], percent: float) -> float:
    """The value of nearest rank, ceil(percent/100 x n), in a non-empty ascending sequence; 0 is the
    minimum."""
    # The product is rounded first: 99.9 % of 1000 is 999, and in floating point a little more.
    return float(ascending[max(1, math.ceil(round(percent * len(ascending) / 100, 9))) - 1])


def milliseconds(table: pa.Table) -> npt.NDArray[np.float64]:
    """Latencies of the answered requests in ms, in the table's order."""
    latencies_ms: npt.NDArray[np.float64] = table["latency_us"].drop_null().to_numpy() / 1e3
    return latencies_ms


def of_latencies(table: pa.Table) -> dict[str, float]:
    """Percentiles and mean in ms, and the loss, of a table with a row for each request;
    ``latency_us`` is null if there was no answer."""
    ascending = np.sort(milliseconds(table))
    sent, received = table.num_rows, len(ascending)
    values = {"sent": float(sent), "received": float(received)}
    if sent:
        values["loss"] = (sent - received) / sent
    if received:
        values |= {name: percentile(ascending, percent) for name, percent in PERCENTILES.items()}
        values["mean_ms"] = float(np.mean(ascending))
    return values
