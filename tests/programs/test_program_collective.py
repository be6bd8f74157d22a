"""The collective: its ideal on paths of different lengths."""

from __future__ import annotations

import itertools

import pytest

from qjump_mn import theory
from qjump_mn.programs.collective.program import CollectivePlan
from qjump_mn.resolve import plan


def test_ideal_of_a_ring_is_its_slowest_chain_of_messages() -> None:
    """Each part goes from host to host, nearly twice around, in as many steps as there are."""
    (arm, *_) = (arm for arm in plan("collectives", "course", []).arms if "ring" in arm.name)
    (job, *_) = (one for one in arm.workloads if isinstance(one, CollectivePlan))
    hosts = job.hosts or arm.network.hosts
    frame = theory.frame_bytes(arm.network.mtu_bytes)
    segment = arm.network.mtu_bytes - theory.TCP_HEADERS_BYTES
    more = job.message_bytes(len(hosts)) / segment - 1
    more_ns = more * theory.occupancy_ns(frame, arm.network.link.rate_bps)
    hops = [
        theory.one_way_ns(frame, arm.network.speeds(*pair)) + more_ns
        for pair in zip(hosts, (*hosts[1:], hosts[0]), strict=True)
    ]
    assert len(set(hops)) == 2, "within a rack, and between racks"
    chains = (
        sum(itertools.islice(itertools.cycle(hops), start, start + job.steps(len(hosts))))
        for start in range(len(hosts))
    )
    assert job.ideal_ns(arm.network) == pytest.approx(max(chains), rel=1e-12)
