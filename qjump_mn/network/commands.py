"""The tc, ip and ovs commands a plan stands for, as text: run in batches by the testbed, printed by ``--dry-run``.

Pure: nothing here touches the machine. A tc line is what follows ``tc``, an ip line what follows ``ip``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from qjump_mn import theory
from qjump_mn.model.plan import QJumpPlan
from qjump_mn.model.scheme import SchemePlan
from qjump_mn.model.topology import Network

LEVELS = range(8)
QUEUES = 8
OFFLOADS = "tso off gso off gro off"
ICMP_ECHO_REPLY = 0

HOST_PARENT = "5:1"
"""Mininet's TC puts everything of ours below this class, whatever the link model."""

HOST_HANDLE = "6:"


class Shaping(NamedTuple):
    """What makes one interface a link end: ``ip`` lines first, then ``tc`` lines, in the namespace of its node."""

    ip: list[str]
    tc: list[str]


def veth_end(device: str, *, mac: str | None = None, netns: str | int | None = None) -> str:
    """One end of a veth pair, with eight transmit and receive queues; ``netns`` is a namespace's name or a process in it."""
    address = f" address {mac}" if mac else ""
    return f"name {device}{address} numtxqueues {QUEUES} numrxqueues {QUEUES}" + ("" if netns is None else f" netns {netns}")


def veth(end: str, peer: str) -> str:
    """A veth pair of two ends made by :func:`veth_end`."""
    return f"link add {end} type veth peer {peer}"


def wire(network: Network, device: str, *, on_switch: bool) -> str:
    """sch_wire as root: a frame is delivered when its last bit has arrived, and levels queue behind it in strict priority.

    Switch ports pause their link partners where the links have flow control, which every wire obeys.
    """
    pause = f" pause {network.xoff_bytes} {network.xon_bytes}" if on_switch and network.xoff_bytes else ""
    return (
        f"qdisc add dev {device} root handle 5: wire rate {network.rate_bps}bit limit {network.buffer_bytes} "
        f"classify pcp delay {network.delay_ns}ns {'orphan' if network.orphan else 'noorphan'}{pause}"
    )


def htb(network: Network, device: str) -> list[str]:
    """What Mininet's TCIntf does for ``bw``: an HTB class with a burst of 15k."""
    return [
        f"qdisc add dev {device} root handle 5:0 htb default 1",
        f"class add dev {device} parent 5:0 classid 5:1 htb rate {network.rate_bps / 1e6:f}Mbit burst 15k",
    ]


