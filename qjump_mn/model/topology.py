"""The types of a topology file, and the network that it resolves to: switches, hosts and links."""

from __future__ import annotations

import itertools
import random
from typing import ClassVar

import msgspec

from qjump_mn.model import graph, words
from qjump_mn.model.link import Impairment
from qjump_mn.model.link import Link as Link
from qjump_mn.model.link import LinkChange as LinkChange
from qjump_mn.model.link import LinkSpec as LinkSpec
from qjump_mn.model.link import told_tolerance as told_tolerance
from qjump_mn.model.units import Duration, Quantiles, Size, told_rate, told_time

FASTEST_BPS = 4 * 10**11

TIME_SCALES = (1, 10, 100, 1000)
"""The factors by which times may be shorter than on the courses' links of 10 Mb/s: the smallest one
that the speed-up of the fastest link does not exceed.
"""
COURSES_BPS = 10**7

PREFIX_BITS = 24
"""The prefix length of the hosts' addresses, which are all in one subnet."""

SWITCHES = "switches"
"""The name of the machine's own namespace, which has all switches, in messages and names of files.
"""


class FabricSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A leaf-spine fabric: each rack's switch has a link to each spine. Hosts are h1, h2, …, rack
    by rack.
    """

    racks: int
    hosts_per_rack: int
    spines: int


class FailureSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The cable between two nodes fails at ``down`` after the start, until ``up`` or for ever."""

    between: tuple[str, str]
    down: Duration
    up: Duration | None = None


class FatTreeSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A fat-tree of switches with this number of ``ports``, and as many pods. Hosts are h1, h2, …,
    by edge switch.
    """

    ports: int


class TopologySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A topology file. ``switches`` lists the hosts and switches below each switch; together they
    form one tree, unless ``cables`` join further switches. ``fabric`` and ``fat_tree`` replace
    ``switches``.

    Only the simulator has ``cables``, ``fabric``, ``fat_tree``, ``failures``, and more than 250
    hosts. A host's own kernel has at most 10 Gb/s.
    """

    WORDS: ClassVar[words.Kinds] = words.OF_TOPOLOGIES

    description: str
    vlan: int = 2
    mtu: Size
    static_arp: bool = True
    switches: dict[str, list[str]] = {}
    fabric: FabricSpec | None = None
    fat_tree: FatTreeSpec | None = None
    cables: list[tuple[str, str]] = []
    failures: list[FailureSpec] = []
    link: LinkSpec


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """:class:`FailureSpec` in plain numbers, ns after the start."""

    between: tuple[str, str]
    down_ns: int
    up_ns: int | None


