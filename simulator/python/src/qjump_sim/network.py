"""Networks: leaf-spine, trees, and graphs whose cables may fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qjump_sim import _native


@dataclass(frozen=True)
class Cable:
    """A cable, the same in both directions.

    `rate` in bit/s, such that a byte takes whole picoseconds within 0.1 %. `delay` in ps, at most 1,000 s, from the last bit's departure to its arrival,
    with what the node at the end takes to look at the packet; all of a way through the network there and back below 35 s.

    >>> cable = Cable(rate=10 * 10**9, delay=us(2.7))
    """

    rate: int
    delay: int


@dataclass(frozen=True)
class Quantiles:
    """Host jitter: extra time for each incoming packet, drawn from a distribution.

    `points` of per cent, from 0 to 100, and ps, at most 1,000 s: so many of the draws do not exceed it. Between two of them on a straight line.
    Packets of one flow stay in order, and may overtake others: TCP's are told apart by connection, datagrams by the pair of hosts.

    >>> fabric = replace(FIG9, jitter=[(4, Quantiles([(0, us(25)), (50, us(85)), (100, us(126))]))])
    """

    points: Sequence[tuple[float, int]]


@dataclass(frozen=True)
class LeafSpine:
    """`racks` of `hosts_per_rack`, each rack's switch joined to each of the `spines`. Host i is in rack i // hosts_per_rack.

    `edge` is the cable of a host, `uplink` the one between a rack's switch and a spine. `jitter`: hosts by number, with what they draw. At most
    16,777,216 hosts.

    >>> edge, uplink = Cable(10 * 10**9, us(2.7)), Cable(40 * 10**9, ns(200))
    >>> fabric = LeafSpine(racks=2, hosts_per_rack=8, spines=2, edge=edge, uplink=uplink)
    """

    racks: int
    hosts_per_rack: int
    spines: int
    edge: Cable
    uplink: Cable
    jitter: Sequence[tuple[int, Quantiles]] = ()


@dataclass(frozen=True)
class Loss:
    """Random loss on the cable between two nodes, or on all cables between two switches, in both
    directions: each packet alone is lost with probability `share`, below 1 and rounded to
    millionths. A lost packet has crossed the queue and taken its time on the link. It counts as
    `failed`.

    >>> cable = Cable(10**9, us(1))
    >>> tree = Tree(["s"], ["a", "b"], [("a", "s", cable), ("s", "b", cable)], losses=[Loss("a", "s", 0.001)])
    """

    one: str
    other: str
    share: float


@dataclass(frozen=True)
class Tree:
    """Named switches and hosts, in any order; `cables` join two of them by name. A host has one
    cable, and there are no loops.

    `jitter`: hosts by name, with what they draw.

    >>> cable = Cable(10**9, us(1))
    >>> Tree(["s"], ["a", "b"], [("a", "s", cable), ("s", "b", cable)]).numbers()
    {'a': 0, 'b': 1}
    """

    switches: Sequence[str]
    hosts: Sequence[str]
    cables: Sequence[tuple[str, str, Cable]]
    jitter: Sequence[tuple[str, Quantiles]] = ()
    losses: Sequence[Loss] = ()

    def numbers(self) -> dict[str, int]:
        """The number of each host by its name: 0, 1, ... in the order of the names. Raises
        ValueError if this is not a tree."""
        return _native.host_numbers(self)


@dataclass(frozen=True)
class Failure:
    """A failure of the cable between two nodes, or of all cables between two switches, from `down`
    to `up` (ps; None: for ever). Packets on the cable or waiting for it are lost; switches know
    at once.

    >>> failure = Failure("e0-0", "a0-1", down=ms(2), up=ms(5))
    """

    one: str
    other: str
    down: int
    up: int | None = None


@dataclass(frozen=True)
class Graph:
    """Like a `Tree`, but with loops: packets take one of the shortest working paths, by the number
    of cables. Every host must reach every other before the first of the `failures` and after the
    last.

    >>> cable = Cable(10 * 10**9, us(1))
    >>> graph = Graph.fat_tree(4, edge=cable, trunk=cable)
    >>> len(graph.hosts), len(graph.cables)
    (16, 48)
    """

    switches: Sequence[str]
    hosts: Sequence[str]
    cables: Sequence[tuple[str, str, Cable]]
    jitter: Sequence[tuple[str, Quantiles]] = ()
    failures: Sequence[Failure] = ()
    losses: Sequence[Loss] = ()

    @classmethod
    def fat_tree(cls, k: int, edge: Cable, trunk: Cable) -> Graph:
        """A k-ary fat-tree (Al-Fares, Loukissas and Vahdat, SIGCOMM'08) for an even k from 2 to
        128. It has k**3 / 4 hosts `h00000`, ... (`h000000` beyond 100,000), k / 2 at each edge
        switch `e0-0` (pod and place), aggregation switches `a0-0` and core switches `c00000`.
        `edge` is a host's cable, `trunk` one between switches. Raises ValueError for another k."""
        return cls(*_native.fat_tree(k, edge, trunk))

    def numbers(self) -> dict[str, int]:
        """The number of each host, as in a `Tree`. Raises ValueError if this is not such a graph."""
        return _native.host_numbers(self)


Topology = LeafSpine | Tree | Graph
