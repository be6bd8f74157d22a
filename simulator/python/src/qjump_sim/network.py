"""Networks: leaf-spine, or any tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qjump_sim import _native


@dataclass(frozen=True)
class Cable:
    """A cable: the same in both directions.

    `rate` in bit/s, such that a byte takes whole picoseconds within 0.1 %. `delay` in ps, at most 1,000 s, from the last bit's departure to its arrival,
    with what the node at the end takes to look at the packet.
    """

    rate: int
    delay: int


@dataclass(frozen=True)
class LeafSpine:
    """`racks` of `hosts_per_rack`, each rack's switch joined to each of the `spines`. Host i is in rack i // hosts_per_rack.

    `edge` is the cable of a host, `uplink` the one between a rack's switch and a spine. At most 65,536 hosts.
    """

    racks: int
    hosts_per_rack: int
    spines: int
    edge: Cable
    uplink: Cable


@dataclass(frozen=True)
class Tree:
    """Switches and hosts with names, in any order; `cables` join two of them by name. A host has one cable, and there is no loop."""

    switches: Sequence[str]
    hosts: Sequence[str]
    cables: Sequence[tuple[str, str, Cable]]

    def numbers(self) -> dict[str, int]:
        """The number of each host, by its name: 0, 1, ... in the order of the names. Raises ValueError for what is no tree."""
        return _native.host_numbers(self)


Topology = LeafSpine | Tree
