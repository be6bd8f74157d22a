"""A network as data: switches, what hangs on each, and the link between any two of them."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Literal

import msgspec

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model.units import Duration, Rate, Size

LinkModel = Literal["wire", "htb", "tbf"]

FASTEST_BPS = 4 * 10**11

PREFIX_BITS = 24
"""Of the hosts' addresses, which are all in one subnet."""

SWITCHES = "switches"
"""Name of the machine's own namespace, where all switches are, in messages and in the names of the files of what was built."""


class LinkSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How every link of the network behaves; ``buffer`` is in bytes per level and port, ``delay`` is propagation, one way.

    ``orphan``: a frame that has left its sender is no longer charged to the socket that sent it, as with any real network card; off
    shows what HTB and TBF do. ``xoff`` and ``xon`` are of Ethernet flow control (802.3x): a switch port pauses its link partner when so many
    bytes that came in through it wait in the switch, and resumes it when as few are left; 0 is off. Both are for model wire only.
    """

    model: LinkModel
    rate: Rate
    buffer: Size
    delay: Duration
    orphan: bool = True
    xoff: Size = Size(0)
    xon: Size = Size(0)


class LinkChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one arm's links do otherwise."""

    model: LinkModel | None = None
    rate: Rate | None = None
    buffer: Size | None = None
    delay: Duration | None = None
    orphan: bool | None = None
    xoff: Size | None = None
    xon: Size | None = None

    def over(self, link: LinkSpec) -> LinkSpec:
        """``link`` with what is given here."""
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(link, **given)


class FabricSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A leaf-spine fabric: every rack's switch has a link to every spine. Hosts are h1, h2, … rack by rack."""

    racks: int
    hosts_per_rack: int
    spines: int
    uplink_rate: Rate
    uplink_delay: Duration


class TopologySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A topology file. A switch's list names the hosts and switches below it; together they form one tree. With ``fabric`` there are no such
    lists: it is for the simulator, as are more than 250 hosts and more than 10 Gb/s."""

    description: str
    vlan: int = 2
    mtu: Size
    static_arp: bool = True
    switches: dict[str, list[str]] = {}
    fabric: FabricSpec | None = None
    link: LinkSpec


class Fabric(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A leaf-spine fabric in plain numbers; the links of hosts are the network's."""

    racks: int
    hosts_per_rack: int
    spines: int
    uplink_rate_bps: int
    uplink_delay_ns: int


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A network resolved: plain numbers, checked. ``edges`` are (switch, node below it) in the file's order; a ``fabric`` has none."""

    topology: str
    vlan: int
    mtu_bytes: int
    static_arp: bool
    edges: tuple[tuple[str, str], ...]
    model: LinkModel
    rate_bps: int
    buffer_bytes: int
    delay_ns: int
    orphan: bool
    xoff_bytes: int
    xon_bytes: int
    fabric: Fabric | None = None

    def skeleton(self) -> Network:
        """What must be the same for one machine state to serve: all but the numbers that a trial sets when it shapes the links."""
        return msgspec.structs.replace(self, rate_bps=10**7, buffer_bytes=10**5, delay_ns=0, orphan=True, xoff_bytes=0, xon_bytes=0)

    @property
    def switches(self) -> tuple[str, ...]:
        """Every switch, the root first; of a fabric the racks', then the spines."""
        if self.fabric is not None:
            return (*(f"rack{n + 1}" for n in range(self.fabric.racks)), *(f"spine{n + 1}" for n in range(self.fabric.spines)))
        return tuple(dict.fromkeys(switch for switch, _ in self.edges))

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
        """Both ends of every link, the upper one first, as (node, interface) and with Mininet's names: a switch's ports are numbered
        from 1 in the order of its links."""
        hosts = set(self.hosts)
        count = dict.fromkeys(self.switches, 0)

        def port(node: str) -> tuple[str, str]:
            if node in hosts:
                return node, f"{node}-eth0"
            count[node] += 1
            return node, f"{node}-eth{count[node]}"

        return tuple((port(above), port(below)) for above, below in self.edges)

    def path(self, source: str, destination: str) -> tuple[tuple[str, str], ...]:
        """The directed links (from, to) that a frame crosses from host ``source`` to host ``destination``; in a fabric by its first spine."""
        if self.fabric is not None:
            racks = [f"rack{(int(host[1:]) - 1) // self.fabric.hosts_per_rack + 1}" for host in (source, destination)]
            between = racks[:1] if racks[0] == racks[1] else [racks[0], "spine1", racks[1]]
            return tuple(itertools.pairwise([source, *between, destination]))
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
        """Rate in bit/s and delay in ns of each link from host ``source`` to host ``destination``."""
        edge, hosts = (self.rate_bps, self.delay_ns), {source, destination}
        between = edge if self.fabric is None else (self.fabric.uplink_rate_bps, self.fabric.uplink_delay_ns)
        return tuple(edge if hosts & set(link) else between for link in self.path(source, destination))


