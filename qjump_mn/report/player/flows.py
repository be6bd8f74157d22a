"""Name the flow of each packet: workload, sender, receiver and protocol."""

from __future__ import annotations

from typing import NamedTuple

from qjump_mn.model import hooks
from qjump_mn.model.plan import ArmPlan
from qjump_mn.model.workload import WorkloadPlan
from qjump_mn.programs import registry
from qjump_mn.results.packets import Header

_PORTS = 100
"""On which a workload's servers may listen."""


class Flow(NamedTuple):
    """Packets of one workload from ``source`` to ``destination``; ``workload`` is its label, or ""
    if it is not known."""

    workload: str
    source: str
    destination: str
    protocol: str

    @property
    def label(self) -> str:
        """The flow in words: "ping: h1 → h10, ICMP"."""
        before = f"{self.workload}: " if self.workload else ""
        way = f"{self.source} \N{RIGHTWARDS ARROW} {self.destination}, " if self.source else ""
        return f"{before}{way}{self.protocol}"


class Namer:
    """Names the flows of an arm's packets."""

    def __init__(self, arm: ArmPlan, first: str) -> None:
        """``first`` is the name of the workload whose flows come first."""
        self._hosts = {address: host for host, address in arm.network.addresses.items()}
        self._by_pair: dict[frozenset[str], list[WorkloadPlan]] = {}
        workloads = sorted(
            filter(hooks.sends, arm.workloads), key=lambda workload: workload.name != first
        )
        for workload in workloads:
            for pair in map(frozenset, hooks.conversations(workload)):
                self._by_pair.setdefault(pair, []).append(workload)
        self._order = [workload.label for workload in workloads]
        self._forwards = {
            (workload.label, *pair)
            for workload in workloads
            for pair in hooks.conversations(workload)
        }

    def flow(self, header: Header) -> Flow:
        """Return the flow of a packet."""
        source, destination = (
            self._hosts.get(address, address) for address in (header.source, header.destination)
        )
        between = self._by_pair.get(frozenset((source, destination)), [])
        sure = [one for one in between if _is_of(header, one)]
        # A pair that has one workload has no packets of others.
        label = next((one.label for one in sure or between[: len(between) == 1]), "")
        return Flow(label, source, destination, header.protocol)

    def rank(self, flow: Flow) -> tuple[int, bool, str]:
        """Return the sort key of a flow: workloads in their order, then those without one; answers
        last."""
        known = flow.workload in self._order
        place = self._order.index(flow.workload) if known else len(self._order)
        answers = (flow.workload, flow.source, flow.destination) not in self._forwards
        return place, answers, flow.label


def _is_of(header: Header, workload: WorkloadPlan) -> bool:
    if header.protocol == "ICMP":
        return registry.of(workload).name == "ping"
    return any(workload.port <= port < workload.port + _PORTS for port in header.ports)
