"""A network as rows: the tree below its topmost switch, with hosts and switches that are alike told once."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

from qjump_mn.model.topology import Network
from qjump_mn.report.network import roles
from qjump_mn.report.network.roles import Role
from qjump_mn.report.network.use import Use

MOST_ROWS = 24
"""As long as there are not more, every host has a row of its own."""

LEAST_ALIKE = 3
"""So many that are alike become two rows."""

EACH, SAME_PEERS, SAME_ROLES = range(3)
"""What is told once: nothing; hosts that do the same with the same peers; hosts that do the same with any."""


@dataclasses.dataclass(frozen=True)
class Node:
    """A host or a switch: how busy the link above it was in each direction, and whether the way of what is
    measured crosses it."""

    name: str
    switch: bool = False
    roles: tuple[Role, ...] = ()
    below: tuple[Node, ...] = ()
    down: float = 0.0
    up: float = 0.0
    on_the_way: bool = False


@dataclasses.dataclass(frozen=True)
class Branch:
    """What is drawn below a switch: a node, or in ``stands_for`` the others like it, of which the link's
    numbers are the greatest."""

    name: str
    node: Node
    lines: tuple[tuple[str, bool], ...]
    below: tuple[Branch, ...] = ()
    stands_for: int = 0

    @property
    def rows(self) -> int:
        """How many rows it takes."""
        return sum(branch.rows for branch in self.below) or 1


def tree(
    network: Network, parts: Mapping[str, tuple[Role, ...]], used: Use, way: frozenset[frozenset[str]]
) -> Node:
    """The network below its topmost switch; all spines of a fabric are one, as are all switches of a graph
    that have no host."""
    fabric = network.fabric
    others: dict[str, set[str]] = {}
    for one, other in network.cables:
        others.setdefault(one, set()).add(other)
        others.setdefault(other, set()).add(one)
    spines = {f"spine{number + 1}" for number in range(fabric.spines)} if fabric else set[str]()
    children: dict[str, list[str]] = {}
    for above, below in network.edges:
        children.setdefault(above, []).append(below)
    if fabric:
        children = {
            f"rack{rack + 1}": list(
                network.hosts[rack * fabric.hosts_per_rack : (rack + 1) * fabric.hosts_per_rack]
            )
            for rack in range(fabric.racks)
        }

    def node(name: str, above: str) -> Node:
        ends = spines if fabric and name in children else others.get(name, {above})
        return Node(
            name=name,
            switch=name in children,
            roles=parts.get(name, ()),
            below=tuple(node(below, name) for below in children.get(name, ())),
            down=sum(used.amounts.get((end, name), 0.0) for end in ends),
            up=sum(used.amounts.get((name, end), 0.0) for end in ends),
            on_the_way=any(frozenset((end, name)) in way for end in ends),
        )

    if fabric:
        named = f"{fabric.spines} spines" if fabric.spines > 1 else "spine1"
        return Node(name=named, switch=True, below=tuple(node(rack, "") for rack in children))
    if others:
        named = f"{len(network.cables)} links between switches"
        return Node(name=named, switch=True, below=tuple(node(switch, "") for switch in children))
    return node(network.switches[0], "")


def outline(top: Node, used: Use) -> Branch:
    """``top`` with as few of those that are alike as it takes for :data:`MOST_ROWS` rows, if it can be
    done."""
    drawn = _branch(top, used, EACH)
    for detail in (SAME_PEERS, SAME_ROLES):
        if drawn.rows > MOST_ROWS:
            drawn = _branch(top, used, detail)
    return drawn


def _branch(node: Node, used: Use, detail: int) -> Branch:
    below: list[Branch] = []
    for alike in _alike(node.below, used, detail):
        if detail == EACH or len(alike) < LEAST_ALIKE:
            below += [_branch(one, used, detail) for one in alike]
        else:
            below += [_branch(alike[0], used, detail), _more(alike)]
    return Branch(node.name, node, tuple((role.told, role.measured) for role in node.roles), tuple(below))


def _more(alike: Sequence[Node]) -> Branch:
    """All but the first of nodes that are alike."""
    first, *others = alike
    what = "switches" if first.switch else "hosts"
    named = roles.ranges(node.name for node in others)
    which = f": {', '.join(named)}" if len(named) <= roles.MOST_NAMED else ""
    each = f", with {_size(first)} each" if first.switch else ""
    peers = {tuple((role.way, role.peers) for role in node.roles) for node in alike}
    own = ", each with peers of its own" if not first.switch and len(peers) > 1 else ""
    link = dataclasses.replace(
        first,
        below=(),
        down=max(node.down for node in others),
        up=max(node.up for node in others),
        on_the_way=any(node.on_the_way for node in others),
    )
    line = f"{len(others)} more {what} like {first.name}{own}{each}{which}"
    return Branch(f"+{len(others)}", link, ((line, False),), stands_for=len(others))


def _size(node: Node) -> str:
    hosts = sum(1 for _ in _hosts(node))
    return f"{hosts} host{'' if hosts == 1 else 's'}"


def _hosts(node: Node) -> Iterator[Node]:
    if not node.switch:
        yield node
    for below in node.below:
        yield from _hosts(below)


def _alike(nodes: Sequence[Node], used: Use, detail: int) -> list[list[Node]]:
    """The nodes in groups of those that look alike, in the order of the first of each."""
    if detail == EACH:
        return [[node] for node in nodes]
    groups: dict[Hashable, list[Node]] = {}
    for node in nodes:
        groups.setdefault(_looks(node, used, detail), []).append(node)
    return list(groups.values())


def _looks(node: Node, used: Use, detail: int) -> Hashable:
    widths = tuple(round(used.width(amount) / 2) for amount in (node.down, node.up))
    parts = tuple(
        (role.workload, role.way, role.level, role.peers if detail == SAME_PEERS else ())
        for role in node.roles
    )
    below = Counter(_looks(one, used, detail) for one in node.below)
    return node.switch, widths, parts, frozenset(below.items())
