"""iperf in the simulator: bulk flows, of which only the arrivals are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import qjump_sim
from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.programs.iperf.program import IperfPlan
from qjump_mn.programs.simulated_api import (
    Apps,
    Rows,
    Simulated,
    Stage,
    flow_name,
    full_buffer,
    level,
    wire_bytes,
)
from qjump_sim import apps

INTERVALS = 500
"""Intervals in the measured time for which bytes are counted. Each stream's intervals start with
the stream, so the number inside the measured time may differ by one."""


def _applications(plan: IperfPlan, stage: Stage) -> Apps:
    if plan.congestion_control is not None:
        raise UsageError(
            f"workloads.{plan.name}.congestion_control: in the simulator the scheme sets it for "
            "all hosts: leave it out"
        )
    chance, network = stage.chance(plan.name), stage.trial.network
    interval = _interval(stage)
    applications: Apps = []
    for source, destination in plan.flows:
        ends = stage.numbers[source], stage.numbers[destination]
        for _ in range(plan.streams):
            if plan.udp_rate_bps is None:
                window = (
                    None
                    if plan.window_bytes is None
                    else max(1, plan.window_bytes // (network.mtu_bytes - theory.TCP_HEADERS_BYTES))
                )
                # Each seed gives another phase of TCP's sawtooth.
                start = chance.randrange(full_buffer(network))
                applications.append(
                    apps.Bulk(
                        *ends,
                        until=stage.until,
                        interval=interval,
                        start=start,
                        level=level(plan),
                        window=window,
                    )
                )
            else:
                gap = (
                    (network.mtu_bytes - theory.UDP_HEADERS_BYTES)
                    * 8
                    * theory.PS_PER_S
                    // plan.udp_rate_bps
                )
                first = chance.randrange(gap)
                count = max(1, (stage.until - first) // gap)
                applications.append(
                    apps.Datagrams(
                        *ends, wire_bytes(network.mtu_bytes), gap, count, first, level(plan)
                    )
                )
    return applications


def _interval(stage: Stage) -> int:
    return max(1, (stage.ended - stage.began) // INTERVALS)


def _rows(
    plan: IperfPlan,
    stage: Stage,
    results: Sequence[apps.BulkResult | apps.DatagramsResult],
    outcome: qjump_sim.Outcome,
) -> Rows:
    """Bytes in each interval. TCP streams have no sender's rows: their retransmissions and what
    their sockets accepted are not known."""
    mtu, streams = (
        stage.trial.network.mtu_bytes,
        iter(zip(_applications(plan, stage), results, strict=True)),
    )
    for flow in plan.flows:
        for stream in range(plan.streams):
            app, result = next(streams)
            if isinstance(app, apps.Bulk) and isinstance(result, apps.BulkResult):
                received = (
                    np.diff(result.delivered, prepend=0)
                    // stage.data_bytes
                    * (mtu - theory.TCP_HEADERS_BYTES)
                )
                yield from _intervals(flow, "receiver", stream, app.start, app.interval, received)
            elif isinstance(result, apps.DatagramsResult):
                arrived = (result.start + result.latency)[result.latency >= 0]
                for side, times in (("sender", result.start), ("receiver", arrived)):
                    sent = np.bincount(times // _interval(stage)) * (mtu - theory.UDP_HEADERS_BYTES)
                    yield from _intervals(flow, side, stream, 0, _interval(stage), sent)


def _intervals(
    flow: tuple[str, str], side: str, stream: int, start: int, interval: int, sizes: Any
) -> Rows:
    for number, size in enumerate(sizes.tolist()):
        begins = start + number * interval
        yield (
            flow_name(flow),
            side,
            stream,
            begins / qjump_sim.S,
            (begins + interval) / qjump_sim.S,
            size,
            None,
        )


SIMULATED = Simulated(apps=_applications, rows=_rows)
