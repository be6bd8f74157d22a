"""memcached in the simulator: requests and answers of two sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import qjump_sim
from qjump_mn import theory
from qjump_mn.programs.memcached.program import OPERATIONS, MemcachedPlan
from qjump_mn.programs.simulated_api import (
    Apps,
    Rows,
    Simulated,
    Stage,
    flow_name,
    level,
    segments_bytes,
    us,
)
from qjump_sim import apps

MILLIONTHS = 1_000_000


def _applications(plan: MemcachedPlan, stage: Stage) -> Apps:
    """Clients of all flows. A closed loop has one client for each connection, which starts at a
    random instant within its think time."""
    chance, mtu = stage.chance(plan.name), stage.trial.network.mtu_bytes
    weight = round(plan.get_fraction * MILLIONTHS)
    sizes = plan.message_bytes
    kinds = (*sizes["GET"], weight), (*sizes["SET"], MILLIONTHS - weight)
    exchanges = [
        apps.Exchange(segments_bytes(request, mtu), segments_bytes(answer, mtu), share)
        for request, answer, share in kinds
    ]
    applications: Apps = []
    for source, destination in plan.flows:
        common: dict[str, Any] = {
            "client": stage.numbers[source],
            "servers": [stage.numbers[destination]],
            "exchanges": exchanges,
        }
        common |= {"level": level(plan), "until": stage.ended}
        if plan.rate_per_s is not None:
            # Twice the expected number: `until` ends them.
            most = round(2 * plan.rate_per_s * stage.trial.duration_ns / theory.NS_PER_S) + 1000
            arrival = apps.Open(round(theory.PS_PER_S / plan.rate_per_s), poisson=True)
            applications.append(
                apps.Requests(**common, arrival=arrival, count=most, first=stage.began)
            )
            continue
        think = plan.think_ns * qjump_sim.NS
        most = stage.trial.duration_ns // plan.think_ns + 1
        applications += [
            apps.Requests(
                **common,
                arrival=apps.Closed(1, think),
                count=most,
                first=stage.began + chance.randrange(think),
            )
            for _ in range(plan.connections)
        ]
    return applications


def _rows(
    plan: MemcachedPlan,
    stage: Stage,
    results: Sequence[apps.RequestsResult],
    outcome: qjump_sim.Outcome,
) -> Rows:
    per_flow = len(results) // len(plan.flows)
    for index, flow in enumerate(plan.flows):
        gaps = stage.gaps(flow, flow[::-1])
        flow_results = results[index * per_flow : (index + 1) * per_flow]
        columns = (
            np.concatenate([getattr(result, name) for result in flow_results])
            for name in ("start", "latency", "kind")
        )
        starts, latencies, kinds = columns
        order = np.argsort(starts, kind="stable")
        for start, latency, kind in zip(
            starts[order].tolist(), latencies[order].tolist(), kinds[order].tolist(), strict=True
        ):
            yield (
                flow_name(flow),
                OPERATIONS[kind],
                start // qjump_sim.NS,
                start // qjump_sim.NS,
                us(latency, gaps),
            )


SIMULATED = Simulated(apps=_applications, rows=_rows)
