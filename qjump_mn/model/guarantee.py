"""Bound the wait of a frame of a limited level at each port: the paper's bound, for any plan.

A limiter in mode "delay" lets no host send more than one budget in an epoch, whatever its programs
do. In mode "edt" no host releases more: a released frame may still wait for others of its host, as
at any port. So the hosts whose frames cross a port bound what arrives there in any time, and thus
the longest queue in front of it (network calculus with token buckets: R. L. Cruz, "A calculus for
network delay, part I", IEEE Transactions on Information Theory 37(1), 1991).

Equation 1 is the case of one port where all hosts meet. In general, frames that waited at one port
reach the next closer together. Frames of different sizes, and a lower level's frame in
transmission, add their times. A lower level's frame is taken to be the longest possible at every
port, because a switch may flood. The bound of a lone urgent packet (:mod:`qjump_mn.model.ports`)
uses the frames that the plan sends there.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from qjump_mn import theory
from qjump_mn.model import hooks, ports
from qjump_mn.model.plan import ArmPlan, QJumpPlan
from qjump_mn.model.ports import Port
from qjump_mn.model.topology import Network
from qjump_mn.model.units import told_rate
from qjump_mn.model.workload import WorkloadPlan

LEAST_IP_BYTES = theory.TCP_HEADERS_BYTES
"""The shortest packet: here Ethernet's overhead is largest in proportion to what a limiter charges.
"""


class Unknown(NamedTuple):
    """Why there is no bound for ``level`` at ``port``: the limits of ``levels`` let hosts offer it
    ``offered_bps``, and its link carries only ``carried_bps``. If both are 0, one of ``levels`` has
    no limit.
    """

    level: int
    port: Port
    levels: tuple[int, ...]
    offered_bps: float = 0.0
    carried_bps: int = 0

    @property
    def text(self) -> str:
        """The reason in words, such as "level 7 may offer 14 Mb/s to s1>h61, which carries 10
        Mb/s".
        """
        *others, last = map(str, self.levels)
        levels = f"levels {', '.join(others)} and {last}" if others else f"level {last}"
        port = ">".join(self.port)
        if not self.carried_bps:
            return f"{levels} has no limit at {port}"
        offered, carried = told_rate(self.offered_bps), told_rate(self.carried_bps)
        return f"{levels} may offer {offered} to {port}, which carries {carried}"


class Bounds(NamedTuple):
    """The bounds of an arm by switch port and 802.1Q priority. ``waits_ns`` is the longest wait of
    a frame before its own transmission, in ns, if processors take no time. ``unknown`` explains
    missing bounds.
    """

    waits_ns: dict[tuple[Port, int], float]
    unknown: dict[tuple[Port, int], Unknown]


def of_arm(arm: ArmPlan) -> Bounds:
    """Return the bounds at each switch port that limited levels cross.

    There are none for an arm without a limiter or with one that charges on arrival, for switch
    ports with a scheme's own queues, and for a network with several paths between two hosts.
    """
    bounds = Bounds({}, {})
    if (
        arm.qjump is None
        or not arm.qjump.keeps_budgets
        or not arm.uses_levels
        or arm.scheme.switch_port
    ):
        return bounds
    if arm.network.multipath:
        return bounds
    calculus = _Calculus(arm.network, arm.qjump, arm.workloads)
    hosts = set(arm.network.hosts)
    for level, senders in calculus.crossed.items():
        for port in sorted({port for crossed in senders.values() for port in crossed}):
            if port[0] in hosts or not arm.qjump.budget_bytes[level]:
                continue
            wait = calculus.wait_ns(port, level)
            if wait is None:
                bounds.unknown[port, level] = calculus.unknown[port, level]
            else:
                bounds.waits_ns[port, level] = float(wait)
    return bounds


def worst(unknown: Iterable[Unknown]) -> list[Unknown]:
    """Return the worst entry of each level, the one whose port is most overloaded; highest level
    first.
    """
    by_level: dict[int, Unknown] = {}
    for candidate in unknown:
        current = by_level.get(candidate.level)
        if current is None or _overload(candidate) > _overload(current):
            by_level[candidate.level] = candidate
    return sorted(by_level.values(), key=lambda entry: -entry.level)


def _overload(unknown: Unknown) -> float:
    return unknown.offered_bps / unknown.carried_bps if unknown.carried_bps else float("inf")


def remarks(arms: Iterable[ArmPlan]) -> list[str]:
    """Return remarks on missing bounds: one sentence for all arms with the same reason."""
    by_reason: dict[str, list[str]] = {}
    for arm in arms:
        for unknown in worst(of_arm(arm).unknown.values()):
            by_reason.setdefault(f"for level {unknown.level}: {unknown.text}.", []).append(arm.name)
    return [f"{', '.join(names)}: no bound {reason}" for reason, names in by_reason.items()]


class _Calculus:
    """Compute waits, each once, as exact fractions, because budgets may fill a link exactly.

    ``crossed`` maps level and host to the ports on its paths, each with the ports before it.
    ``sizes`` are the lengths of a level's IP packets, or the shortest and the longest. ``unknown``
    explains each wait that is None.
    """

    def __init__(
        self, network: Network, qjump: QJumpPlan, workloads: tuple[WorkloadPlan, ...]
    ) -> None:
        self.qjump = qjump
        self.crossed: dict[int, dict[str, dict[Port, tuple[Port, ...]]]] = {}
        self.sizes: dict[int, set[int]] = {}
        for workload in workloads:
            if not hooks.sends(workload):
                continue
            length = hooks.packet_bytes(workload)
            sizes = {length} if length else {LEAST_IP_BYTES, network.mtu_bytes}
            for level in hooks.levels(workload):
                self.sizes.setdefault(level, set()).update(sizes)
                senders = self.crossed.setdefault(level, {})
                for (source, destination), _ in ports.ways(workload, network):
                    path = network.path(source, destination)
                    before = {port: path[:index] for index, port in enumerate(path)}
                    senders.setdefault(source, {}).update(before)
        # A link is never slower than its rate. In a drawn network, rates are exact.
        self._bytes_per_ns = _rates(network)
        self._max_speedup = (
            1 if network.faster_ppb else 1 + Fraction(network.link.tolerance_ppb or 0, 10**9)
        )
        self._waits: dict[tuple[Port, int], Fraction | None] = {}
        self.unknown: dict[tuple[Port, int], Unknown] = {}

    def wait_ns(self, port: Port, level: int) -> Fraction | None:
        """Return the longest wait at ``port`` in ns; None if there is no bound."""
        key = port, level
        if key not in self._waits:
            self._waits[key] = self._wait_ns(port, level)
        return self._waits[key]

    def _wait_ns(self, port: Port, level: int) -> Fraction | None:
        rate = self._bytes_per_ns[port]
        # A lower level's frame in transmission, and everything as urgent, without the frame itself.
        lower = [self._wire_bytes(other)[-1] for other in self.sizes if other < level]
        burst = Fraction(max(lower, default=0) - self._wire_bytes(level)[0])
        of_all: dict[Port, Fraction] = {}
        of_higher: dict[Port, Fraction] = {}
        crossings = {
            other: [crossed[port] for crossed in senders.values() if port in crossed]
            for other, senders in sorted(self.crossed.items())
            if other >= level
        }
        levels = tuple(other for other, crossing in crossings.items() if crossing)
        for other in levels:
            if not (budget := self._budget_bytes(other)):
                self.unknown[port, level] = Unknown(level, port, (other,))
                return None
            crossing = crossings[other]
            each = budget / self.qjump.epoch_ns
            for before in crossing:
                if (late_ns := self._late_ns(before, other, of=(port, level))) is None:
                    return None
                # Aligned epochs allow one budget at the end of an epoch and the next one directly
                # after it.
                burst += budget * (2 if self.qjump.epochs == "aligned" else 1) + each * late_ns
                for rates in (of_all, of_higher) if other > level else (of_all,):
                    own = before[0] if before else port
                    rates[own] = rates.get(own, Fraction(0)) + each
        all_rates, higher = self._sum(of_all), self._sum(of_higher)
        if all_rates <= rate and higher < rate:
            return burst / (rate - higher)
        to_bps = 8 * theory.NS_PER_S
        offered_bps, carried_bps = float(all_rates * to_bps), int(rate * to_bps)
        self.unknown[port, level] = Unknown(level, port, levels, offered_bps, carried_bps)
        return None

    def _sum(self, rates: dict[Port, Fraction]) -> Fraction:
        """Return what hosts send together, in bytes per ns; each at most what its link carries."""
        return sum(
            (
                min(rate, self._max_speedup * self._bytes_per_ns[port])
                for port, rate in rates.items()
            ),
            Fraction(0),
        )

    def _late_ns(
        self, before: tuple[Port, ...], level: int, of: tuple[Port, int]
    ) -> Fraction | None:
        """Return by how many ns two frames may come closer together at the ports ``before``; the
        first is the host's own, which in mode "delay" charges what it sends. If one of these has no
        bound, ``of`` has none, for the same reason.
        """
        sizes = self._wire_bytes(level)
        late_ns = sum(
            ((sizes[-1] - sizes[0]) / self._bytes_per_ns[port] for port in before), Fraction(0)
        )
        charged_before = self.qjump.mode == "edt"
        for port in before if charged_before else before[1:]:
            wait_ns = self.wait_ns(port, level)
            if wait_ns is None:
                self.unknown[of] = self.unknown[port, level]._replace(level=of[1])
                return None
            late_ns += wait_ns
        return late_ns

    def _budget_bytes(self, level: int) -> Fraction:
        """Return the most wire bytes that a budget allows, over all packet sizes; 0 for no
        limit."""
        budget, sizes = self.qjump.budget_bytes[level], self.sizes[level]
        return max(
            (Fraction(budget // charged) if len(sizes) == 1 else Fraction(budget, charged)) * wire
            for charged, wire in (
                (self.qjump.cost_bytes(size), theory.wire_bytes(size)) for size in sizes
            )
        )

    def _wire_bytes(self, level: int) -> list[int]:
        """Return the wire bytes of a level's packets, in ascending order."""
        return sorted(theory.wire_bytes(size) for size in self.sizes[level])


def _rates(network: Network) -> dict[Port, Fraction]:
    """Return the rate of each port, in bytes per ns."""
    links = network.by_device()
    return {
        port: Fraction(links[device].rate_bps, 8 * theory.NS_PER_S)
        for port, device in network.interfaces().items()
    }
