"""A network as data: switches, what hangs on each, and the link between any two of them."""

from __future__ import annotations

import itertools
import random
from typing import ClassVar

import msgspec

from qjump_mn.model import changes, graph, words
from qjump_mn.model.units import Duration, Quantiles, Rate, Size, Tolerance, told_rate

FASTEST_BPS = 4 * 10**11

TIME_SCALES = (1, 10, 100, 1000)
"""How many times shorter times are than on the courses' links of 10 Mb/s: the least that the fastest link is
not faster by."""
COURSES_BPS = 10**7

PREFIX_BITS = 24
"""Of the hosts' addresses, which are all in one subnet."""

SWITCHES = "switches"
"""Name of the machine's own namespace, where all switches are, in messages and in the names of the files of
what was built."""


class LinkSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How every link of the network behaves; ``buffer`` is in bytes per level and port, ``delay`` is
    propagation, one way.

    ``trunk_rate``, ``trunk_buffer`` and ``trunk_delay`` are of the links between switches, by default those
    of the hosts'.

    ``orphan``: a frame that has left its sender is no longer charged to the socket that sent it, as with any
    real network card; off shows what HTB and TBF do. ``xoff`` and ``xon`` are of Ethernet flow control
    (802.3x): a switch port pauses its link partner when so many bytes that came in through it wait in the
    switch, and resumes it when as few are left; 0 is off. ``pfc`` counts and pauses each level by itself
    (802.1Qbb). All are for model wire only.

    ``tolerance`` is by how much a link may be faster than its rate, as no two oscillators are equal: what
    each link has is drawn evenly by the trial's seed, and none is slower. Two links of Ethernet may differ by
    200 ppm (IEEE 802.3: 100 ppm each). It is for model wire, and 0 unless an experiment says it.

    ``host_time`` is what a host takes for each frame between its program and its link, each way, and
    ``host_jitter`` what it takes more for what comes in, drawn for each frame with the trial's seed;
    ``host_jitter_of`` has those hosts that draw from something else, or, as the only ones, draw at all.
    Frames of one flow stay in order. On the way out nothing is drawn: it would come behind the host's
    limiter, and spoil what that spaces. They are for model wire, and are 0 unless an experiment says what
    hosts it means: those of the emulation take next to nothing.
    """

    model: str
    rate: Rate
    buffer: Size
    delay: Duration
    trunk_rate: Rate | None = None
    trunk_buffer: Size | None = None
    trunk_delay: Duration | None = None
    orphan: bool = True
    xoff: Size = Size(0)
    xon: Size = Size(0)
    pfc: bool = False
    tolerance: Tolerance = Tolerance(0)
    host_time: Duration = Duration(0)
    host_jitter: Quantiles = Quantiles()
    host_jitter_of: dict[str, Quantiles] = {}


class LinkChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one arm's links do otherwise."""

    model: str | None = None
    rate: Rate | None = None
    buffer: Size | None = None
    delay: Duration | None = None
    trunk_rate: Rate | None = None
    trunk_buffer: Size | None = None
    trunk_delay: Duration | None = None
    orphan: bool | None = None
    xoff: Size | None = None
    xon: Size | None = None
    pfc: bool | None = None
    tolerance: Tolerance | None = None
    host_time: Duration | None = None
    host_jitter: Quantiles | None = None
    host_jitter_of: dict[str, Quantiles] | None = None

    def over(self, link: LinkSpec) -> LinkSpec:
        """``link`` with what is given here."""
        return changes.over(self, link)


class FabricSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A leaf-spine fabric: every rack's switch has a link to every spine. Hosts are h1, h2, … rack by
    rack."""

    racks: int
    hosts_per_rack: int
    spines: int


class FailureSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The cable between two nodes fails, from a time after the start on, until another or for ever."""

    between: tuple[str, str]
    down: Duration
    up: Duration | None = None


class FatTreeSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A fat-tree of switches with so many ``ports``: as many pods, hosts h1, h2, … below their edge
    switches."""

    ports: int


class TopologySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A topology file. A switch's list names the hosts and switches below it; together they form one tree.
    With ``cables`` between switches it need not be a tree. With ``fabric`` or ``fat_tree`` there are no such
    lists. These are for the simulator, as are ``failures``, more than 250 hosts and more than 10 Gb/s."""

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


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A link in plain numbers: its ``model``, rate, what each level of a port before it holds, and its
    propagation, one way. The others are as in :class:`LinkSpec`, 0 where a link is never paused, and where
    there is no host; ``host_jitter`` has (per cent, ns). ``pfc`` and ``tolerance_ppb`` are None where they
    are off, for what is not there has no part in a plan's identity."""

    model: str
    rate_bps: int
    buffer_bytes: int
    delay_ns: int
    mtu_bytes: int
    orphan: bool
    xoff_bytes: int
    xon_bytes: int
    pfc: bool | None = None
    tolerance_ppb: int | None = None
    host_ns: int = 0
    host_jitter: tuple[tuple[float, int], ...] = ()


