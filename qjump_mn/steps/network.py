"""Steps that bring a network up: hosts, switches and cables, before any trial shapes its links."""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterator

import msgspec

from qjump_mn.executor.steps import (
    Announce,
    AnyStep,
    Cable,
    End,
    Offloads,
    Run,
    Settings,
    Sleep,
    Steps,
    Switch,
    Topology,
)
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
"""The limits of Mininet (mininet.util.fixLimits) that matter to a network.

Hosts inherit TCP's limits when they are created.
"""

MAC_AGING_S = 86400
"""Longer than any trial; Open vSwitch's default is 300 s."""

LEARNING_S = 0.5
"""Long enough for a switch's daemon to learn an address from a frame."""

FLOWS_KEPT_MS = 86_400_000
"""How long Open vSwitch keeps an idle flow, and its longest interval between two revalidations.

By default it revalidates all flows every half second, which blocks a single processor for half a
millisecond.
"""
FIRST_FLOWS = 10_000
"""How many flows Open vSwitch's datapath holds at first.

The limit rises with each revalidation, and none comes. Every packet of a further flow would pass
through the switch's daemon.
"""
_KEPT = ("max-idle", "max-revalidator")
_OVS = ("Open_vSwitch", ".")
_OVS_PACKAGE = "package openvswitch-switch"


def bring_up(network: Network) -> Steps:
    """Return the steps for a network whose hosts can reach each other, with unshaped links."""
    return (
        *_prerequisites(network),
        Topology(
            hosts=network.hosts,
            switches=tuple(
                Switch(name=name, dpid=f"{index:x}")
                for index, name in enumerate(network.switches, 1)
            ),
            cables=tuple(_cables(network)),
        ),
        *_ports(network),
        *(step for name in network.hosts for step in _host(name, network)),
        *_learn(network),
    )


def modprobe(*words: str) -> Run:
    """Load several modules, or one module with its parameters."""
    argv = ("modprobe", *words) if "=" in words[-1] else ("modprobe", "-a", *words)
    refusal = "this kernel lacks a module: use --backend guest, which brings its own kernel"
    return Run(argv=argv, refusal=refusal)


def _prerequisites(network: Network) -> Iterator[AnyStep]:
    """Configure Open vSwitch, load modules and set limits, before anything is created."""
    yield Run(
        argv=(
            "ovs-vsctl",
            "--timeout=5",
            "set",
            *_OVS,
            *(f"other_config:{key}={FLOWS_KEPT_MS}" for key in _KEPT),
        ),
        saves=("ovs-vsctl", "--timeout=5", "get", *_OVS, "other_config"),
        undo=Run(argv=("sh", "-c", f'ovs-vsctl set {" ".join(_OVS)} "other_config=$(cat)"')),
        refusal=f"Open vSwitch does not answer: start it ({_OVS_PACKAGE}), or use --backend guest",
    )
    modules = registry.of(network.model).modules
    yield modprobe(*MODULES, *(module for module in modules if module != "ifb"))
    if "ifb" in modules:
        yield modprobe("ifb", "numifbs=0")  # by default it creates two devices
    keys = (line.partition(" = ")[0] for line in LIMITS.splitlines())
    yield Run(
        argv=("sysctl", "-qp", "-"),
        stdin=LIMITS,
        saves=("sysctl", *keys),
        undo=Run(argv=("sysctl", "-qp", "-")),
    )


def _cables(network: Network) -> Iterator[Cable]:
    """Yield every link with fixed MAC addresses; Mininet would draw them at random."""
    macs = _macs(network)
    for index, (above, below) in enumerate(network.ports()):
        ends = [
            End(
                node=node,
                device=device,
                mac=macs.get(node, f"02:00:00:01:{index:02x}:{number:02x}"),
            )
            for number, (node, device) in enumerate((above, below), 1)
        ]
        first, second = (
            commands.End(end.device, end.mac, end.node if end.node in network.hosts else "")
            for end in ends
        )
        yield Cable(
            ends=(ends[0], ends[1]), line=shlex.join(commands.veth(first, second, QUEUES)[1:])
        )


def _macs(network: Network) -> dict[str, str]:
    return {host: f"02:00:00:00:00:{index + 1:02x}" for index, host in enumerate(network.hosts)}


