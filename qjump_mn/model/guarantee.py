"""How long a frame of a limited level waits at a port, at most: the bound of the paper for any plan, port by
port.

A limiter in mode "delay" lets no host send more than a budget in an epoch, whatever its programs do. One in
mode "edt" lets no host release more: a frame whose time has come may still wait for others of its host, as at
any port. What a port may get in any time is then bounded by the hosts whose frames cross it, and so is the
longest queue in front of it (network calculus with token buckets: R. L. Cruz, "A calculus for network delay,
part I", IEEE Transactions on Information Theory 37(1), 1991). Equation 1 is the case of one port where all
hosts meet; here frames that waited at one port come to the next one closer together, and each frame of
another size, and each of a lower level in transmission, adds its time. Of lower levels each port is allowed
the longest frame that there is, for a switch may flood; the bound of a lone urgent packet
(:mod:`qjump_mn.model.ports`) counts what the plan sends there.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from qjump_mn import theory
from qjump_mn.model import ports
from qjump_mn.model.plan import ArmPlan, QJumpPlan
from qjump_mn.model.ports import Port
from qjump_mn.model.topology import Network
from qjump_mn.model.units import told_rate
from qjump_mn.programs.base import WorkloadPlan

LEAST_IP_BYTES = theory.TCP_HEADERS_BYTES
"""No packet is shorter; what Ethernet adds to these is most in proportion to what a limiter charges."""


class Unknown(NamedTuple):
    """Why there is no bound for ``level`` at ``port``: the limits of ``levels`` let hosts offer it
    ``offered_bps``, and its link carries ``carried_bps``; or without both, a level as urgent has no limit."""

    level: int
    port: Port
    levels: tuple[int, ...]
    offered_bps: float = 0.0
    carried_bps: int = 0

    @property
    def text(self) -> str:
        """It in words, such as "level 7 may offer 14 Mb/s to s1>h61, which carries 10 Mb/s"."""
        *others, last = map(str, self.levels)
        levels = f"levels {', '.join(others)} and {last}" if others else f"level {last}"
        where = ">".join(self.port)
        if not self.carried_bps:
            return f"{levels} has no limit at {where}"
        offered, carried = told_rate(self.offered_bps), told_rate(self.carried_bps)
        return f"{levels} may offer {offered} to {where}, which carries {carried}"


class Bounds(NamedTuple):
    """The bounds of an arm by switch port and 802.1Q priority: ``waits_ns``, the longest wait of a frame
    before its own transmission, in ns, where a processor takes no time; and where a limited level has
    none, ``unknown``."""

    waits_ns: dict[tuple[Port, int], float]
    unknown: dict[tuple[Port, int], Unknown]


def of_arm(arm: ArmPlan) -> Bounds:
    """The bounds at each switch port that limited levels cross; none for an arm whose limiter is none or
    charges before packets wait, whose switch ports have queues of a scheme's own, or whose network has
    several ways between two hosts."""
    found = Bounds({}, {})
    if arm.qjump is None or not arm.qjump.keeps_budgets or not arm.uses_levels or arm.scheme.switch_port:
        return found
    if arm.network.fabric is not None or arm.network.cables:
        return found
    calculus = _Calculus(arm.network, arm.qjump, arm.workloads)
    hosts = set(arm.network.hosts)
    for level, senders in calculus.crossed.items():
        for port in sorted({port for crossed in senders.values() for port in crossed}):
            if port[0] in hosts or not arm.qjump.budget_bytes[level]:
                continue
            wait = calculus.wait_ns(port, level)
            if wait is None:
                found.unknown[port, level] = calculus.unknown[port, level]
            else:
                found.waits_ns[port, level] = float(wait)
    return found


def worst(unknown: Iterable[Unknown]) -> list[Unknown]:
    """Of each level that which says most: the one whose port is offered most of what it carries."""
    by_level: dict[int, Unknown] = {}
    for one in unknown:
        most = by_level.get(one.level)
        if most is None or _excess(one) > _excess(most):
            by_level[one.level] = one
    return sorted(by_level.values(), key=lambda one: -one.level)


def _excess(one: Unknown) -> float:
    return one.offered_bps / one.carried_bps if one.carried_bps else float("inf")


def remarks(arms: Iterable[ArmPlan]) -> list[str]:
    """What a reader should know of bounds that there are not, a sentence for all arms with the same
    reason."""
    by_reason: dict[str, list[str]] = {}
    for arm in arms:
        for one in worst(of_arm(arm).unknown.values()):
            by_reason.setdefault(f"for level {one.level}: {one.text}.", []).append(arm.name)
    return [f"{', '.join(names)}: no bound {reason}" for reason, names in by_reason.items()]


class _Calculus:
    """Waits, each computed once, without rounding: budgets may fill a link exactly.

    ``crossed`` has, by level and host, the ports on all its ways, each with those before it; ``sizes`` the
    lengths of a level's IP packets, or the least and the greatest. ``unknown`` says why a wait that was asked
    for is None.
    """

    def __init__(self, network: Network, qjump: QJumpPlan, workloads: tuple[WorkloadPlan, ...]) -> None:
        self.qjump = qjump
        self.crossed: dict[int, dict[str, dict[Port, tuple[Port, ...]]]] = {}
        self.sizes: dict[int, set[int]] = {}
        for workload in workloads:
            if not workload.SENDS:
                continue
            sizes = {workload.packet_bytes} if workload.packet_bytes else {LEAST_IP_BYTES, network.mtu_bytes}
            for level in workload.levels:
                self.sizes.setdefault(level, set()).update(sizes)
                senders = self.crossed.setdefault(level, {})
                for (source, destination), _ in ports.ways(workload, network):
                    path = network.path(source, destination)
                    before = {port: path[:index] for index, port in enumerate(path)}
                    senders.setdefault(source, {}).update(before)
        # No link is slower than its rate. A drawn network's have the rates that they have.
        self._bytes_per_ns = _rates(network)
        self._most = 1 if network.faster_ppb else 1 + Fraction(network.link.tolerance_ppb or 0, 10**9)
        self._waits: dict[tuple[Port, int], Fraction | None] = {}
        self.unknown: dict[tuple[Port, int], Unknown] = {}

    def wait_ns(self, port: Port, level: int) -> Fraction | None:
        """The longest wait there; None for no bound."""
        key = port, level
        if key not in self._waits:
            self._waits[key] = self._wait_ns(port, level)
        return self._waits[key]

    def _wait_ns(self, port: Port, level: int) -> Fraction | None:
        rate = self._bytes_per_ns[port]
        # One of a lower level in transmission, and all that is as urgent but for the frame itself.
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
                # Epochs that begin with the clock: one budget at the end of one, and the next at once.
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
        """What hosts send together, by their own ports: each no more than its link carries at its fastest."""
        return sum(
            (min(rate, self._most * self._bytes_per_ns[port]) for port, rate in rates.items()), Fraction(0)
        )

    def _late_ns(self, before: tuple[Port, ...], level: int, of: tuple[Port, int]) -> Fraction | None:
        """By how much two frames may come closer together on their way through the ports ``before``; the
        first is the host's own, which in mode "delay" charges what it sends. What ``of`` has no bound for is
        what these have none for."""
        sizes = self._wire_bytes(level)
        late_ns = sum(((sizes[-1] - sizes[0]) / self._bytes_per_ns[port] for port in before), Fraction(0))
        charged_before = self.qjump.mode == "edt"
        for port in before if charged_before else before[1:]:
            wait_ns = self.wait_ns(port, level)
            if wait_ns is None:
                self.unknown[of] = self.unknown[port, level]._replace(level=of[1])
                return None
            late_ns += wait_ns
        return late_ns

    def _budget_bytes(self, level: int) -> Fraction:
        """What a budget is on the wire, in the packets for which that is most; 0 for no limit."""
        budget, sizes = self.qjump.budget_bytes[level], self.sizes[level]
        return max(
            (Fraction(budget // charged) if len(sizes) == 1 else Fraction(budget, charged)) * wire
            for charged, wire in ((self.qjump.cost_bytes(size), theory.wire_bytes(size)) for size in sizes)
        )

    def _wire_bytes(self, level: int) -> list[int]:
        """What a level's packets keep a link for, in ascending order."""
        return sorted(theory.wire_bytes(size) for size in self.sizes[level])


def _rates(network: Network) -> dict[Port, Fraction]:
    """What each port sends, in bytes per ns."""
    links = network.by_device()
    return {
        port: Fraction(links[device].rate_bps, 8 * theory.NS_PER_S)
        for port, device in network.interfaces().items()
    }
