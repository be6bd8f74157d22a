"""The steps that bring a network up: hosts, switches and cables, of a skeleton that every trial then
shapes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from qjump_mn.executor.steps import AnyStep, Cable, End, Host, Run, Steps, Switch
from qjump_mn.links import commands, registry
from qjump_mn.links.base import QUEUES
from qjump_mn.model.topology import PREFIX_BITS, Network

MODULES = ("openvswitch", "8021q", "veth", "cls_flower", "act_skbedit", "sch_ingress")

LIMITS = """net.core.wmem_max = 16777216
net.core.rmem_max = 16777216
net.ipv4.tcp_rmem = 10240 87380 16777216
net.ipv4.tcp_wmem = 10240 87380 16777216
net.core.netdev_max_backlog = 5000
"""
"""Mininet's own limits (mininet.util.fixLimits), as far as a network meets them; hosts inherit TCP's when
they are made."""

MAC_AGING_S = 86400
"""Longer than any trial; Open vSwitch's default is 300 s."""

FLOWS_KEPT_MS = 86_400_000
"""How long Open vSwitch keeps a flow that nothing uses, and after what time it looks through all flows at the
latest: by default every half second, which on one processor keeps everybody waiting for half a
millisecond."""
_KEPT = ("max-idle", "max-revalidator")
_OVS = ("Open_vSwitch", ".")


def bring_up(network: Network) -> Steps:
    """A network whose hosts can reach each other; nothing is shaped yet."""
    ports = [line for device in network.switch_ports() for line in _port(device, network)]
    return (
        *_ground(network),
        *(Host(name=name) for name in network.hosts),
        *(Switch(name=name, dpid=f"{index + 1:x}") for index, name in enumerate(network.switches)),
        *_cables(network),
        Run(argv=("sh", "-e", "-c", "\n".join(ports))),
        *(_vlan_host(name, network) for name in network.hosts),
        *(_static_arp(name, network) for name in network.hosts if network.static_arp),
        *_learn(network),
    )


def modprobe(*words: str) -> Run:
    """Load modules, or one with its parameters."""
    argv = ("modprobe", *words) if "=" in words[-1] else ("modprobe", "-a", *words)
    return Run(
        argv=argv, refusal="this kernel lacks a module: use --backend guest, which brings a kernel of its own"
    )


def _ground(network: Network) -> Iterator[AnyStep]:
    """What must be there, and what must not, before anything is made."""
    yield Run(
        argv=("ovs-vsctl", "--timeout=5", "show"),
        refusal="Open vSwitch does not answer: start it (package openvswitch-switch), or use --backend guest",
    )
    modules = registry.of(network.model).modules
    yield modprobe(*MODULES, *(module for module in modules if module != "ifb"))
    if "ifb" in modules:
        yield modprobe("ifb", "numifbs=0")  # by itself it makes two that nobody asked for
    ours = shlex.join([*network.switches, *network.switch_ports()])
    yield Run(
        argv=(
            "sh",
            "-c",
            f"for name in {ours}; do [ ! -e /sys/class/net/$name ] || {{ echo $name; exit 1; }}; done",
        ),
        refusal="another network on this machine has an interface of this name: take it down first (mn -c)",
    )
    yield Run(
        argv=("ovs-vsctl", "set", *_OVS, *(f"other_config:{key}={FLOWS_KEPT_MS}" for key in _KEPT)),
        saves=("ovs-vsctl", "get", *_OVS, "other_config"),
        undo=Run(argv=("sh", "-c", f'ovs-vsctl set {" ".join(_OVS)} "other_config=$(cat)"')),
    )
    keys = (line.partition(" = ")[0] for line in LIMITS.splitlines())
    yield Run(
        argv=("sysctl", "-qp", "-"),
        stdin=LIMITS,
        saves=("sysctl", *keys),
        undo=Run(argv=("sysctl", "-qp", "-")),
    )


def _cables(network: Network) -> Iterator[Cable]:
    """Every link, with fixed addresses: Mininet draws them at random, and a repeatable run has repeatable
    ones."""
    macs = _macs(network)
    for index, (above, below) in enumerate(network.ports()):
        ends = [
            End(node=node, device=device, mac=macs.get(node, f"02:00:00:01:{index:02x}:{number:02x}"))
            for number, (node, device) in enumerate((above, below), 1)
        ]
        first, second = (
            commands.End(end.device, end.mac, end.node if end.node in network.hosts else "") for end in ends
        )
        yield Cable(ends=(ends[0], ends[1]), argv=tuple(commands.veth(first, second, QUEUES)))


