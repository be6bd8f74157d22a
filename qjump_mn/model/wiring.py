"""From a topology's file to its network: what each entry becomes, and which cannot be."""

from __future__ import annotations

import msgspec

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.links import registry
from qjump_mn.model import graph, words
from qjump_mn.model.graph import Pairs
from qjump_mn.model.topology import FASTEST_BPS, FabricSpec, Failure, Link, LinkSpec, Network, TopologySpec
from qjump_mn.model.units import Duration, Rate, Tolerance

MOST_OFF_PPB = 10**6
"""Ten times what IEEE 802.3 allows."""

MOST_FABRIC_HOSTS = 131_072
"""Names and tables of each are kept; the simulator itself numbers more."""


def resolve_network(name: str, spec: TopologySpec, place: str, link: LinkSpec) -> Network:
    """Check ``spec`` and make it plain; raise :class:`UsageError` naming the file's entry that is wrong.

    ``place``: whose ``link`` it is, which no topology's file has: the experiment's, an arm's. What only the
    emulation cannot do is for :func:`check_emulated`.
    """
    where = f"topology {name!r}"
    if not 1 <= spec.vlan <= 4094:
        raise UsageError(f"{where}: vlan {spec.vlan} is not a VLAN id: use 1 to 4094")
    if not 576 <= spec.mtu <= 9000:
        raise UsageError(f"{where}: mtu {spec.mtu} is out of range: use 576B to 9000B")
    edge, trunk = _links(link, int(spec.mtu))
    _check_link(place, "", edge)
    _check_link(place, "trunk_", trunk)
    edges, cables = _joined(where, spec)
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
        failures=_failures(where, spec, edges, cables),
    )
    network = msgspec.structs.replace(network, jittery=_jittery(place, link, network.hosts))
    for points in {points for _, points in network.jittery}:
        _check_link(place, "", msgspec.structs.replace(edge, host_jitter=points))
    if spec.fabric is not None:
        _check_fabric(where, spec.fabric)
    if len(network.hosts) < 2:
        raise UsageError(f"{where}: {len(network.hosts)} hosts make no network: give at least two")
    _check_flow_control(place, network)
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
    if len(network.hosts) > 250:
        raise UsageError(
            f"{where}: {len(network.hosts)} hosts are too many for the emulation: use at most 250"
        )
    words.check(words.DEVICE, where, *network.switch_ports(), *map(network.vlan_device, network.hosts))
    model, switches = registry.of(network.model), set(network.switch_ports())
    for device, link in network.by_device().items():
        # A link model may have longer names of its own, which it refuses.
        model.shape(link, device, on_switch=device in switches, seed=0)


def _joined(where: str, spec: TopologySpec) -> tuple[Pairs, Pairs]:
    """What hangs below which switch, and the cables beside that tree."""
    above = _above(where, spec)
    if spec.fabric is not None and spec.switches:
        raise UsageError(f"{where}: it has both a fabric and switches: leave one of them out")
    edges = tuple((switch, node) for switch, below in spec.switches.items() for node in below)
    cables = tuple(spec.cables)
    if spec.fat_tree is not None:
        if spec.switches or spec.fabric is not None or cables:
            raise UsageError(f"{where}: it has a fat_tree and more: leave the one or the other out")
        edges, cables = graph.fat_tree(where, spec.fat_tree.ports)
    roots = [switch for switch in spec.switches if switch not in above]
    if cables:
        graph.check(where, edges, cables)
    elif len(roots) != 1 and spec.fabric is None:
        raise UsageError(
            f"{where}: the switches form no single tree: {', '.join(roots) or 'none'} hang below nothing"
        )
    return edges, cables


def _above(where: str, spec: TopologySpec) -> dict[str, str]:
    """The switch above each node that has one."""
    above: dict[str, str] = {}
    for switch, below in spec.switches.items():
        for node in below:
            if node in above:
                raise UsageError(
                    f"{where}: {node!r} hangs below both {above[node]!r} and {switch!r}: give it one place"
                )
            above[node] = switch
    for node in above:
        way = [node]
        while way[-1] in above:
            way.append(above[way[-1]])
            if way.count(way[-1]) > 1:
                raise UsageError(
                    f"{where}: {' > '.join(reversed(way))} is a loop: the switches must form a tree"
                )
    return above


def _failures(where: str, spec: TopologySpec, edges: Pairs, cables: Pairs) -> tuple[Failure, ...]:
    joined = {frozenset(ends) for ends in (*edges, *cables)}
    for failure in spec.failures:
        if frozenset(failure.between) not in joined:
            raise UsageError(f"{where}: failures: there is no cable between {' and '.join(failure.between)}")
    return tuple(
        Failure(between=one.between, down_ns=int(one.down), up_ns=None if one.up is None else int(one.up))
        for one in spec.failures
    )


def _jittery(
    where: str, link: LinkSpec, hosts: tuple[str, ...]
) -> tuple[tuple[str, tuple[tuple[float, int], ...]], ...]:
    """The hosts that take a time that is drawn, and its quantiles."""
    if strangers := set(link.host_jitter_of) - set(hosts):
        raise UsageError(f"{where}: link.host_jitter_of: there is no host {min(strangers)!r}")
    drawn = ((host, link.host_jitter_of.get(host, link.host_jitter).points) for host in hosts)
    return tuple((host, points) for host, points in drawn if points)


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
        tolerance_ppb=int(spec.tolerance) or None,
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
    """Raise :class:`UsageError` for a link that cannot be, naming its settings, which begin with ``prefix``:
    they may come from an experiment, a scheme, an arm or the command line."""
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
    if (link.tolerance_ppb or 0) > MOST_OFF_PPB:
        wrong = f"link.tolerance = {Tolerance(link.tolerance_ppb or 0)}"
        raise UsageError(f"{where}: {wrong} is out of range: use at most {Tolerance(MOST_OFF_PPB)}")
    slowest = max([link.host_ns, *(ns for _, ns in link.host_jitter)])
    if slowest > 10**9:
        raise UsageError(f"{where}: a host that takes {Duration(slowest)} is out of range: use at most 1s")
    registry.of(link.model, f"{where}: link.model").check(where, link)


def _check_fabric(where: str, spec: FabricSpec) -> None:
    limits = {"racks": MOST_FABRIC_HOSTS, "hosts_per_rack": MOST_FABRIC_HOSTS, "spines": 1024}
    for field, most in limits.items():
        if not 1 <= getattr(spec, field) <= most:
            raise UsageError(
                f"{where}: fabric.{field} = {getattr(spec, field)} is out of range: use 1 to {most}"
            )
    if spec.racks * spec.hosts_per_rack > MOST_FABRIC_HOSTS:
        raise UsageError(
            f"{where}: fabric: {spec.racks * spec.hosts_per_rack} hosts are too many: use at most "
            f"{MOST_FABRIC_HOSTS}"
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
        links = [link for ends, link in zip(network.joined, every, strict=True) if switch in ends]
        rooms = [4 * full + 2 * link.delay_ns * link.rate_bps // (8 * theory.NS_PER_S) for link in links]
        for link, room in zip(links, rooms, strict=True):
            others, behind = len(links) - 1, sum(rooms) - room
            if others * xoff + behind > link.buffer_bytes:
                raise UsageError(
                    f"{where}: xoff = {xoff}B loses frames: {others} ports of {switch} may send "
                    f"{others * xoff + behind}B to one whose buffer has "
                    f"{link.buffer_bytes}B: use at most {(link.buffer_bytes - behind) // others}B"
                )
