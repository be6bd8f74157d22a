"""Place a network for the player: the rows and columns of the report's drawing, with room at each
end of a link for its queues."""

from __future__ import annotations

import msgspec

from qjump_mn.model.topology import Network
from qjump_mn.report.network import outline
from qjump_mn.report.network.outline import Branch
from qjump_mn.report.network.use import Use

NODE, LINK, ROW, MARGIN = 52, 190, 46, 6
"""Widths of a node's and a link's column, and the height of a row."""


class Node(msgspec.Struct, frozen=True):
    """A host or a switch, which is as high as the rows below it."""

    name: str
    x: float
    top: float
    bottom: float
    switch: bool


class Link(msgspec.Struct, frozen=True):
    """The link of the node ``below``, from ``left`` to ``right`` in the middle ``y`` of its row."""

    above: str
    below: str
    left: float
    right: float
    y: float


class Layout(msgspec.Struct, frozen=True):
    """A network's nodes and links, and the size of all."""

    width: float
    height: float
    nodes: list[Node]
    links: list[Link]


def layout(network: Network) -> Layout:
    """Place every node of a tree."""
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
            links.append(Link(branch.name, below.name, x + NODE, x + NODE + LINK, y))
        return (rows[0] + rows[-1]) / 2

    put(outline.tree(network, {}, Use({}, counted=False, most=0.0), frozenset()), 0)
    width = max(node.x for node in nodes) + NODE + MARGIN
    return Layout(width, bottom + MARGIN, nodes, links)