def resolve_network(name: str, spec: TopologySpec, link: LinkSpec) -> Network:
    """Check ``spec`` and make it plain; raise :class:`UsageError` naming the file's entry that is wrong.

    What only the emulation cannot do is for :func:`check_emulated`.
    """
    where = f"topology {name!r}"
    if not 1 <= spec.vlan <= 4094:
        raise UsageError(f"{where}: vlan {spec.vlan} is not a VLAN id: use 1 to 4094")
    if not 576 <= spec.mtu <= 9000:
        raise UsageError(f"{where}: mtu {spec.mtu} is out of range: use 576B to 9000B")
    if not 10**5 <= link.rate <= FASTEST_BPS:
        raise UsageError(f"{where}: a link rate of {link.rate} is out of range: use 100kbit to {Rate(FASTEST_BPS)}")
    if link.buffer < spec.mtu + 22:
        raise UsageError(f"{where}: a buffer of {link.buffer} holds no full-size frame: use at least {spec.mtu + 22}B")
    if not link.orphan and link.model != "wire":
        raise UsageError(f"{where}: orphan = false is for links of model wire: {link.model} never releases a packet early")
    if link.delay > 10**9:
        raise UsageError(f"{where}: a propagation delay of {link.delay} is out of range: use at most 1s")
    seen: dict[str, str] = {}
    for switch, below in spec.switches.items():
        for node in below:
            if node in seen:
                raise UsageError(f"{where}: {node!r} hangs below both {seen[node]!r} and {switch!r}: give it one place")
            seen[node] = switch
            if not node.isalnum() or len(node) > 8:
                raise UsageError(f"{where}: {node!r} is no node name: use at most 8 letters and digits")
    for node in seen:
        above = [node]
        while above[-1] in seen:
            above.append(seen[above[-1]])
            if above.count(above[-1]) > 1:
                raise UsageError(f"{where}: {' > '.join(reversed(above))} is a loop: the switches must form a tree")
    if spec.fabric is not None and spec.switches:
        raise UsageError(f"{where}: it has both a fabric and switches: leave one of them out")
    roots = [switch for switch in spec.switches if switch not in seen]
    if len(roots) != 1 and spec.fabric is None:
        raise UsageError(f"{where}: the switches form no single tree: {', '.join(roots) or 'none'} hang below nothing")
    network = Network(
        topology=name,
        vlan=spec.vlan,
        mtu_bytes=int(spec.mtu),
        static_arp=spec.static_arp,
        edges=tuple((switch, node) for switch, below in spec.switches.items() for node in below),
        model=link.model,
        rate_bps=int(link.rate),
        buffer_bytes=int(link.buffer),
        delay_ns=int(link.delay),
        orphan=link.orphan,
        xoff_bytes=int(link.xoff),
        xon_bytes=int(link.xon),
        fabric=None if spec.fabric is None else _fabric(where, spec.fabric),
    )
    if len(network.hosts) < 2:
        raise UsageError(f"{where}: {len(network.hosts)} hosts make no network: give at least two")
    _check_flow_control(where, network)
    return network


def check_emulated(network: Network) -> None:
    """Raise :class:`UsageError` for a network that only the simulator can have."""
    where = f"topology {network.topology!r}"
    if network.fabric is not None:
        raise UsageError(f"{where}: a fabric is for the simulator, the emulation has trees: use --backend simulator or another topology")
    if network.rate_bps > 10**10:
        raise UsageError(f"{where}: a link rate of {Rate(network.rate_bps)} is out of range for the emulation: use at most 10Gbit")
    if len(network.hosts) > 250:
        raise UsageError(f"{where}: {len(network.hosts)} hosts are too many for the emulation: use at most 250")


def _fabric(where: str, spec: FabricSpec) -> Fabric:
    for field, most in (("racks", 65_536), ("hosts_per_rack", 65_536), ("spines", 1024)):
        if not 1 <= getattr(spec, field) <= most:
            raise UsageError(f"{where}: fabric.{field} = {getattr(spec, field)} is out of range: use 1 to {most}")
    if spec.racks * spec.hosts_per_rack > 65_536:
        raise UsageError(f"{where}: fabric: {spec.racks * spec.hosts_per_rack} hosts are too many for the simulator: use at most 65536")
    if not 10**5 <= spec.uplink_rate <= FASTEST_BPS:
        raise UsageError(f"{where}: fabric.uplink_rate = {spec.uplink_rate} is out of range: use 100kbit to {Rate(FASTEST_BPS)}")
    if spec.uplink_delay > 10**9:
        raise UsageError(f"{where}: fabric.uplink_delay = {spec.uplink_delay} is out of range: use at most 1s")
    return Fabric(
        racks=spec.racks,
        hosts_per_rack=spec.hosts_per_rack,
        spines=spec.spines,
        uplink_rate_bps=int(spec.uplink_rate),
        uplink_delay_ns=int(spec.uplink_delay),
    )


def _check_flow_control(where: str, network: Network) -> None:
    """Raise :class:`UsageError` unless thresholds fit each other, and a port's buffer what all others may send before they are paused.

    Behind the threshold comes what is on its way while the pause is: the frame that reached it, one that keeps the pause waiting, one that its
    receiver has begun, one being switched, and what the link holds.
    """
    xoff, xon = network.xoff_bytes, network.xon_bytes
    if not xoff and not xon:
        return
    if network.model != "wire":
        raise UsageError(f"{where}: xoff = {xoff}B is for links of model wire: {network.model} knows no pause")
    full = theory.frame_bytes(network.mtu_bytes)
    if not full <= xon < xoff:
        raise UsageError(f"{where}: xoff = {xoff}B and xon = {xon}B do not fit: use {full}B <= xon < xoff")
    ports = Counter(node for link in network.ports() for node, _ in link if node in network.switches)
    room = 4 * full + 2 * network.delay_ns * network.rate_bps // (8 * theory.NS_PER_S)
    for switch, count in ports.items():
        if (count - 1) * (xoff + room) > network.buffer_bytes:
            raise UsageError(
                f"{where}: xoff = {xoff}B loses frames: {count - 1} ports of {switch} may send {xoff + room}B each to one whose buffer has "
                f"{network.buffer_bytes}B: use at most {network.buffer_bytes // (count - 1) - room}B"
            )