def tbf(network: Network, device: str, *, on_switch: bool) -> Shaping:
    """The wire from tc's own parts, for hosts where no module may be loaded.

    The sender is paced by a bucket of one frame (so that priorities are decided before the wire, frame by frame) and the receiver's
    ingress serialises through an ifb, since tbf lets a frame go before its time on the wire, not after.
    """
    full = theory.frame_bytes(network.mtu_bytes)
    framing = theory.PREAMBLE_BYTES + theory.INTERFRAME_GAP_BYTES + theory.FCS_BYTES + theory.VLAN_TAG_BYTES
    packets = max(1, network.buffer_bytes // full)
    mirror = ifb_name(device)
    lines = [
        (
            f"qdisc add dev {device} root handle 5: tbf rate {network.rate_bps}bit burst {full + 8} limit {network.buffer_bytes * len(LEVELS)} "
            f"overhead {framing} mpu {theory.MINIMUM_FRAME_BYTES + theory.PREAMBLE_BYTES + theory.INTERFRAME_GAP_BYTES}"
        )
    ]
    if on_switch:
        lines.append(f"qdisc add dev {device} parent 5:1 handle 10: prio bands 8 priomap" + " 7" * 16)
        for level in LEVELS:
            lines += [
                f"qdisc add dev {device} parent 10:{8 - level} handle 1{level + 1}: pfifo limit {packets}",
                f"filter add dev {device} parent 10: protocol 802.1q prio {level + 1} flower vlan_prio {level} classid 10:{8 - level}",
            ]
    lines += [
        f"qdisc add dev {mirror} root netem rate {network.rate_bps}bit {theory.PREAMBLE_BYTES + theory.FCS_BYTES + theory.VLAN_TAG_BYTES} limit 1000"
        + (f" delay {network.delay_ns}ns" if network.delay_ns else ""),
        f"qdisc add dev {device} ingress",
        f"filter add dev {device} parent ffff: matchall action mirred egress redirect dev {mirror}",
    ]
    return Shaping([f"link add name {mirror} type ifb", f"link set {mirror} up"], lines)


def ifb_name(device: str) -> str:
    """The ifb that delays what ``device`` receives (interface names have at most 15 characters)."""
    return f"i-{device}"[:15]


def shape(network: Network, device: str, *, on_switch: bool) -> Shaping:
    """Whatever the link model asks for at one end of a link (OVS's QoS at a switch of the htb model is :func:`htb_qos`)."""
    match network.model:
        case "wire":
            return Shaping([], [wire(network, device, on_switch=on_switch)])
        case "htb":
            return Shaping([], htb(network, device))
        case "tbf":
            return tbf(network, device, on_switch=on_switch)


def vlan_host(device: str, network: Network, address: str) -> list[str]:
    """A host that sends and receives everything tagged: ``address`` (with prefix length) is on a VLAN device above ``device``."""
    tagged = f"{device}.{network.vlan}"
    mapping = " ".join(f"{level}:{level}" for level in LEVELS)
    return [
        # Router solicitations and reports of group membership would cross the network under test.
        "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1",
        # Where the round trip is short, TCP hands down bursts of 64 kB and lets two of them wait below it, offloads or not (Linux 5.18):
        # 50 us at 10 Gb/s, 105 ms at 10 Mb/s. Without, at most two frames wait, as intended (TCP small queues). Older kernels have no such key.
        "sysctl -eqw net.ipv4.tcp_tso_rtt_log=0",
        f"ethtool -K {device} {OFFLOADS}",
        f"ip link set {device} mtu {network.mtu_bytes} up",
        f"ip link add link {device} name {tagged} type vlan id {network.vlan} egress-qos-map {mapping} ingress-qos-map {mapping}",
        f"ip addr add {address} dev {tagged}",
        f"ip link set {tagged} mtu {network.mtu_bytes} up",
        f"ethtool -K {tagged} {OFFLOADS}",
    ]


def switch_port(device: str, network: Network) -> list[str]:
    """A switch's port: whole frames only, no IPv6 of its own, the network's MTU."""
    return [
        f"sysctl -qw net.ipv6.conf.{device}.disable_ipv6=1",
        f"ethtool -K {device} {OFFLOADS}",
        f"ip link set {device} mtu {network.mtu_bytes} up",
    ]


def qjau(level: int, window_bytes: int | None, preload: str | None = None) -> list[str]:
    """The prefix that gives a program its level and, if asked, its window (native/app-util), and another library of ours."""
    before = ["env", f"LD_PRELOAD=/usr/lib/qjump-mn/{preload}"] if preload else []
    return [*before, "qjau", "-p", str(level), *(["-w", str(window_bytes)] if window_bytes is not None else []), "--"]


def host_priorities(device: str, network: Network) -> list[str]:
    """Strict priority at a host without QJump, for the link models whose root qdisc has none of its own."""
    packets = max(1, network.buffer_bytes // theory.frame_bytes(network.mtu_bytes))
    priomap = " ".join(str(7 - level) for level in LEVELS) + " 7" * 8
    lines = [f"qdisc add dev {device} parent {HOST_PARENT} handle {HOST_HANDLE} prio bands 8 priomap {priomap}"]
    lines += [f"qdisc add dev {device} parent 6:{8 - level} handle 6{level + 1}: pfifo limit {packets}" for level in LEVELS]
    return lines


def placed(lines: Sequence[str], device: str) -> list[str]:
    """A scheme's tc lines for one interface."""
    return [line.format(dev=device, parent=HOST_PARENT) for line in lines]


def port_queues(scheme: SchemePlan, network: Network) -> dict[str, list[str]]:
    """A scheme's tc lines for each switch port's interface."""
    links = network.by_device()
    ports = [device for link in network.ports() for node, device in link if node in network.switches]
    return {device: placed(scheme.switch_port if links[device] == network else scheme.trunk_port, device) for device in ports}


def transport(scheme: SchemePlan) -> list[str]:
    """What a scheme asks of a host's TCP, as sysctl has it: "key = value"."""
    asked = {
        "net.ipv4.tcp_congestion_control": scheme.congestion_control,
        "net.ipv4.tcp_ecn": None if scheme.ecn is None else int(scheme.ecn),
    }
    return [f"{key} = {value}" for key, value in asked.items() if value is not None]


def limiter(plan: QJumpPlan, device: str, network: Network) -> list[str]:
    """What limits a host's levels, below Mininet's TC."""
    return prio_tbf(plan, device, network) if plan.mode == "tbf" else [qjump(plan, device)]


def prio_tbf(plan: QJumpPlan, device: str, network: Network) -> list[str]:
    """QJump's limits from tc's own parts: a token bucket for each limited level, with the budget as its depth and budget/epoch as its rate."""
    lines = []
    for line, level in zip(host_priorities(device, network), (None, *LEVELS), strict=True):
        budget = plan.budget_bytes[level] if level is not None else 0
        if budget:
            rate, limit = budget * 8 * theory.NS_PER_S // plan.epoch_ns, plan.limit_packets * theory.frame_bytes(network.mtu_bytes)
            line = f"{line.partition(' pfifo ')[0]} tbf rate {rate}bit burst {budget} limit {limit}"
        lines.append(line)
    return lines


def qjump(plan: QJumpPlan, device: str) -> str:
    """sch_qjump; levels by 802.1Q priority."""
    none = "0" if plan.mode == "2015" else "unlimited"
    budgets = " ".join(f"level {level} {plan.budget_bytes[level] or none}" for level in reversed(LEVELS))
    line = f"qdisc add dev {device} parent {HOST_PARENT} handle {HOST_HANDLE} qjump epoch {plan.epoch_ns}ns {budgets} mode {plan.mode}"
    # What mode 2015 has no choice of may not be chosen.
    return line if plan.mode == "2015" else f"{line} epochs {plan.epochs} packets {plan.limit_packets}"


def mark_echo_replies(vlan_device: str, level: int) -> list[str]:
    """An echo reply leaves with priority 0 whatever its request had: give it the ping's level before the VLAN device reads it."""
    return [
        f"qdisc add dev {vlan_device} clsact",
        f"filter add dev {vlan_device} egress protocol ip flower ip_proto icmp type {ICMP_ECHO_REPLY} action skbedit priority {level}",
    ]


def htb_qos(rates: Mapping[str, int]) -> list[str]:
    """Arguments of one ovs-vsctl call: linux-htb QoS with eight queues on every port, below the rate of its link in bit/s."""
    arguments: list[str] = []
    for device, rate_bps in rates.items():
        queues = ",".join(f"{level}=@q-{device}-{level}" for level in LEVELS)
        arguments += ["--", "set", "port", device, f"qos=@qos-{device}"]
        arguments += [
            "--",
            f"--id=@qos-{device}",
            "create",
            "qos",
            "type=linux-htb",
            f"other-config:max-rate={rate_bps}",
            f"queues={queues}",
        ]
        for level in LEVELS:
            arguments += ["--", f"--id=@q-{device}-{level}", "create", "queue", f"other-config:priority={7 - level}"]
            arguments += [f"other-config:max-rate={rate_bps}"]
    return arguments[1:]


def htb_flows() -> list[str]:
    """OpenFlow rules that choose the queue by the tag's PCP; everything else stays as in a learning switch."""
    rules = [f"priority=100,vlan_tci=0x{level << 13 | 0x1000:04x}/0xf000,actions=set_queue:{level},NORMAL" for level in LEVELS]
    return [*rules, "priority=0,actions=NORMAL"]