def told_tolerance(link: Link) -> str:
    """Behind a link's rate, how much faster it may be, in words; empty for an exact one."""
    return f" (up to {link.tolerance_ppb / 1e3:g} ppm more)" if link.tolerance_ppb else ""


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """:class:`FailureSpec` in plain numbers, ns after the start."""

    between: tuple[str, str]
    down_ns: int
    up_ns: int | None


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A network resolved: plain numbers, checked. ``edges`` are (switch, node below it) in the file's order;
    a ``fabric`` has none. ``cables`` are more links between switches, of a network that is no tree. ``link``
    is that of every host, ``trunk`` every one between switches; ``jittery`` are the hosts that draw a part of
    their time, each with its (per cent, ns). ``faster_ppb`` is by how much each of ``joined`` is faster than
    its rate, in billionths; empty before that is drawn."""

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

    def drawn(self, seed: int) -> Network:
        """The network with the rates that its links have in a trial of this seed. A fabric's are equal."""
        most_ppb = self.link.tolerance_ppb
        if not most_ppb or self.fabric is not None:
            return self
        chance = random.Random(f"links {seed}")
        faster_ppb = tuple(chance.randint(0, most_ppb) for _ in self.joined)
        return msgspec.structs.replace(self, faster_ppb=faster_ppb)

    def skeleton(self) -> Network:
        """What must be the same for one machine state to serve: all but what a trial sets when it shapes the
        links."""
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
        )
        return msgspec.structs.replace(self, link=plain, trunk=plain, jittery=(), faster_ppb=())

    @property
    def model(self) -> str:
        """The model of all links."""
        return self.link.model

    @property
    def joined(self) -> tuple[tuple[str, str], ...]:
        """What links join: ``edges``, then ``cables``."""
        return (*self.edges, *self.cables)

    def links(self) -> tuple[Link, ...]:
        """The link of each of ``joined``."""
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
        if not self.faster_ppb:
            return tuple(nominal)
        return tuple(
            msgspec.structs.replace(link, rate_bps=link.rate_bps + link.rate_bps * ppb // 10**9)
            for link, ppb in zip(nominal, self.faster_ppb, strict=True)
        )

    @property
    def told_hosts(self) -> str:
        """What hosts take, in words; empty where that is nothing."""
        if not self.link.host_ns and not self.jittery:
            return ""
        drawn: dict[tuple[tuple[float, int], ...], list[str]] = {}
        for host, points in self.jittery:
            drawn.setdefault(points, []).append(host)
        more = (
            f", and in{'' if len(at) == len(self.hosts) else ' at ' + ', '.join(at)} {Quantiles(points)} more"
            for points, at in drawn.items()
        )
        return f"hosts take {Duration(self.link.host_ns)} in and out{''.join(more)}"

    @property
    def told_links(self) -> str:
        """The links' rates in words."""
        between = (
            ""
            if self.trunk.rate_bps == self.link.rate_bps
            else f" ({told_rate(self.trunk.rate_bps)} between switches)"
        )
        off = "" if self.fabric is not None else told_tolerance(self.link)
        return f"{told_rate(self.link.rate_bps)}{between} links{off}"

    @property
    def slowest_bps(self) -> int:
        """The rate of the slowest link, in bit/s."""
        return min(self.link.rate_bps, self.trunk.rate_bps)

    @property
    def time_scale(self) -> int:
        """How many times shorter times are than on links of 10 Mb/s."""
        fastest_bps = max(self.link.rate_bps, self.trunk.rate_bps)
        return next((one for one in TIME_SCALES if one * COURSES_BPS >= fastest_bps), TIME_SCALES[-1])

    @property
    def switches(self) -> tuple[str, ...]:
        """Every switch, the root first; of a fabric the racks', then the spines."""
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
        """Both ends of every link, the upper one first, as (node, interface) and with Mininet's names: a
        switch's ports are numbered from 1 in the order of its links."""
        hosts = set(self.hosts)
        count = dict.fromkeys(self.switches, 0)

        def port(node: str) -> tuple[str, str]:
            if node in hosts:
                return node, f"{node}-eth0"
            count[node] += 1
            return node, f"{node}-eth{count[node]}"

        return tuple((port(above), port(below)) for above, below in self.edges)

    def interfaces(self) -> dict[tuple[str, str], str]:
        """The interface by which a node sends to its neighbour, by (node, neighbour)."""
        return {
            (source, destination): device
            for above, below in self.ports()
            for (source, device), (destination, _) in ((below, above), (above, below))
        }

    def switch_ports(self) -> list[str]:
        """The interface of every switch port, in the order of the links."""
        switches = set(self.switches)
        return [device for pair in self.ports() for node, device in pair if node in switches]

    def vlan_device(self, host: str) -> str:
        """The VLAN device of a host, which has its address."""
        return f"{host}-eth0.{self.vlan}"

    def by_device(self) -> dict[str, Link]:
        """The link of the interface at each of its ends."""
        links = self.links()[: len(self.edges)]
        return {device: link for link, ends in zip(links, self.ports(), strict=True) for _, device in ends}

    def path(self, source: str, destination: str) -> tuple[tuple[str, str], ...]:
        """The directed links (from, to) that a frame crosses from host ``source`` to host ``destination``; in
        a fabric by its first spine, in a graph by the first of the shortest ways when all cables
        work."""
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
        """Rate in bit/s and least delay in ns of each link from host ``source`` to host ``destination``, with
        what these two take."""
        hosts, path = {source, destination}, self.path(source, destination)
        if self.faster_ppb:
            joined = {frozenset(ends): link for ends, link in zip(self.joined, self.links(), strict=True)}
            links = [joined[frozenset(ends)] for ends in path]
        else:
            links = [self.link if hosts & set(ends) else self.trunk for ends in path]
        least = [link.delay_ns + link.host_ns for link in links]
        if points := dict(self.jittery).get(destination):
            least[-1] += points[0][1]
        return tuple((link.rate_bps, ns) for link, ns in zip(links, least, strict=True))
