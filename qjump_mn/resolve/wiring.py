"""Resolve and check a topology: turn the entries of its file into a network."""

from __future__ import annotations

import msgspec

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.links import registry
from qjump_mn.model import graph, words
from qjump_mn.model.graph import Pairs
from qjump_mn.model.topology import (
    FASTEST_BPS,
    FabricSpec,
    Failure,
    Link,
    LinkSpec,
    Network,
    TopologySpec,
)
from qjump_mn.model.units import Duration, Rate, Tolerance
from qjump_mn.resolve import impairments

MAX_TOLERANCE_PPB = 10**6
"""Ten times what IEEE 802.3 allows."""

MAX_FABRIC_HOSTS = 131_072
"""We keep names and tables of each host. The simulator itself can have more."""


def resolve_network(name: str, spec: TopologySpec, place: str, link: LinkSpec) -> Network:
    """Return ``spec`` as a network in plain numbers. Raise :class:`UsageError` that names a wrong
    entry.

    ``place`` is the location of ``link``, which comes from an experiment or an arm, not from a
    topology's file. :func:`check_emulated` checks what only the emulation cannot do.
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
    network = msgspec.structs.replace(
        network,
        jittery=_jittery(place, link, network.hosts),
        impaired=impairments.resolve(place, link, edges, bool(cables or spec.fabric)),
    )
    for one in network.links() if network.impaired else ():
        registry.of(one.model).check(place, one)
    for points in {points for _, points in network.jittery}:
        _check_link(place, "", msgspec.structs.replace(edge, host_jitter=points))
    if spec.fabric is not None:
        _check_fabric(where, spec.fabric)
    if len(network.hosts) < 2:
        raise UsageError(f"{where}: a network needs at least two hosts (got {len(network.hosts)})")
    _check_flow_control(place, network)
    return network


def check_emulated(network: Network) -> None:
    """Raise :class:`UsageError` for a network that only the simulator supports."""
    where = f"topology {network.topology!r}"
    if network.fabric is not None:
        raise UsageError(
            f"{where}: the emulation supports trees only, not a fabric: use --backend simulator or "
            "another topology"
        )
    if network.cables or network.failures:
        raise UsageError(
            f"{where}: the emulation supports trees only, without loops and failing cables: use "
            "--backend simulator or another topology"
        )
    if len(network.hosts) > 250:
        raise UsageError(
            f"{where}: {len(network.hosts)} hosts are too many for the emulation: use at most 250, "
            "or --backend simulator"
        )
    words.check(
        words.DEVICE, where, *network.switch_ports(), *map(network.vlan_device, network.hosts)
    )
    model, switches = registry.of(network.model), set(network.switch_ports())
    for device, link in network.by_device().items():
        # A link model may derive longer names, and refuse these.
        model.shape(link, device, on_switch=device in switches, seed=0)


def _joined(where: str, spec: TopologySpec) -> tuple[Pairs, Pairs]:
    """Return the edges (switch, node below it) and the further cables."""
    above = _above(where, spec)
    if spec.fabric is not None and spec.switches:
        raise UsageError(f"{where}: fabric and switches exclude each other: leave one of them out")
    edges = tuple((switch, node) for switch, below in spec.switches.items() for node in below)
    cables = tuple(spec.cables)
    if spec.fat_tree is not None:
        if spec.switches or spec.fabric is not None or cables:
            raise UsageError(
                f"{where}: fat_tree excludes switches, fabric and cables: leave it or the others "
                "out"
            )
        edges, cables = graph.fat_tree(where, spec.fat_tree.ports)
    roots = [switch for switch in spec.switches if switch not in above]
    if cables:
        graph.check(where, edges, cables)
    elif len(roots) != 1 and spec.fabric is None:
        raise UsageError(
            f"{where}: the switches must form a single tree with one root (got "
            f"{', '.join(roots) or 'none'})"
        )
    return edges, cables


def _above(where: str, spec: TopologySpec) -> dict[str, str]:
    """Return the switch above each node that has one."""
    above: dict[str, str] = {}
    for switch, below in spec.switches.items():
        for node in below:
            if node in above:
                raise UsageError(
                    f"{where}: {node!r} is below both {above[node]!r} and {switch!r}: list it once"
                )
            above[node] = switch
    for node in above:
        path = [node]
        while path[-1] in above:
            path.append(above[path[-1]])
            if path.count(path[-1]) > 1:
                raise UsageError(
                    f"{where}: {' > '.join(reversed(path))} is a loop: the switches must form a "
                    "tree"
                )
    return above


def _failures(where: str, spec: TopologySpec, edges: Pairs, cables: Pairs) -> tuple[Failure, ...]:
    joined = {frozenset(ends) for ends in (*edges, *cables)}
    for failure in spec.failures:
        if frozenset(failure.between) not in joined:
            raise UsageError(
                f"{where}: failures: there is no cable between {' and '.join(failure.between)}"
            )
    return tuple(
        Failure(
            between=failure.between,
            down_ns=int(failure.down),
            up_ns=None if failure.up is None else int(failure.up),
        )
        for failure in spec.failures
    )


def _jittery(
    where: str, link: LinkSpec, hosts: tuple[str, ...]
) -> tuple[tuple[str, tuple[tuple[float, int], ...]], ...]:
    """Return the hosts with jitter, each with its quantiles (per cent, ns)."""
    if unknown := set(link.host_jitter_of) - set(hosts):
        raise UsageError(f"{where}: link.host_jitter_of: there is no host {min(unknown)!r}")
    drawn = ((host, link.host_jitter_of.get(host, link.host_jitter).points) for host in hosts)
    return tuple((host, points) for host, points in drawn if points)


def _links(spec: LinkSpec, mtu_bytes: int) -> tuple[Link, Link]:
    """Return the link of a host, and a link between switches."""
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
        switch_ns=int(spec.switch_time) or None,
    )
    trunk = msgspec.structs.replace(
        edge,
        rate_bps=int(spec.trunk_rate or spec.rate),
        buffer_bytes=int(spec.trunk_buffer or spec.buffer),
        delay_ns=int(spec.delay if spec.trunk_delay is None else spec.trunk_delay)
        + int(spec.switch_time),
        host_ns=0,
        switch_ns=None,
    )
    return edge, trunk


def _check_link(where: str, prefix: str, link: Link) -> None:
    """Raise :class:`UsageError` for settings of a link that are out of range. Their names begin
    with ``prefix``; they may come from an experiment, a scheme, an arm or the command line.
    """
    full = theory.frame_bytes(link.mtu_bytes)
    if not 10**5 <= link.rate_bps <= FASTEST_BPS:
        setting = f"link.{prefix}rate = {Rate(link.rate_bps)}"
        raise UsageError(f"{where}: {setting} is out of range: use 100kbit to {Rate(FASTEST_BPS)}")
    if link.buffer_bytes < full:
        setting = f"link.{prefix}buffer = {link.buffer_bytes}B"
        raise UsageError(f"{where}: {setting} is less than a full-size frame: use at least {full}B")
    if link.delay_ns > 10**9:
        setting = f"link.{prefix}delay = {Duration(link.delay_ns)}"
        raise UsageError(f"{where}: {setting} is out of range: use at most 1s")
    if (link.tolerance_ppb or 0) > MAX_TOLERANCE_PPB:
        setting = f"link.tolerance = {Tolerance(link.tolerance_ppb or 0)}"
        raise UsageError(
            f"{where}: {setting} is out of range: use at most {Tolerance(MAX_TOLERANCE_PPB)}"
        )
    if (link.switch_ns or 0) > 10**9:
        setting = f"link.switch_time = {Duration(link.switch_ns or 0)}"
        raise UsageError(f"{where}: {setting} is out of range: use at most 1s")
    slowest = max([link.host_ns, *(ns for _, ns in link.host_jitter)])
    if slowest > 10**9:
        raise UsageError(
            f"{where}: a host time of {Duration(slowest)} is out of range: use at most 1s"
        )
    registry.of(link.model, f"{where}: link.model").check(where, link)


def _check_fabric(where: str, spec: FabricSpec) -> None:
    limits = {"racks": MAX_FABRIC_HOSTS, "hosts_per_rack": MAX_FABRIC_HOSTS, "spines": 1024}
    for field, limit in limits.items():
        if not 1 <= getattr(spec, field) <= limit:
            raise UsageError(
                f"{where}: fabric.{field} = {getattr(spec, field)} is out of range: use 1 to "
                f"{limit}"
            )
    if spec.racks * spec.hosts_per_rack > MAX_FABRIC_HOSTS:
        raise UsageError(
            f"{where}: fabric: {spec.racks * spec.hosts_per_rack} hosts are too many: use at most "
            f"{MAX_FABRIC_HOSTS}"
        )


def _check_flow_control(where: str, network: Network) -> None:
    """Raise :class:`UsageError` unless xon and xoff fit each other, and a port's buffer holds what
    all other ports may send before they are paused.

    While the pause takes effect, more bytes arrive than the threshold: the frame that reached it,
    one that delays the pause, one that the paused sender has begun, one in the switch, and what is
    on the link.
    """
    xoff, xon = network.link.xoff_bytes, network.link.xon_bytes
    if not xoff and not xon:
        if network.link.pfc:
            raise UsageError(f"{where}: pfc = true needs thresholds: set xoff and xon too")
        return
    full = theory.frame_bytes(network.mtu_bytes)
    if not full <= xon < xoff:
        raise UsageError(
            f"{where}: xoff = {xoff}B and xon = {xon}B do not fit each other: use {full}B <= xon < "
            "xoff"
        )
    every = network.links()
    for switch in network.switches:
        links = [link for ends, link in zip(network.joined, every, strict=True) if switch in ends]
        rooms = [
            4 * full + 2 * link.delay_ns * link.rate_bps // (8 * theory.NS_PER_S) for link in links
        ]
        for link, room in zip(links, rooms, strict=True):
            others, behind = len(links) - 1, sum(rooms) - room
            if others * xoff + behind > link.buffer_bytes:
                raise UsageError(
                    f"{where}: xoff = {xoff}B loses frames: {others} ports of {switch} may send "
                    f"{others * xoff + behind}B to one whose buffer has "
                    f"{link.buffer_bytes}B: use at most {(link.buffer_bytes - behind) // others}B"
                )
