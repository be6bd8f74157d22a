"""Which packets of a plan cross which port, and how long they are; so, what of lower levels an urgent packet
may find in transmission on its way.

A link finishes the frame that it has begun, whatever comes meanwhile: at each port an urgent packet waits for
one frame of a lower level, the longest that goes there. Where bulk flows have data that is a full-size frame,
where they have nothing but acknowledgements it is one of these. The longest queue of frames that are as
urgent is a matter of limits: see :mod:`qjump_mn.model.guarantee`, which for a switch that floods allows a
full-size frame of a lower level at every port.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from qjump_mn import theory
from qjump_mn.model.topology import Network
from qjump_mn.programs.base import Flow, WorkloadPlan

Port = tuple[str, str]
"""A directed link, (from, to): the port of the one by which it sends to the other."""


NAMES = ("busy_ports", "ack_ports", "wait_ms")
"""What claims call it that an urgent packet may find in transmission."""


class Met(NamedTuple):
    """What an urgent packet may find in transmission: at ``data`` ports a frame with data, at ``acks`` ports
    an acknowledgement; ``wait_ns`` is what all of them keep their links for."""

    data: int
    acks: int
    wait_ns: int

    def constants(self) -> dict[str, float]:
        """What claims may use of it, by :data:`NAMES`."""
        return dict(zip(NAMES, (float(self.data), float(self.acks), self.wait_ns / 1e6), strict=True))


def told(constants: Mapping[str, float], name: str) -> str:
    """What a workload's packet may find in transmission, in words."""
    data, acks = (constants.get(f"{name}_{what}", 0.0) for what in ("busy_ports", "ack_ports"))
    full = f"a full-size frame on each of {data:g} busy ports"
    return f"{full} and an acknowledgement on each of {acks:g} more" if acks else full


def ways(workload: WorkloadPlan, network: Network) -> Iterator[tuple[Flow, int]]:
    """Who may send to whom, and the longest IP packet there, in bytes: each way of a conversation; where it
    is multicast, from all of its hosts to all."""
    longest = workload.packet_bytes or network.mtu_bytes
    back = longest if workload.answer_bytes is None else workload.answer_bytes
    for source, destination in workload.conversations:
        yield (source, destination), longest
        if back:
            yield (destination, source), back
    if workload.MULTICAST:
        for source in {host for flow in workload.flows for host in flow}:
            yield from (((source, host), longest) for host in network.hosts if host != source)


def longest(workloads: Iterable[WorkloadPlan], network: Network) -> dict[Port, int]:
    """The longest IP packet of any of the workloads by port, in bytes; ports that none crosses are not in
    it."""
    found: dict[Port, int] = {}
    for workload in workloads:
        for flow, length in ways(workload, network) if workload.SENDS else ():
            for port in network.path(*flow):
                found[port] = max(found.get(port, 0), length)
    return found


def met(urgent: WorkloadPlan, lower: dict[Port, int], network: Network) -> Met:
    """What is in transmission, at worst, on the way of the flow of ``urgent`` that meets most, and unless
    that is one way on the way back; ``lower`` are the :func:`longest` of all that is less urgent."""
    return max((_met(flow, urgent, lower, network) for flow in urgent.flows), key=lambda one: one.wait_ns)


def _met(flow: Flow, urgent: WorkloadPlan, lower: dict[Port, int], network: Network) -> Met:
    crossed = [
        (lower[port], rate_bps)
        for way in ((flow,) if urgent.ONE_WAY else (flow, flow[::-1]))
        for port, (rate_bps, _) in zip(network.path(*way), network.speeds(*way), strict=True)
        if port in lower
    ]
    data = sum(length > theory.ACK_BYTES for length, _ in crossed)
    wait_s = sum(Fraction(8 * theory.wire_bytes(length), rate_bps) for length, rate_bps in crossed)
    return Met(data, len(crossed) - data, math.ceil(wait_s * theory.NS_PER_S))