def _ports(network: Network) -> Iterator[AnyStep]:
    """Set up the switches' ports: no offloads, no IPv6 of their own, the network's MTU."""
    ports = network.switch_ports()
    yield Settings(values={f"net.ipv6.conf.{device}.disable_ipv6": "1" for device in ports})
    yield Offloads(devices=tuple(ports))
    lines = (f"link set {device} mtu {network.mtu_bytes} up\n" for device in ports)
    yield Run(argv=("ip", "-batch", "-"), stdin="".join(lines))


def _host(host: str, network: Network) -> Iterator[AnyStep]:
    """Set up a host that tags everything it sends: priority p becomes PCP p, and back."""
    yield Settings(
        node=host,
        values={
            # Router solicitations and multicast reports would cross the network under test.
            "net.ipv6.conf.all.disable_ipv6": "1",
            "net.ipv6.conf.default.disable_ipv6": "1",
            # With a short round trip TCP hands down bursts of 64 kB and lets two of them queue
            # below it, whatever the offloads (since Linux 5.18): 50 us at 10 Gb/s, 105 ms at
            # 10 Mb/s. With 0 at most two frames queue, as TCP small queues intends.
            "net.ipv4.tcp_tso_rtt_log": "0",
        },
    )
    device = f"{host}-eth0"
    lines = [
        "link set lo up",
        f"link set {device} mtu {network.mtu_bytes} up",
        *_vlan_device(host, network),
    ]
    neighbours = _neighbours(host, network) if network.static_arp else ""
    yield Run(
        node=host,
        argv=("ip", "-batch", "-"),
        stdin="".join(f"{line}\n" for line in lines) + neighbours,
    )
    yield Offloads(node=host, devices=(device, network.vlan_device(host)))


def _vlan_device(host: str, network: Network, queues: int = 1) -> list[str]:
    """Return ``ip`` lines that create a host's VLAN device."""
    vlan_device = network.vlan_device(host)
    tagged, _ = commands.vlan(f"{host}-eth0", network.vlan, queues=queues)
    return [
        tagged,
        f"addr add {network.addresses[host]}/{PREFIX_BITS} dev {vlan_device}",
        f"link set {vlan_device} mtu {network.mtu_bytes} up",
    ]


def vlan_queues(host: str, network: Network) -> Run:
    """Give a host's VLAN device a queue for each level, and undo that at the end.

    A VLAN device gets its queues when it is created, so it is replaced. A socket remembers one
    queue for all devices on its path (Linux 6.12: netdev_pick_tx()), so the device below has a
    single queue meanwhile.
    """
    neighbours = _neighbours(host, network) if network.static_arp else ""
    device = network.vlan_device(host)

    def replace(queues: int) -> Run:
        lines = [
            f"ethtool -L {shlex.quote(host)}-eth0 tx {QUEUES if queues == 1 else 1}",
            "ip -batch -",
            shlex.join(commands.offloads(device)),
        ]
        text = "\n".join([f"link del {device}", *_vlan_device(host, network, queues), neighbours])
        return Run(node=host, argv=("sh", "-e", "-c", "\n".join(lines)), stdin=text)

    return msgspec.structs.replace(replace(QUEUES), undo=replace(1))


def _neighbours(host: str, network: Network) -> str:
    macs, device = _macs(network), network.vlan_device(host)
    return "".join(
        f"neigh replace {address} lladdr {macs[other]} dev {device} nud permanent\n"
        for other, address in network.addresses.items()
        if other != host
    )


def _learn(network: Network) -> Iterator[AnyStep]:
    """Make every switch learn where every host is, so that no frame of a trial is flooded.

    If a flow's first packet finds its destination unknown, the flow stays flooded, because Open
    vSwitch is told to keep its flows.
    """
    for host, address in network.addresses.items():
        subnet = ipaddress.ip_interface(f"{address}/{PREFIX_BITS}").network
        yield Announce(node=host, address=str(subnet.broadcast_address))
    yield Sleep(after_s=LEARNING_S)
    ages = (
        ("--", "set", "bridge", switch, f"other_config:mac-aging-time={MAC_AGING_S}")
        for switch in network.switches
    )
    yield Run(argv=("ovs-vsctl", *(word for words in ages for word in words)))
    yield Run(argv=("ovs-appctl", "revalidator/purge"))
    pairs = len(network.hosts) * (len(network.hosts) - 1)
    if pairs * len(network.switches) > FIRST_FLOWS:
        most = pairs * len(network.switches) * len(commands.LEVELS)
        yield Run(argv=("ovs-appctl", "upcall/set-flow-limit", str(most)))
