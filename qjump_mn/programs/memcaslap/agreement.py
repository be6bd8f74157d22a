"""Whether memcaslap's latencies fill the time for which its connections asked."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from qjump_mn.programs.measures_api import Said
from qjump_mn.programs.memcaslap.program import MemcaslapPlan

LEAST_SHARE = 0.7
"""Of the time of all connections, that their requests take together: the rest is the client's, between an
answer and the next request (measured: 0.1 to 0.6 %). Were the processor that busy, the run were invalid."""


def agrees(said: Said) -> Iterator[str]:
    """Each connection asks again at once: its latencies, one after the other, last as long as the run, with
    what is answered in the second after its end."""
    plan: MemcaslapPlan = said.plan
    for flow in map(">".join, plan.flows):
        rows = said.table.filter(
            (pc.field("flow") == flow) & (pc.field("kind") == "run") & (pc.field("op") == "TOTAL")
        )
        for row in rows.to_pylist():
            together_s, asked_s = row["ops"] * row["avg_us"] / 1e6, plan.connections * plan.seconds
            most_s = plan.connections * (plan.seconds + 1)
            # A mean is cut off to whole us.
            if together_s > most_s or (
                said.virtual and together_s + row["ops"] / 1e6 < LEAST_SHARE * asked_s
            ):
                yield (
                    f"{flow}: {row['ops']} answers took {row['avg_us']} us each in the mean, "
                    f"{together_s:.4g} s together, where {plan.connections} connections asked without a "
                    f"pause for {plan.seconds} s, {asked_s} s together"
                )
