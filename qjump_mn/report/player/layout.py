"""Place a network for the player, with room at each end of a link for its queues: a tree in the
rows and columns of the report's drawing, a network with several paths in layers."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from qjump_mn.model import graph
from qjump_mn.model.topology import Network
from qjump_mn.report.network import outline
from qjump_mn.report.network.outline import Branch
from qjump_mn.report.network.use import Use

NODE, LINK, SLANTED, ROW, MARGIN = 52, 190, 300, 46, 6
"""Widths of the columns of nodes, of links, and of links between layers of switches; the height of
a row."""


class Node(msgspec.Struct, frozen=True):
    """A host or a switch, which is as high as the rows below it."""

    name: str
    x: float
    top: float
    bottom: float
    switch: bool


class Link(msgspec.Struct, frozen=True):
    """The link of the nodes ``above`` and ``below``, from ``left`` to ``right``: the middles of its
    rows at the two nodes."""

    above: str
    below: str
    left: tuple[float, float]
    right: tuple[float, float]


class Layout(msgspec.Struct, frozen=True):
    """A network's nodes and links, and the size of all."""

    width: float
    height: float
    nodes: list[Node]
    links: list[Link]


def layout(network: Network) -> Layout:
    """Place every node."""
    return _layers(network) if network.multipath else _tree(network)


def _tree(network: Network) -> Layout:
    nodes: list[Node] = []
    links: list[Link] = []
    bottom = float(MARGIN)

    def put(branch: Branch, depth: int) -> float:
        """Place a branch and all below it; return the middle of its row."""
        nonlocal bottom
        x = MARGIN + depth * (NODE + LINK)
        rows = [put(one, depth + 1) for one in branch.below]
        if not rows:
            rows = [bottom + ROW / 2]
            bottom += ROW
        # A host is a box in its row, a switch has a port in each of its rows.
        high = ROW / 2 - 4 if branch.is_switch else 11
        nodes.append(Node(branch.name, x, rows[0] - high, rows[-1] + high, branch.is_switch))
        for below, y in zip(branch.below, rows, strict=False):
            links.append(Link(branch.name, below.name, (x + NODE, y), (x + NODE + LINK, y)))
        return (rows[0] + rows[-1]) / 2

    put(outline.tree(network, {}, Use({}, counted=False, most=0.0), frozenset()), 0)
    width = max(node.x for node in nodes) + NODE + MARGIN
    return Layout(width, bottom + MARGIN, nodes, links)


class _Ends(NamedTuple):
    """The neighbours of a switch in the layers above and below, in their order."""

    above: list[str]
    below: list[str]

    @property
    def rows(self) -> int:
        return max(map(len, self))


def _layers(network: Network) -> Layout:
    """Place the topmost switches to the left, and hosts to the right in the rows of their links."""
    pairs = tuple(ends for ends, _ in network.wiring())
    layers = graph.layers(pairs, network.hosts)
    ends = _ends(pairs, layers)
    switches = _switches(layers[1:], ends)
    right = max(node.x for node in switches.values()) + NODE + LINK
    hosts, links = [], []
    for name, node in switches.items():
        for other in ends[name].below:
            left = node.x + NODE, _row(node, ends[name].below, other)
            if below := switches.get(other):
                links.append(
                    Link(name, other, left, (below.x, _row(below, ends[other].above, name)))
                )
            else:
                hosts.append(Node(other, right, left[1] - 11, left[1] + 11, switch=False))
                links.append(Link(name, other, left, (right, left[1])))
    bottom = max(node.bottom for node in switches.values())
    return Layout(right + NODE + MARGIN, bottom + 4 + MARGIN, [*switches.values(), *hosts], links)


def _ends(pairs: graph.Pairs, layers: list[list[str]]) -> dict[str, _Ends]:
    """Return the neighbours of each switch."""
    joined = set(pairs) | {pair[::-1] for pair in pairs}
    beside = zip(layers[1:], [*layers[2:], []], layers, strict=False)
    return {
        node: _Ends(*([other for other in layer if (node, other) in joined] for layer in others))
        for nodes, *others in beside
        for node in nodes
    }


def _switches(layers: list[list[str]], ends: dict[str, _Ends]) -> dict[str, Node]:
    """Place the layers of switches, the topmost to the left."""
    nodes: dict[str, Node] = {}
    height = max(sum(ends[name].rows for name in layer) for layer in layers)
    for column, layer in enumerate(reversed(layers)):
        x, top = MARGIN + column * (NODE + SLANTED), float(MARGIN)
        room = ROW * (height - sum(ends[name].rows for name in layer)) / len(layer)
        for name in layer:
            bottom = top + room + ROW * ends[name].rows
            nodes[name] = Node(name, x, top + room / 2 + 4, bottom - room / 2 - 4, switch=True)
            top = bottom
    return nodes


def _row(node: Node, ends: list[str], other: str) -> float:
    """Return the middle of the row of a switch's link to ``other``, which is one of ``ends``."""
    return (node.top + node.bottom) / 2 + ROW * (ends.index(other) - (len(ends) - 1) / 2)
