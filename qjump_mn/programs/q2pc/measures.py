"""How many requests were completed, and how long each took, in ms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.model.plan import Trial
from qjump_mn.programs.measures_api import Floats, Measures, OnTheWire
from qjump_mn.programs.q2pc.agreement import agrees, moved
from qjump_mn.programs.q2pc.program import Q2PCPlan
from qjump_mn.programs.statistics import of_latencies
from qjump_mn.programs.tracks import Track, took
from qjump_mn.results.tables import TrialFacts


def values(table: pa.Table, plan: Q2PCPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of the requests that ended in time; ``failed`` and ``retries`` are counts. The one that
    the end cut off is none of them."""
    numbers = of_latencies(table)
    return numbers | {
        "requests_per_s": numbers["received"] / (trial.duration_ns / 1e9),
        "retries": float(pc.sum(table["retries"]).as_py() or 0),
        "failed": numbers["sent"] - numbers["received"],
    }


def wire(table: pa.Table, plan: Q2PCPlan, trial: Trial) -> OnTheWire:
    """Both phases to the farthest client and back."""
    least: Floats = np.full(table.num_rows, plan.constants(trial.network)["analytic_ms"] * 1e3)
    return OnTheWire(table["latency_us"].to_numpy(), least)


def tracks(table: pa.Table, plan: Q2PCPlan, trial: Trial, facts: TrialFacts) -> Iterator[Track]:
    """Every request from its start."""
    yield from took(table, "start_ns", facts.began_ns, [""] * table.num_rows, "latency of requests")


MEASURES = Measures(values=values, wire=wire, agrees=agrees, moved=moved, tracks=tracks)
