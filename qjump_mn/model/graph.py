"""Networks that are no trees, as pairs of names: the fat-tree, what cannot be, and shortest ways."""

from __future__ import annotations

import functools
from collections import deque

from qjump_mn.errors import UsageError

Pairs = tuple[tuple[str, str], ...]

MOST_PORTS = 32
"""Of a fat-tree's switches: it has 8,192 hosts."""


def fat_tree(where: str, ports: int) -> tuple[Pairs, Pairs]:
    """A fat-tree (Al-Fares, Loukissas and Vahdat, SIGCOMM'08, section 2.2) of switches with so many ports:
    its hosts below edge switches e1, e2, …, and what joins these to a1, a2, …, and those to the core c1, …
    Half of the ports of all but the core lead downwards, and each pod has so many of both kinds."""
    if ports % 2 or not 2 <= ports <= MOST_PORTS:
        raise UsageError(f"{where}: fat_tree.ports = {ports} is no even number from 2 to {MOST_PORTS}")
    half = ports // 2
    places = range(half)
    hosts, cables = [], []
    for edge in range(ports * half):
        pod, place = divmod(edge, half)
        hosts += [(f"e{edge + 1}", f"h{edge * half + host + 1}") for host in places]
        cables += [(f"e{edge + 1}", f"a{pod * half + other + 1}") for other in places]
        cables += [(f"a{edge + 1}", f"c{place * half + core + 1}") for core in places]
    return tuple(hosts), tuple(cables)


def check(where: str, edges: Pairs, cables: Pairs) -> None:
    """Raise :class:`UsageError` for a cable to a host, or parts that nothing joins."""
    switches = {switch for switch, _ in edges} | {end for cable in cables for end in cable}
    hosts = {node for _, node in edges} - {switch for switch, _ in edges}
    for one, other in cables:
        if {one, other} & hosts or one == other:
            raise UsageError(f"{where}: cables: {one} and {other} are not two switches")
    reached = set(_before((*edges, *cables), edges[0][0])) if edges else set()
    if apart := sorted((switches | hosts) - reached):
        raise UsageError(f"{where}: nothing joins {apart[0]} to {edges[0][0] if edges else 'a host'}")


def shortest(pairs: Pairs, source: str, destination: str) -> list[str]:
    """The nodes of the first of the shortest ways, ends included."""
    before = _before(pairs, source)
    way = [destination]
    while way[-1] != source:
        way.append(before[way[-1]])
    return way[::-1]


@functools.lru_cache(maxsize=4096)
def _before(pairs: Pairs, source: str) -> dict[str, str]:
    """For each node that is reached the one before it on the way from ``source``."""
    neighbours: dict[str, list[str]] = {}
    for one, other in pairs:
        neighbours.setdefault(one, []).append(other)
        neighbours.setdefault(other, []).append(one)
    before, following = {source: source}, deque([source])
    while following:
        at = following.popleft()
        for other in neighbours.get(at, ()):
            if other not in before:
                before[other] = at
                following.append(other)
    return before