def _upwards(link: Link) -> Link:
    """Return a link as its lower end sends into it: without a trace."""
    if not link.impairment or not link.impairment.trace:
        return link
    impairment = msgspec.structs.replace(link.impairment, trace=())
    return msgspec.structs.replace(link, impairment=impairment)


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A resolved and checked network in plain numbers. ``edges`` are (switch, node below it) in the
    file's order; a ``fabric`` has none. ``cables`` are further links between switches, if the
    network is not a tree. ``link`` is the link of every host, ``trunk`` that between switches.
    ``jittery`` has the hosts with jitter, each with its (per cent, ns). ``faster_ppb`` is the
    excess of each link of ``joined`` over its rate, in billionths; empty before it is drawn.
    ``impaired`` has the links that lose, delay or reorder frames, by the node at the lower end.
    """

    NOT_RUN: ClassVar = ("topology",)

    topology: str
    vlan: int
    mtu_bytes: int
    static_arp: bool
    edges: tuple[tuple[str, str], ...]
    link: Link
    trunk: Link
    jittery: tuple[tuple[str, tuple[tuple[float, int], ...]], ...] = ()
    fabric: FabricSpec | None = None
    cables: tuple[tuple[str, str], ...] = ()
    failures: tuple[Failure, ...] = ()
    faster_ppb: tuple[int, ...] = ()
    impaired: tuple[tuple[str, Impairment], ...] = ()

    def drawn(self, seed: int) -> Network:
        """Return the network with the link rates of a trial with this seed. In a fabric all are
        equal.
        """
        most_ppb = self.link.tolerance_ppb
        if not most_ppb or self.fabric is not None:
            return self
        generator = random.Random(f"links {seed}")
        faster_ppb = tuple(generator.randint(0, most_ppb) for _ in self.joined)
        return msgspec.structs.replace(self, faster_ppb=faster_ppb)

    def skeleton(self) -> Network:
        """Return the part of the network that trials must share to use the same machine state:
        everything except what a trial sets when it shapes the links.
        """
        plain = msgspec.structs.replace(
            self.link,
            rate_bps=10**7,
            buffer_bytes=10**5,
            delay_ns=0,
            orphan=True,
            xoff_bytes=0,
            xon_bytes=0,
            pfc=None,
            tolerance_ppb=None,
            host_ns=0,
            switch_ns=None,
        )
        return msgspec.structs.replace(
            self, link=plain, trunk=plain, jittery=(), faster_ppb=(), impaired=()
        )

    @property
    def model(self) -> str:
        """The model of all links."""
        return self.link.model

    @property
    def joined(self) -> tuple[tuple[str, str], ...]:
        """The pairs of nodes that links join: ``edges``, then ``cables``."""
        return (*self.edges, *self.cables)

    def links(self) -> tuple[Link, ...]:
        """Return the link of each pair in ``joined``."""
        switches, jittery = set(self.switches), dict(self.jittery)
        nominal = [
            *(
                self.trunk
                if below in switches
                else msgspec.structs.replace(self.link, host_jitter=jittery.get(below, ()))
                for _, below in self.edges
            ),
            *(self.trunk for _ in self.cables),
        ]
        if impaired := dict(self.impaired):
            below = [node for _, node in self.edges]
            nominal[: len(below)] = [
                msgspec.structs.replace(link, impairment=impaired.get(node))
                for node, link in zip(below, nominal, strict=False)
            ]
        if not self.faster_ppb:
            return tuple(nominal)
        return tuple(
            msgspec.structs.replace(link, rate_bps=link.rate_bps + link.rate_bps * ppb // 10**9)
            for link, ppb in zip(nominal, self.faster_ppb, strict=True)
        )

    @property
    def multipath(self) -> bool:
        """Whether there may be several paths between two hosts."""
        return self.fabric is not None or bool(self.cables)

    def wiring(self) -> tuple[tuple[tuple[str, str], Link], ...]:
        """Return both ends, the upper one first, and the link of every link: those of ``joined``,
        or of the fabric.
        """
        if self.fabric is None:
            return tuple(zip(self.joined, self.links(), strict=True))
        racks, size = self.switches[: self.fabric.racks], self.fabric.hosts_per_rack
        edges = ((racks[number // size], host) for number, host in enumerate(self.hosts))
        trunks = itertools.product(self.switches[self.fabric.racks :], racks)
        return (
            *((ends, self.link) for ends in edges),
            *((ends, self.trunk) for ends in trunks),
        )

    @property
    def draws_times(self) -> bool:
        """Whether hosts or links take times that are drawn, or follow a trace."""
        return bool(self.jittery) or any(
            one.jitter or one.reorder_ppb or one.trace for _, one in self.impaired
        )

    @property
    def told_hosts(self) -> str:
        """The time that hosts take, in words; empty if there is none."""
        if not self.link.host_ns and not self.jittery:
            return ""
        drawn: dict[tuple[tuple[float, int], ...], list[str]] = {}
        for host, points in self.jittery:
            drawn.setdefault(points, []).append(host)
        times = [f"{told_time(self.link.host_ns)} in and out"] if self.link.host_ns else []
        more = " more" if times else ""
        for points, names in drawn.items():
            where = "" if len(names) == len(self.hosts) else f" at {', '.join(names)}"
            times.append(f"{Quantiles(points).told}{more} in{where}")
        return f"hosts take {', and '.join(times)}"

    @property
    def told_switches(self) -> str:
        """The time that switches take, in words; empty if there is none."""
        if not self.link.switch_ns:
            return ""
        return f"switches take {told_time(self.link.switch_ns)} a frame"

    @property
    def told_impairments(self) -> str:
        """What links lose, delay and reorder, in words; empty if nothing."""
        alike: dict[Impairment, list[str]] = {}
        for node, impairment in self.impaired:
            alike.setdefault(impairment, []).append(node)
        return "; ".join(
            f"{'links' if len(names) == len(self.edges) else 'links of ' + ', '.join(names)} "
            f"{impairment.told}"
            for impairment, names in alike.items()
        )

    @property
    def told_links(self) -> str:
        """The rates of links in words."""
        between = (
            ""
            if self.trunk.rate_bps == self.link.rate_bps
            else f" ({told_rate(self.trunk.rate_bps)} between switches)"
        )
        tolerance = "" if self.fabric is not None else told_tolerance(self.link)
        return f"{told_rate(self.link.rate_bps)}{between} links{tolerance}"

    @property
    def slowest_bps(self) -> int:
        """The rate of the slowest link, in bit/s."""
        return min(self.link.rate_bps, self.trunk.rate_bps)

    @property
    def time_scale(self) -> int:
        """The factor by which times are shorter than on links of 10 Mb/s."""
        fastest_bps = max(self.link.rate_bps, self.trunk.rate_bps)
        return next(
            (scale for scale in TIME_SCALES if scale * COURSES_BPS >= fastest_bps), TIME_SCALES[-1]
        )

    @property
    def switches(self) -> tuple[str, ...]:
        """Every switch, the root first; in a fabric the racks' switches, then the spines."""
        if self.fabric is not None:
            return (
                *(f"rack{n + 1}" for n in range(self.fabric.racks)),
                *(f"spine{n + 1}" for n in range(self.fabric.spines)),
            )
        above = (switch for switch, _ in self.edges)
        return tuple(dict.fromkeys(itertools.chain(above, *self.cables)))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host, in the file's order."""
        if self.fabric is not None:
            return tuple(f"h{n + 1}" for n in range(self.fabric.racks * self.fabric.hosts_per_rack))
        switches = set(self.switches)
        return tuple(node for _, node in self.edges if node not in switches)

    @property
    def addresses(self) -> dict[str, str]:
        """Every host's IPv4 address."""
        return {host: f"10.0.0.{index + 1}" for index, host in enumerate(self.hosts)}

    def ports(self) -> tuple[tuple[tuple[str, str], tuple[str, str]], ...]:
        """Return both ends of every link as (node, interface), the upper one first. Names are
        Mininet's: a switch's ports are numbered from 1 in the order of its links.
        """
        hosts = set(self.hosts)
        count = dict.fromkeys(self.switches, 0)

        def port(node: str) -> tuple[str, str]:
            if node in hosts:
                return node, f"{node}-eth0"
            count[node] += 1
            return node, f"{node}-eth{count[node]}"

        return tuple((port(above), port(below)) for (above, below), _ in self.wiring())

    def interfaces(self) -> dict[tuple[str, str], str]:
        """Return the interface by which a node sends to its neighbour, by (node, neighbour)."""
        return {
            (source, destination): device
            for above, below in self.ports()
            for (source, device), (destination, _) in ((below, above), (above, below))
        }

    def ways(self) -> dict[str, tuple[str, str]]:
        """Return (node, neighbour) of each interface by which the node sends to the neighbour."""
        return {device: way for way, device in self.interfaces().items()}

    def switch_ports(self) -> list[str]:
        """Return the interface of every switch port, in the order of the links."""
        switches = set(self.switches)
        return [device for pair in self.ports() for node, device in pair if node in switches]

    def vlan_device(self, host: str) -> str:
        """Return the VLAN device of a host, which has the host's address."""
        return f"{host}-eth0.{self.vlan}"

    def by_device(self) -> dict[str, Link]:
        """Return the link of each interface."""
        return {
            device: end
            for (_, link), ends in zip(self.wiring(), self.ports(), strict=True)
            for (_, device), end in zip(ends, (link, _upwards(link)), strict=True)
        }

    def path(self, source: str, destination: str) -> tuple[tuple[str, str], ...]:
        """Return the directed links (from, to) that a frame crosses from host ``source`` to host
        ``destination``: in a fabric through its first spine, in a graph on the first shortest path
        when all cables work.
        """
        if self.fabric is not None:
            racks = [
                f"rack{(int(host[1:]) - 1) // self.fabric.hosts_per_rack + 1}"
                for host in (source, destination)
            ]
            between = racks[:1] if racks[0] == racks[1] else [racks[0], "spine1", racks[1]]
            return tuple(itertools.pairwise([source, *between, destination]))
        if self.cables:
            every = (*self.edges, *self.cables)
            return tuple(itertools.pairwise(graph.shortest(every, source, destination)))
        parent = {node: switch for switch, node in self.edges}

        def ancestors(node: str) -> list[str]:
            chain = [node]
            while chain[-1] in parent:
                chain.append(parent[chain[-1]])
            return chain

        up, down = ancestors(source), ancestors(destination)
        top = next(node for node in up if node in down)
        nodes = up[: up.index(top) + 1] + list(reversed(down[: down.index(top)]))
        return tuple(itertools.pairwise(nodes))

    def speeds(self, source: str, destination: str) -> tuple[tuple[int, int], ...]:
        """Return rate in bit/s and minimum delay in ns of each link from host ``source`` to host
        ``destination``, including the time that these two hosts take."""
        hosts, path = {source, destination}, self.path(source, destination)
        if self.faster_ppb:
            joined = {
                frozenset(ends): link for ends, link in zip(self.joined, self.links(), strict=True)
            }
            links = [joined[frozenset(ends)] for ends in path]
        else:
            links = [self.link if hosts & set(ends) else self.trunk for ends in path]
        least = [link.arrives_ns(from_host=not hop) for hop, link in enumerate(links)]
        if points := dict(self.jittery).get(destination):
            least[-1] += points[0][1]
        return tuple((link.rate_bps, ns) for link, ns in zip(links, least, strict=True))