def _macs(network: Network) -> dict[str, str]:
    return {host: f"02:00:00:00:00:{index + 1:02x}" for index, host in enumerate(network.hosts)}


def _port(device: str, network: Network) -> list[str]:
    """A switch's port: whole frames only, no IPv6 of its own, the network's MTU."""
    return [
        shlex.join(("sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=1")),
        shlex.join(commands.offloads(device)),
        f"ip link set {shlex.quote(device)} mtu {network.mtu_bytes} up",
    ]


def _vlan_host(host: str, network: Network) -> Run:
    """A host that sends and receives everything tagged, priority p as PCP p and PCP p as priority p."""
    device = f"{host}-eth0"
    lines = [
        "ip link set lo up",
        # Router solicitations and reports of group membership would cross the network under test.
        "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1",
        # Where the round trip is short, TCP hands down bursts of 64 kB and lets two of them wait below it,
        # offloads or not (Linux 5.18): 50 us at 10 Gb/s, 105 ms at 10 Mb/s. Without, at most two frames wait,
        # as intended (TCP small queues). Older kernels have no such key.
        "sysctl -eqw net.ipv4.tcp_tso_rtt_log=0",
        shlex.join(commands.offloads(device)),
        f"ip link set {shlex.quote(device)} mtu {network.mtu_bytes} up",
        *_vlan_device(host, network),
    ]
    return Run(node=host, argv=("sh", "-e", "-c", "\n".join(lines)))


def _vlan_device(host: str, network: Network, queues: int = 1) -> list[str]:
    vlan_device = network.vlan_device(host)
    tagged, _ = commands.vlan(f"{host}-eth0", network.vlan, queues=queues)
    return [
        shlex.join(("ip", *tagged.split())),
        f"ip addr add {network.addresses[host]}/{PREFIX_BITS} dev {shlex.quote(vlan_device)}",
        f"ip link set {shlex.quote(vlan_device)} mtu {network.mtu_bytes} up",
        shlex.join(commands.offloads(vlan_device)),
    ]


def vlan_queues(host: str, network: Network) -> Run:
    """Give a host's VLAN device a queue for each level, which it can have from its beginning only: so it is
    another device, and at the end one as before.

    A socket remembers one queue for all devices on its way (Linux 6.12: netdev_pick_tx()). So the device
    below chooses none meanwhile."""
    neighbours = _neighbours(host, network) if network.static_arp else ""

    def another(queues: int) -> Run:
        lines = [
            f"ethtool -L {shlex.quote(host)}-eth0 tx {QUEUES if queues == 1 else 1}",
            f"ip link del {shlex.quote(network.vlan_device(host))}",
            *_vlan_device(host, network, queues),
        ]
        return Run(node=host, argv=("sh", "-e", "-c", "\n".join([*lines, "ip -batch -"])), stdin=neighbours)

    return msgspec.structs.replace(another(QUEUES), undo=another(1))


def _static_arp(host: str, network: Network) -> Run:
    return Run(node=host, argv=("ip", "-batch", "-"), stdin=_neighbours(host, network))


def _neighbours(host: str, network: Network) -> str:
    macs, device = _macs(network), network.vlan_device(host)
    return "".join(
        f"neigh replace {address} lladdr {macs[other]} dev {device} nud permanent\n"
        for other, address in network.addresses.items()
        if other != host
    )


def _learn(network: Network) -> Iterator[AnyStep]:
    """Let every switch hear every host once, so that no frame of a trial is flooded.

    A flow whose first packet finds its destination unknown stays flooded, for flows are kept. A ping is heard
    by the switches on its way alone, once its destination is known: so each host pings one host of every
    switch that has any.
    """
    first = {switch: below for switch, below in reversed(network.edges) if below in network.hosts}
    for host in network.hosts:
        others = (other for other in network.hosts if other != host)
        told = {first_host if first_host != host else next(others) for first_host in first.values()}
        lines = [f"ping -n -q -c 1 -W 5 {network.addresses[other]}" for other in sorted(told)]
        yield Run(node=host, argv=("sh", "-e", "-c", "\n".join(lines)))
    for switch in network.switches:
        yield Run(argv=("ovs-vsctl", "set", "bridge", switch, f"other_config:mac-aging-time={MAC_AGING_S}"))
    yield Run(argv=("ovs-appctl", "revalidator/purge"))
