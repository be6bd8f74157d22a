"""The commands that give a network levels, as data: nothing is run here, and nothing of Mininet is imported.

Lines are what ``tc -batch`` and ``ip -batch`` read, without the program's name; a command is a list of
words. Rates are in bit/s, buffers in bytes, delays in ns. A level is a PCP of IEEE 802.1Q, 0 to 7; 7 is
served first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

LEVELS = tuple(range(8))
IDENTITY = {level: level for level in LEVELS}
NAME_CHARACTERS = 15
"""Of an interface, at most (Linux: IFNAMSIZ - 1)."""

PREAMBLE = 8
HEADER = 14
TAG = 4
CHECKSUM = 4
GAP = 12
SMALLEST = 64
"""Bytes of a frame on the wire (IEEE 802.3, 802.1Q); Linux counts the header and what is behind it only."""

MTU = 1500
FULL = HEADER + TAG + MTU + CHECKSUM
BUFFER = 100 * FULL
"""Of one level at one port, where nothing else is asked for."""


class QosError(Exception):
    """What was asked for cannot be, or a command failed: one sentence."""


class Shaping(NamedTuple):
    """What makes one interface the end of a link: ``ip`` lines, then ``tc`` lines; ``undo`` has the same two
    that take it back."""

    ip: tuple[str, ...]
    tc: tuple[str, ...]
    undo_tc: tuple[str, ...]
    undo_ip: tuple[str, ...] = ()


class End(NamedTuple):
    """One end of a veth pair. ``namespace`` is what ``ip link`` takes, a name or a process; none is this
    one."""

    device: str
    mac: str = ""
    namespace: str = ""


def veth(first: End, second: End, queues: int) -> list[str]:
    """The command that makes a pair with so many queues on both ends, which Mininet has no option for."""
    return ["ip", "link", "add", *_end(first, queues), "type", "veth", "peer", *_end(second, queues)]


def _end(end: End, queues: int) -> list[str]:
    words = ["name", end.device, *(["address", end.mac] if end.mac else [])]
    words += ["numtxqueues", str(queues), "numrxqueues", str(queues)]
    return words + (["netns", end.namespace] if end.namespace else [])


def vlan(
    device: str,
    number: int,
    egress: Mapping[int, int] = IDENTITY,
    ingress: Mapping[int, int] = IDENTITY,
    queues: int = 1,
) -> list[str]:
    """``ip`` lines for a VLAN's device on ``device``, up. ``egress`` gives the PCP of a packet's priority,
    ``ingress`` the priority of a frame's PCP; what is not named is 0. Raises QosError."""
    name = vlan_name(device, number)
    several = f" numtxqueues {queues}" if queues > 1 else ""
    maps = (f"egress-qos-map {_map(egress, 'egress')}", f"ingress-qos-map {_map(ingress, 'ingress')}")
    return [
        f"link add link {device} name {name}{several} type vlan id {number} {' '.join(maps)}",
        f"link set {name} up",
    ]


def vlan_name(device: str, number: int) -> str:
    """What a VLAN's device on ``device`` is called. Raises QosError."""
    if type(number) is not int or not 1 <= number <= 4094:
        raise QosError(f"vlan={number!r}: a VLAN's number is from 1 to 4094")
    return _short(f"{device}.{number}", "give the host a shorter name, or its VLAN a shorter number")


def _map(levels: Mapping[int, int], name: str) -> str:
    if not levels or not {*levels, *levels.values()} <= {*LEVELS}:
        raise QosError(f"{name}={dict(levels)}: priorities and levels are from 0 to 7, as in {{0: 0, 6: 7}}")
    return " ".join(f"{priority}:{pcp}" for priority, pcp in sorted(levels.items()))


def offloads(device: str) -> list[str]:
    """The command after which what is queued is frames, not TCP's 64 kB at once: one of these keeps a link of
    10 Mb/s busy for 52 ms, whatever waits behind it."""
    return ["ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off"]


def wire(device: str, rate: int, buffer: int = BUFFER, delay: int = 0) -> Shaping:
    """A link that a kernel module of ours makes: it serves the levels, and hands a frame over when its last
    bit has arrived. ``buffer`` is of each level."""
    line = (
        f"qdisc add dev {device} root handle 5: wire rate {rate}bit limit {buffer} classify pcp "
        f"delay {delay}ns"
    )
    return Shaping((), (line,), (f"qdisc del dev {device} root",))


def tbf(device: str, rate: int, buffer: int = BUFFER, delay: int = 0) -> Shaping:
    """A link of tc's own parts that serves the levels; ``buffer`` is of each."""
    return paced(device, rate, buffer, delay, priorities(device, "5:1", buffer))


