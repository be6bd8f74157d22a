"""Whether what fanin's receivers noted agrees with the links that it came over."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qjump_mn import theory
from qjump_mn.links import registry as links
from qjump_mn.programs import datagrams, pace
from qjump_mn.programs.measures_api import Said


def agrees(said: Said, ip_bytes: int) -> Iterator[str]:
    """Datagrams of ``ip_bytes`` reach a host one after the other, at most as fast as its link carries them,
    and none before it was sent.

    After so many frames back to back the last one cannot have come sooner than so many times that a frame
    keeps the link busy after the first; a stamp may be late by what the processor did meanwhile.
    """
    plan, network = said.plan, said.trial.network
    arrivals = datagrams.arrivals(plan, said.trial, said.read)
    frame, latest_ns = theory.frame_bytes(ip_bytes), pace.latest_ns(said.trial)
    by_host: dict[str, list[int]] = {}
    for (_, host), rows in arrivals.items():
        by_host.setdefault(host, []).extend(received_ns for _, _, received_ns in rows)
    for host, times in by_host.items():
        if not said.virtual or not links.of(network.model).exact or network.jittery:
            continue
        source = next(flow[0] for flow in plan.flows if flow[1] == host)
        each_ns = theory.occupancy_ns(frame, network.speeds(source, host)[-1][0])
        ahead = np.sort(np.array(times, dtype=np.float64)) - np.arange(len(times)) * each_ns
        early_ns = float(np.max(np.maximum.accumulate(ahead) - ahead, initial=0.0))
        if early_ns > latest_ns:
            yield (
                f"datagrams reached {host} faster than its link carries them: {early_ns / 1e6:.4g} ms sooner "
                f"than at {each_ns / 1e6:.4g} ms each"
            )
