"""A network as data: switches, what hangs on each, and the link between any two of them."""

from __future__ import annotations

import itertools
from typing import ClassVar

import msgspec

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.links import registry
from qjump_mn.model import changes, graph
from qjump_mn.model.units import Duration, Quantiles, Rate, Size, told_rate

FASTEST_BPS = 4 * 10**11

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
    there is no host; ``host_jitter`` has (per cent, ns). ``pfc`` is None where it is off, for what is not
    there has no part in a plan's identity."""

    model: str
    rate_bps: int
    buffer_bytes: int
    delay_ns: int
    mtu_bytes: int
    orphan: bool
    xoff_bytes: int
    xon_bytes: int
    pfc: bool | None = None
    host_ns: int = 0
    host_jitter: tuple[tuple[float, int], ...] = ()


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """:class:`FailureSpec` in plain numbers, ns after the start."""

    between: tuple[str, str]
    down_ns: int
    up_ns: int | None


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A network resolved: plain numbers, checked. ``edges`` are (switch, node below it) in the file's order;
    a ``fabric`` has none. ``cables`` are more links between switches, of a network that is no tree. ``link``
    is that of every host, ``trunk`` every one between switches; ``jittery``
    are the hosts that draw a part of their time, each with its (per cent, ns)."""

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
            host_ns=0,
        )
        return msgspec.structs.replace(self, link=plain, trunk=plain, jittery=())

    @property
    def model(self) -> str:
        """The model of all links."""
        return self.link.model

    def links(self) -> tuple[Link, ...]:
        """The link of each of ``edges``."""
        return tuple(self.link_of(below) for _, below in self.edges)

    def link_of(self, below: str) -> Link:
        """The link above a host or switch."""
        if below in self.switches:
            return self.trunk
        return msgspec.structs.replace(self.link, host_jitter=dict(self.jittery).get(below, ()))

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
        return f"{told_rate(self.link.rate_bps)}{between} links"

    @property
    def slowest_bps(self) -> int:
        """The rate of the slowest link, in bit/s."""
        return min(self.link.rate_bps, self.trunk.rate_bps)

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
        return {
            device: link for link, ends in zip(self.links(), self.ports(), strict=True) for _, device in ends
        }

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
        hosts = {source, destination}
        links = [self.link if hosts & set(ends) else self.trunk for ends in self.path(source, destination)]
        least = [link.delay_ns + link.host_ns for link in links]
        if points := dict(self.jittery).get(destination):
            least[-1] += points[0][1]
        return tuple((link.rate_bps, ns) for link, ns in zip(links, least, strict=True))


def resolve_network(name: str, spec: TopologySpec, link: LinkSpec) -> Network:
    """Check ``spec`` and make it plain; raise :class:`UsageError` naming the file's entry that is wrong.

    What only the emulation cannot do is for :func:`check_emulated`.
    """
    where = f"topology {name!r}"
    if not 1 <= spec.vlan <= 4094:
        raise UsageError(f"{where}: vlan {spec.vlan} is not a VLAN id: use 1 to 4094")
    if not 576 <= spec.mtu <= 9000:
        raise UsageError(f"{where}: mtu {spec.mtu} is out of range: use 576B to 9000B")
    edge, trunk = _links(link, int(spec.mtu))
    _check_link(where, "", edge)
    _check_link(where, "trunk_", trunk)
    seen: dict[str, str] = {}
    for switch, below in spec.switches.items():
        for node in below:
            if node in seen:
                raise UsageError(
                    f"{where}: {node!r} hangs below both {seen[node]!r} and {switch!r}: give it one place"
                )
            seen[node] = switch
            if not node.isalnum() or len(node) > 8:
                raise UsageError(f"{where}: {node!r} is no node name: use at most 8 letters and digits")
    for node in seen:
        above = [node]
        while above[-1] in seen:
            above.append(seen[above[-1]])
            if above.count(above[-1]) > 1:
                raise UsageError(
                    f"{where}: {' > '.join(reversed(above))} is a loop: the switches must form a tree"
                )
    if spec.fabric is not None and spec.switches:
        raise UsageError(f"{where}: it has both a fabric and switches: leave one of them out")
    edges = tuple((switch, node) for switch, below in spec.switches.items() for node in below)
    cables = tuple(spec.cables)
    if spec.fat_tree is not None:
        if spec.switches or spec.fabric is not None or cables:
            raise UsageError(f"{where}: it has a fat_tree and more: leave the one or the other out")
        edges, cables = graph.fat_tree(where, spec.fat_tree.ports)
    roots = [switch for switch in spec.switches if switch not in seen]
    if cables:
        graph.check(where, edges, cables)
    elif len(roots) != 1 and spec.fabric is None:
        raise UsageError(
            f"{where}: the switches form no single tree: {', '.join(roots) or 'none'} hang below nothing"
        )
    network = Network(
        topology=name,
        vlan=spec.vlan,
        mtu_bytes=int(spec.mtu),
        static_arp=spec.static_arp,
        edges=edges,
        link=edge,
        trunk=trunk,
        fabric=spec.fabric,
        cables=cables,
        failures=tuple(
            Failure(between=one.between, down_ns=int(one.down), up_ns=None if one.up is None else int(one.up))
            for one in spec.failures
        ),
    )
    joined = {frozenset(ends) for ends in (*edges, *cables)}
    for failure in spec.failures:
        if frozenset(failure.between) not in joined:
            raise UsageError(f"{where}: failures: there is no cable between {' and '.join(failure.between)}")
    if strangers := set(link.host_jitter_of) - set(network.hosts):
        raise UsageError(f"{where}: link.host_jitter_of: there is no host {min(strangers)!r}")
    drawn = ((host, link.host_jitter_of.get(host, link.host_jitter).points) for host in network.hosts)
    jittery = tuple((host, points) for host, points in drawn if points)
    network = msgspec.structs.replace(network, jittery=jittery)
    for points in {points for _, points in jittery}:
        _check_link(where, "", msgspec.structs.replace(edge, host_jitter=points))
    if spec.fabric is not None:
        _check_fabric(where, spec.fabric)
    if len(network.hosts) < 2:
        raise UsageError(f"{where}: {len(network.hosts)} hosts make no network: give at least two")
    _check_flow_control(where, network)
    return network


def check_emulated(network: Network) -> None:
    """Raise :class:`UsageError` for a network that only the simulator can have."""
    where = f"topology {network.topology!r}"
    if network.fabric is not None:
        raise UsageError(
            f"{where}: a fabric is for the simulator, the emulation has trees: use --backend simulator or "
            "another topology"
        )
    if network.cables or network.failures:
        raise UsageError(
            f"{where}: loops and failing cables are for the simulator, the emulation has trees: use "
            "--backend simulator or another topology"
        )
    fastest = Rate(max(network.link.rate_bps, network.trunk.rate_bps))
    if fastest > 10**10:
        raise UsageError(
            f"{where}: a link rate of {fastest} is out of range for the emulation: use at most 10Gbit"
        )
    if len(network.hosts) > 250:
        raise UsageError(
            f"{where}: {len(network.hosts)} hosts are too many for the emulation: use at most 250"
        )


def _links(spec: LinkSpec, mtu_bytes: int) -> tuple[Link, Link]:
    """A host's link, and one between switches."""
    edge = Link(
        model=spec.model,
        rate_bps=int(spec.rate),
        buffer_bytes=int(spec.buffer),
        delay_ns=int(spec.delay),
        mtu_bytes=mtu_bytes,
        orphan=spec.orphan,
        xoff_bytes=int(spec.xoff),
        xon_bytes=int(spec.xon),
        pfc=spec.pfc or None,
        host_ns=int(spec.host_time),
    )
    trunk = msgspec.structs.replace(
        edge,
        rate_bps=int(spec.trunk_rate or spec.rate),
        buffer_bytes=int(spec.trunk_buffer or spec.buffer),
        delay_ns=int(spec.delay if spec.trunk_delay is None else spec.trunk_delay),
        host_ns=0,
    )
    return edge, trunk