def paced(device: str, rate: int, buffer: int, delay: int, below: Sequence[str], mtu: int = MTU) -> Shaping:
    """A link of tc's own parts. The sender is paced by a bucket of one frame, so that each frame is chosen
    when the wire is free for it; the receiver's side of ``device`` takes the time that a frame's bits take,
    which tbf lets go before their time on the wire, not after. ``below`` are ``tc`` lines for what chooses
    the frame, below 5:1. Raises QosError."""
    mirror, full = ifb(device), HEADER + TAG + mtu + CHECKSUM
    # netem drops what exceeds its limit: far fewer frames are on their way at once, if each is the smallest.
    limit = max(1000, 2 * rate * delay // (8 * 10**9 * (SMALLEST + PREAMBLE + GAP)))
    serialised = f"netem rate {rate}bit {PREAMBLE + TAG + CHECKSUM} limit {limit}"
    around = f"overhead {TAG + CHECKSUM + PREAMBLE + GAP} mpu {SMALLEST + PREAMBLE + GAP}"
    lines = [
        f"qdisc add dev {device} root handle 5: tbf rate {rate}bit burst {full + PREAMBLE} "
        f"limit {buffer * len(LEVELS)} {around}",
        *below,
        f"qdisc add dev {mirror} root {serialised}" + (f" delay {delay}ns" if delay else ""),
        f"qdisc add dev {device} ingress",
        f"filter add dev {device} parent ffff: matchall action mirred egress redirect dev {mirror}",
    ]
    return Shaping(
        ip=(f"link add name {mirror} type ifb", f"link set {mirror} up"),
        tc=tuple(lines),
        undo_tc=(f"qdisc del dev {device} root", f"qdisc del dev {device} ingress"),
        undo_ip=(f"link del {mirror}",),
    )


def ifb(device: str) -> str:
    """The device that takes what ``device`` receives; ``mn -c`` knows it by its name. Raises QosError."""
    return _short(f"i-{device}", "give the node a shorter name")


def _short(name: str, remedy: str) -> str:
    if len(name.encode()) > NAME_CHARACTERS:
        raise QosError(
            f"{name} is longer than the {NAME_CHARACTERS} characters of an interface's name: {remedy}"
        )
    return name


def priorities(
    device: str, parent: str, buffer: int = BUFFER, *, queue: str = "", handle: int = 20
) -> list[str]:
    """``tc`` lines: below ``parent`` a queue of ``buffer`` bytes for each level, or another ``queue`` as
    ``tc`` has it, served in strict priority. The tag's PCP chooses, for a veth clears a packet's priority;
    without a tag it is level 0."""
    lines = [f"qdisc add dev {device} parent {parent} handle {handle}: prio bands 8 priomap" + " 7" * 16]
    for level in LEVELS:
        band, own = f"{handle}:{8 - level}", handle + level + 1
        lines += [
            f"qdisc add dev {device} parent {band} handle {own}: {queue or f'bfifo limit {buffer}'}",
            f"filter add dev {device} parent {handle}: protocol 802.1q prio {level + 1} "
            f"flower vlan_prio {level} classid {band}",
        ]
    return lines


def tagged_priorities(device: str) -> list[str]:
    """``tc`` lines: every frame that leaves ``device`` has its tag's level as priority, for queues that
    choose by that; what came in through a veth has priority 0."""
    frame = f"filter add dev {device} egress pref 1 protocol 802.1q flower"
    return [
        f"qdisc add dev {device} clsact",
        *(f"{frame} vlan_prio {level} action skbedit priority {level}" for level in LEVELS if level),
    ]


OWNER = "external_ids:owner=mininet-qos"
COOKIE = "0x716f73"
"""Of our flows, by which they are found again."""


def owned(switch: str = "") -> list[str]:
    """Words that mark the rows of a switch, or find those of all that are ours."""
    return [OWNER, *([f"external_ids:switch={switch}"] if switch else [])]


def ovs_qos(rates: Mapping[str, int], owner: Sequence[str]) -> list[str]:
    """The command that gives each port of Open vSwitch eight queues below the rate of its link, by its type
    linux-htb. A lower number of ``priority`` takes first of what is left of the rate. The rows have the
    words of ``owner``, as of :func:`owned`."""
    command: list[str] = []
    for device, rate in rates.items():
        queues = ",".join(f"{level}=@q-{device}-{level}" for level in LEVELS)
        command += ["--", "set", "port", device, f"qos=@qos-{device}"]
        command += ["--", f"--id=@qos-{device}", "create", "qos", "type=linux-htb"]
        command += [f"other-config:max-rate={rate}", f"queues={queues}", *owner]
        for level in LEVELS:
            command += ["--", f"--id=@q-{device}-{level}", "create", "queue"]
            command += [f"other-config:priority={7 - level}", f"other-config:max-rate={rate}", *owner]
    return ["ovs-vsctl", *command[1:]]


def ovs_buffers(device: str, buffer: int = BUFFER) -> list[str]:
    """``tc`` lines that bound the queues of :func:`ovs_qos`, which Open vSwitch leaves at 1000 packets."""
    return [
        f"qdisc add dev {device} parent 1:{level + 1} handle 2{level + 1}: bfifo limit {buffer}"
        for level in LEVELS
    ]


def ovs_flows(cookie: str = COOKIE) -> list[str]:
    """OpenFlow rules that choose the queue by the tag's PCP; the rest stays as in a learning switch."""
    return [
        f"cookie={cookie},priority=100,vlan_tci=0x{level << 13 | 0x1000:04x}/0xf000,"
        f"actions=set_queue:{level},NORMAL"
        for level in LEVELS
    ]


def ovs_rows(table: str, owner: Sequence[str]) -> list[str]:
    """The command that prints what :func:`ovs_qos` has made in ``table`` with the words of ``owner``."""
    return ["ovs-vsctl", "--bare", "--columns=_uuid", "find", table, *owner]


def ovs_destroy(rows: Mapping[str, Sequence[str]]) -> list[str]:
    """The command that destroys rows, by table; Open vSwitch keeps them when their port goes."""
    words = (("--", "destroy", table, name) for table, names in rows.items() for name in names)
    return ["ovs-vsctl", *(word for command in words for word in command)]
