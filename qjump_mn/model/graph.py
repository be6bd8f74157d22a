"""Networks that are not trees, as pairs of node names: fat-trees, checks, and shortest paths."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable

from qjump_mn.errors import UsageError

Pairs = tuple[tuple[str, str], ...]

MAX_PORTS = 32
"""Ports of a fat-tree's switch; such a fat-tree has 8,192 hosts."""


def fat_tree(where: str, ports: int) -> tuple[Pairs, Pairs]:
    """Return a fat-tree (Al-Fares, Loukissas and Vahdat, SIGCOMM'08, section 2.2) of switches with
    ``ports`` ports: the (edge switch, host) pairs, and the cables between switches.

    Edge switches are e1, e2, …, aggregation switches a1, a2, … and core switches c1, c2, …. Half of
    the ports of edge and aggregation switches lead downwards, and each pod has as many switches of
    each kind.
    """
    if ports % 2 or not 2 <= ports <= MAX_PORTS:
        raise UsageError(
            f"{where}: fat_tree.ports must be an even number from 2 to {MAX_PORTS} (got {ports})"
        )
    half = ports // 2
    indices = range(half)
    hosts, cables = [], []
    for edge in range(ports * half):
        pod, index = divmod(edge, half)
        hosts += [(f"e{edge + 1}", f"h{edge * half + host + 1}") for host in indices]
        cables += [(f"e{edge + 1}", f"a{pod * half + aggregation + 1}") for aggregation in indices]
        cables += [(f"a{edge + 1}", f"c{index * half + core + 1}") for core in indices]
    return tuple(hosts), tuple(cables)


def check(where: str, edges: Pairs, cables: Pairs) -> None:
    """Raise :class:`UsageError` for a cable that does not join two switches, or an unreachable
    node.
    """
    switches = {switch for switch, _ in edges} | {end for cable in cables for end in cable}
    hosts = {node for _, node in edges} - {switch for switch, _ in edges}
    for first, second in cables:
        if {first, second} & hosts or first == second:
            raise UsageError(
                f"{where}: cables: {first} and {second} are not two switches: a cable must join two"
            )
    reached = set(_before((*edges, *cables), edges[0][0])) if edges else set()
    if apart := sorted((switches | hosts) - reached):
        root = edges[0][0] if edges else "a host"
        raise UsageError(f"{where}: nothing joins {apart[0]} to {root}: add a cable")


def shortest(pairs: Pairs, source: str, destination: str) -> list[str]:
    """Return the nodes of the first shortest path from ``source`` to ``destination``, both
    included.
    """
    before = _before(pairs, source)
    path = [destination]
    while path[-1] != source:
        path.append(before[path[-1]])
    return path[::-1]


def next_nodes(pairs: Pairs, node: str, destination: str) -> list[str]:
    """Return the neighbours of ``node`` on its shortest paths to ``destination``."""
    left = len(shortest(pairs, node, destination)) - 1
    neighbours = [other for pair in pairs if node in pair for other in pair if other != node]
    return [other for other in neighbours if len(shortest(pairs, other, destination)) == left]


def layers(pairs: Pairs, hosts: Iterable[str]) -> list[list[str]]:
    """Return the hosts, the switches joined to them, those joined to these, and so on."""
    joined = [list(hosts)]
    rest = dict.fromkeys(node for pair in pairs for node in pair if node not in joined[0])
    while rest:
        below = set(joined[-1])
        above = {node for pair in pairs if below & {*pair} for node in pair}
        joined.append([node for node in rest if node in above])
        rest = dict.fromkeys(node for node in rest if node not in above)
    return joined


@functools.lru_cache(maxsize=4096)
def _before(pairs: Pairs, source: str) -> dict[str, str]:
    """Return the predecessor of each reachable node on its shortest path from ``source``."""
    neighbours: dict[str, list[str]] = {}
    for first, second in pairs:
        neighbours.setdefault(first, []).append(second)
        neighbours.setdefault(second, []).append(first)
    before, queue = {source: source}, deque([source])
    while queue:
        node = queue.popleft()
        for neighbour in neighbours.get(node, ()):
            if neighbour not in before:
                before[neighbour] = node
                queue.append(neighbour)
    return before
