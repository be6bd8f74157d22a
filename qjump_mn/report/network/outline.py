"""Arrange a network as rows below its topmost switch; similar ones are drawn once."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from qjump_mn.model.topology import Network
from qjump_mn.report.network import roles
from qjump_mn.report.network.roles import Role
from qjump_mn.report.network.use import Use

MAX_ROWS = 24
"""Up to so many rows, every host has one of its own."""

MIN_ALIKE = 3
"""So many that are alike become two rows."""


@dataclasses.dataclass(frozen=True)
class Branch:
    """A host or a switch: how busy the link above it was in each direction, and whether a measured
    way crosses it.

    It may stand for several (``stands_for``), which ``more`` describes; its numbers are the
    greatest of theirs.
    """

    name: str
    is_switch: bool = False
    roles: tuple[Role, ...] = ()
    below: tuple[Branch, ...] = ()
    down: float = 0.0
    up: float = 0.0
    on_the_way: bool = False
    stands_for: int = 0
    more: str = ""

    @property
    def lines(self) -> tuple[tuple[str, bool], ...]:
        """Return the text beside it, and whether the figure shows that."""
        told = tuple((role.told, role.measured) for role in self.roles)
        return ((self.more, False),) if self.stands_for else told

    @property
    def rows(self) -> int:
        """Return its height in rows."""
        return sum(branch.rows for branch in self.below) or 1

    @property
    def hosts(self) -> int:
        """Return the number of hosts in it."""
        return sum(branch.hosts for branch in self.below) if self.is_switch else 1


def tree(
    network: Network,
    parts: Mapping[str, tuple[Role, ...]],
    used: Use,
    way: frozenset[frozenset[str]],
) -> Branch:
    """Return the network below its topmost switch.

    All spines of a fabric become one, and so do all switches of a graph without hosts.
    """
    below, ends = _children(network), _ends(network)

    def branch(name: str, above: str) -> Branch:
        joined = ends.get(name, {above})
        return Branch(
            name=name,
            is_switch=name in below,
            roles=parts.get(name, ()),
            below=tuple(branch(child, name) for child in below.get(name, ())),
            down=sum(used.amounts.get((end, name), 0.0) for end in joined),
            up=sum(used.amounts.get((name, end), 0.0) for end in joined),
            on_the_way=any(frozenset((end, name)) in way for end in joined),
        )

    if not ends:
        return branch(network.switches[0], "")
    spines = network.fabric.spines if network.fabric else 0
    named = f"{spines} spines" if spines > 1 else "spine1"
    top = named if spines else f"{len(network.cables)} links between switches"
    return Branch(name=top, is_switch=True, below=tuple(branch(name, "") for name in below))


def _children(network: Network) -> dict[str, Sequence[str]]:
    """Return what is below each switch."""
    if fabric := network.fabric:
        size = fabric.hosts_per_rack
        return {
            f"rack{rack + 1}": network.hosts[rack * size : (rack + 1) * size]
            for rack in range(fabric.racks)
        }
    children: dict[str, list[str]] = {}
    for above, below in network.edges:
        children.setdefault(above, []).append(below)
    return {**children}


def _ends(network: Network) -> dict[str, set[str]]:
    """Return the switches joined to a switch of a fabric or a graph; empty for a tree."""
    if fabric := network.fabric:
        spines = {f"spine{number + 1}" for number in range(fabric.spines)}
        return {f"rack{rack + 1}": spines for rack in range(fabric.racks)}
    ends: dict[str, set[str]] = {}
    for one, other in network.cables:
        ends.setdefault(one, set()).add(other)
        ends.setdefault(other, set()).add(one)
    return ends


def outline(top: Branch, used: Use) -> Branch:
    """Return ``top`` with similar rows merged if it has more than :data:`MAX_ROWS`."""
    return _shorter(top, used) if top.rows > MAX_ROWS else top


def _shorter(branch: Branch, used: Use) -> Branch:
    groups: dict[Hashable, list[Branch]] = {}
    for one in branch.below:
        groups.setdefault(_looks(one, used), []).append(one)
    below: list[Branch] = []
    for alike in groups.values():
        if len(alike) < MIN_ALIKE:
            below += [_shorter(one, used) for one in alike]
        else:
            below += [_shorter(alike[0], used), _more(alike)]
    return dataclasses.replace(branch, below=tuple(below))


def _more(alike: Sequence[Branch]) -> Branch:
    """Describe all similar branches but the first."""
    first, *others = alike
    what = "switches" if first.is_switch else "hosts"
    named = roles.ranges(one.name for one in others)
    which = f": {', '.join(named)}" if len(named) <= roles.MOST_NAMED else ""
    each = (
        f", with {first.hosts} host{'' if first.hosts == 1 else 's'} each"
        if first.is_switch
        else ""
    )
    peers = {tuple((role.way, role.peers) for role in one.roles) for one in alike}
    own = ", each with peers of its own" if not first.is_switch and len(peers) > 1 else ""
    return dataclasses.replace(
        first,
        name=f"+{len(others)}",
        below=(),
        down=max(one.down for one in others),
        up=max(one.up for one in others),
        on_the_way=any(one.on_the_way for one in others),
        stands_for=len(others),
        more=f"{len(others)} more {what} like {first.name}{own}{each}{which}",
    )


def _looks(branch: Branch, used: Use) -> Hashable:
    """Return a key that is the same for branches with the same roles and equally busy links."""
    widths = tuple(round(used.width(amount) / 2) for amount in (branch.down, branch.up))
    parts = tuple((role.workload, role.way, role.level) for role in branch.roles)
    below = Counter(_looks(one, used) for one in branch.below)
    return branch.is_switch, widths, parts, frozenset(below.items())
