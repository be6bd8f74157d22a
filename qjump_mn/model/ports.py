"""Find the packets that cross each port, and the lower-level frames that an urgent packet may wait
for.

A link always finishes the frame in transmission. So at each port an urgent packet may wait for one
frame of a lower level, at most the longest that crosses that port: a full-size frame where bulk
flows send data, an acknowledgement where they send nothing else. Limits bound the queue of equally
urgent frames: see :mod:`qjump_mn.model.guarantee`, which assumes a full-size lower-level frame at
every port, as switches may flood.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from qjump_mn import theory
from qjump_mn.model import hooks
from qjump_mn.model.topology import Network
from qjump_mn.model.workload import Flow, WorkloadPlan

Port = tuple[str, str]
"""A directed link, (from, to): the port by which the first node sends to the second."""


NAMES = ("busy_ports", "ack_ports", "wait_ms")
"""The names of the fields of :class:`Met` in claims."""


class Met(NamedTuple):
    """The frames that an urgent packet may find in transmission: a data frame at ``data`` ports, an
    acknowledgement at ``acks`` ports. ``wait_ns`` is their transmission time in total."""

    data: int
    acks: int
    wait_ns: int

    def constants(self) -> dict[str, float]:
        """Return the fields by their names in claims, :data:`NAMES`."""
        return dict(
            zip(NAMES, (float(self.data), float(self.acks), self.wait_ns / 1e6), strict=True)
        )


def told(constants: Mapping[str, float], name: str) -> str:
    """Describe the frames that a workload's packet may find in transmission."""
    data, acks = (constants.get(f"{name}_{key}", 0.0) for key in ("busy_ports", "ack_ports"))
    full = f"a full-size frame on each of {data:g} busy ports"
    return f"{full} and an acknowledgement on each of {acks:g} more" if acks else full


def ways(workload: WorkloadPlan, network: Network) -> Iterator[tuple[Flow, int]]:
    """Yield each (sender, receiver) of a workload with its longest IP packet, in bytes: both
    directions of a conversation, and for multicast, each of its hosts to all hosts.
    """
    longest = hooks.packet_bytes(workload) or network.mtu_bytes
    back = longest if hooks.answer_bytes(workload) is None else hooks.answer_bytes(workload)
    for source, destination in hooks.conversations(workload):
        yield (source, destination), longest
        if back:
            yield (destination, source), back
    if hooks.is_multicast(workload):
        for source in {host for flow in workload.flows for host in flow}:
            yield from (((source, host), longest) for host in network.hosts if host != source)


def longest(workloads: Iterable[WorkloadPlan], network: Network) -> dict[Port, int]:
    """Return the longest IP packet of the workloads at each port, in bytes, without ports that none
    crosses."""
    by_port: dict[Port, int] = {}
    for workload in workloads:
        for flow, length in ways(workload, network) if hooks.sends(workload) else ():
            for port in network.path(*flow):
                by_port[port] = max(by_port.get(port, 0), length)
    return by_port


def met(urgent: WorkloadPlan, lower: dict[Port, int], network: Network) -> Met:
    """Return the frames in transmission, at worst, on the path of that flow of ``urgent`` which
    meets most, and on its way back unless it is one-way. ``lower`` is :func:`longest` of the less
    urgent workloads.
    """
    return max(
        (_met(flow, urgent, lower, network) for flow in urgent.flows), key=lambda met: met.wait_ns
    )


def _met(flow: Flow, urgent: WorkloadPlan, lower: dict[Port, int], network: Network) -> Met:
    crossed = [
        (lower[port], rate_bps)
        for ends in ((flow,) if hooks.is_one_way(urgent) else (flow, flow[::-1]))
        for port, (rate_bps, _) in zip(network.path(*ends), network.speeds(*ends), strict=True)
        if port in lower
    ]
    data = sum(length > theory.ACK_BYTES for length, _ in crossed)
    wait_s = sum(Fraction(8 * theory.wire_bytes(length), rate_bps) for length, rate_bps in crossed)
    return Met(data, len(crossed) - data, math.ceil(wait_s * theory.NS_PER_S))