def _check_link(where: str, prefix: str, link: Link) -> None:
    """Raise :class:`UsageError` for a link that cannot be, naming its settings, which begin with
    ``prefix``."""
    full = theory.frame_bytes(link.mtu_bytes)
    if not 10**5 <= link.rate_bps <= FASTEST_BPS:
        wrong = f"link.{prefix}rate = {Rate(link.rate_bps)}"
        raise UsageError(f"{where}: {wrong} is out of range: use 100kbit to {Rate(FASTEST_BPS)}")
    if link.buffer_bytes < full:
        wrong = f"link.{prefix}buffer = {link.buffer_bytes}B"
        raise UsageError(f"{where}: {wrong} holds no full-size frame: use at least {full}B")
    if link.delay_ns > 10**9:
        wrong = f"link.{prefix}delay = {Duration(link.delay_ns)}"
        raise UsageError(f"{where}: {wrong} is out of range: use at most 1s")
    slowest = max([link.host_ns, *(ns for _, ns in link.host_jitter)])
    if slowest > 10**9:
        raise UsageError(f"{where}: a host that takes {Duration(slowest)} is out of range: use at most 1s")
    registry.of(link.model, f"{where}: link.model").check(where, link)


def _check_fabric(where: str, spec: FabricSpec) -> None:
    for field, most in (("racks", 65_536), ("hosts_per_rack", 65_536), ("spines", 1024)):
        if not 1 <= getattr(spec, field) <= most:
            raise UsageError(
                f"{where}: fabric.{field} = {getattr(spec, field)} is out of range: use 1 to {most}"
            )
    if spec.racks * spec.hosts_per_rack > 65_536:
        raise UsageError(
            f"{where}: fabric: {spec.racks * spec.hosts_per_rack} hosts are too many for the simulator: use "
            "at most 65536"
        )


def _check_flow_control(where: str, network: Network) -> None:
    """Raise :class:`UsageError` unless thresholds fit each other, and a port's buffer what all others may
    send before they are paused.

    Behind the threshold comes what is on its way while the pause is: the frame that reached it, one that
    keeps the pause waiting, one that its receiver has begun, one being switched, and what the link holds.
    """
    xoff, xon = network.link.xoff_bytes, network.link.xon_bytes
    if not xoff and not xon:
        if network.link.pfc:
            raise UsageError(f"{where}: pfc = true pauses levels by thresholds: give xoff and xon too")
        return
    full = theory.frame_bytes(network.mtu_bytes)
    if not full <= xon < xoff:
        raise UsageError(f"{where}: xoff = {xoff}B and xon = {xon}B do not fit: use {full}B <= xon < xoff")
    every = network.links()
    for switch in network.switches:
        links = [link for edge, link in zip(network.edges, every, strict=True) if switch in edge]
        links += [network.trunk for cable in network.cables if switch in cable]
        rooms = [4 * full + 2 * link.delay_ns * link.rate_bps // (8 * theory.NS_PER_S) for link in links]
        for link, room in zip(links, rooms, strict=True):
            others, behind = len(links) - 1, sum(rooms) - room
            if others * xoff + behind > link.buffer_bytes:
                raise UsageError(
                    f"{where}: xoff = {xoff}B loses frames: {others} ports of {switch} may send "
                    f"{others * xoff + behind}B to one whose buffer has "
                    f"{link.buffer_bytes}B: use at most {(link.buffer_bytes - behind) // others}B"
                )
