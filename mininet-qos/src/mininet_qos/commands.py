"""Build the tc, ip and Open vSwitch commands that give a network priority levels.

Nothing is run here, and nothing of Mininet is imported. "Lines" are input for ``tc -batch`` or
``ip -batch``, without the program's name; a "command" is a list of words. Rates are in bit/s,
buffers in bytes, delays in ns. A level is a PCP of IEEE 802.1Q, 0 to 7; 7 is served first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

LEVELS = tuple(range(8))
IDENTITY = {level: level for level in LEVELS}
NAME_CHARACTERS = 15
"""The maximum length of an interface's name (Linux: IFNAMSIZ - 1)."""

PREAMBLE = 8
HEADER = 14
TAG = 4
CHECKSUM = 4
GAP = 12
SMALLEST = 64
"""Bytes of a frame on the wire (IEEE 802.3, 802.1Q); Linux counts neither preamble, FCS nor gap."""

MTU = 1500
FULL = HEADER + TAG + MTU + CHECKSUM
BUFFER = 100 * FULL
"""The default buffer of one level at one port."""

PARENT = "5:1"
"""The class of a link's end that queues, limiters and gates are put below."""


class QosError(Exception):
    """A setting is not possible, or a command failed; the message is one sentence."""


class Shaping(NamedTuple):
    """Lines that make an interface the end of a link: ``ip`` first, then ``tc``, and their undo."""

    ip: tuple[str, ...]
    tc: tuple[str, ...]
    undo_tc: tuple[str, ...]
    undo_ip: tuple[str, ...] = ()


class End(NamedTuple):
    """One end of a veth pair; ``namespace`` is a name or a pid, as ``ip link`` takes it.

    An empty ``namespace`` is the current one.
    """

    device: str
    mac: str = ""
    namespace: str = ""


def veth(first: End, second: End, queues: int) -> list[str]:
    """Return the command for a pair with several queues, for which Mininet has no option."""
    return [
        "ip",
        "link",
        "add",
        *_end(first, queues),
        "type",
        "veth",
        "peer",
        *_end(second, queues),
    ]


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
    """Return ``ip`` lines that create a VLAN device on ``device`` and set it up.

    ``egress`` maps a packet's priority to a PCP, ``ingress`` a frame's PCP to a priority; what is
    missing maps to 0. Raises QosError.
    """
    name = vlan_name(device, number)
    numtxqueues = f" numtxqueues {queues}" if queues > 1 else ""
    maps = f"egress-qos-map {_map(egress, 'egress')} ingress-qos-map {_map(ingress, 'ingress')}"
    return [
        f"link add link {device} name {name}{numtxqueues} type vlan id {number} {maps}",
        f"link set {name} up",
    ]


def vlan_name(device: str, number: int) -> str:
    """Return the name of a VLAN device on ``device``. Raises QosError."""
    if type(number) is not int or not 1 <= number <= 4094:
        raise QosError(f"vlan={number!r}: a VLAN's number is from 1 to 4094")
    return _short(
        f"{device}.{number}", "give the host a shorter name, or its VLAN a shorter number"
    )


def _map(levels: Mapping[int, int], name: str) -> str:
    if not levels or not {*levels, *levels.values()} <= {*LEVELS}:
        raise QosError(
            f"{name}={dict(levels)}: priorities and levels are from 0 to 7, as in {{0: 0, 6: 7}}"
        )
    return " ".join(f"{priority}:{pcp}" for priority, pcp in sorted(levels.items()))


def offloads(device: str) -> list[str]:
    """Return the command that turns offloads off, so that queues hold single frames.

    With offloads TCP sends up to 64 kB at once, which occupies a link of 10 Mb/s for 52 ms.
    """
    return ["ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off"]


def wire(device: str, rate: int, buffer: int = BUFFER, delay: int = 0) -> Shaping:
    """Shape a link with the kernel module sch_wire, with ``buffer`` bytes for each level.

    It serves the levels in strict priority, and delivers a frame when its last bit has arrived.
    """
    line = (
        f"qdisc add dev {device} root handle 5: wire rate {rate}bit limit {buffer} classify pcp "
        f"delay {delay}ns"
    )
    return Shaping((), (line,), (f"qdisc del dev {device} root",))


def tbf(device: str, rate: int, buffer: int = BUFFER, delay: int = 0) -> Shaping:
    """Shape a link with stock qdiscs that serve the levels, with ``buffer`` bytes for each."""
    return paced(device, rate, buffer, delay, priorities(device, PARENT, buffer))


def paced(
    device: str, rate: int, buffer: int, delay: int, below: Sequence[str], mtu: int = MTU
) -> Shaping:
    """Shape a link with stock qdiscs. Raises QosError.

    A bucket of one frame paces the sender, so that each frame is chosen when the wire is free for
    it; ``below`` are the ``tc`` lines of the qdiscs that choose, below 5:1. tbf releases a frame
    before its time on the wire instead of after it, so the ingress of ``device`` delays frames by
    their serialisation time.
    """
    full = HEADER + TAG + mtu + CHECKSUM
    serialised = f"netem rate {rate}bit {PREAMBLE + TAG + CHECKSUM} limit {_fitting(rate, delay)}"
    around = f"overhead {TAG + CHECKSUM + PREAMBLE + GAP} mpu {SMALLEST + PREAMBLE + GAP}"
    lines = [
        f"qdisc add dev {device} root handle 5: tbf rate {rate}bit burst {full + PREAMBLE} "
        f"limit {buffer * len(LEVELS)} {around}",
        *below,
    ]
    shaping = Shaping((), tuple(lines), (f"qdisc del dev {device} root",))
    netem = serialised + (f" delay {delay}ns" if delay else "")
    return received(shaping, device, netem, hook="ingress")


def received(shaping: Shaping, device: str, qdisc: str, *, hook: str = "clsact") -> Shaping:
    """Return ``shaping`` with a qdisc, in tc's syntax, for what ``device`` receives.

    ``hook`` is "clsact", which also takes filters for what is sent, or "ingress". Raises QosError.
    """
    mirror = ifb(device)
    parent = "ingress" if hook == "clsact" else "parent ffff:"
    lines = (
        f"qdisc add dev {mirror} root {qdisc}",
        f"qdisc add dev {device} {hook}",
        f"filter add dev {device} {parent} matchall action mirred egress redirect dev {mirror}",
    )
    return Shaping(
        ip=(*shaping.ip, f"link add name {mirror} type ifb", f"link set {mirror} up"),
        tc=(*shaping.tc, *lines),
        undo_tc=(*shaping.undo_tc, f"qdisc del dev {device} {hook}"),
        undo_ip=(*shaping.undo_ip, f"link del {mirror}"),
    )


MAX_TRACE_MS = 600_000
MAX_OPPORTUNITIES = 1000
"""In each ms of a trace: full-size frames at 12 Gb/s."""

TRACED, GATED = "4:", "4:1"
"""The handle of :func:`traced`'s qdisc, and its class, below which is what chooses frames."""


def traced(device: str, parent: str, buffer: int, mtu: int = MTU) -> str:
    """Return the ``tc`` line for a gate below ``parent`` that :func:`opportunity` opens.

    It is a token bucket of one frame that practically never fills by itself. What chooses frames
    is to be below its class.
    """
    return f"qdisc add dev {device} parent {parent} handle {TRACED} {_gate(1, buffer, mtu)}"


def opportunity(device: str, parent: str, frames: int, buffer: int, mtu: int = MTU) -> list[str]:
    """Return ``tc`` lines that let so many full-size frames pass the gate of :func:`traced`.

    What was left of earlier ones is lost.
    """
    return [
        # A change fills the bucket, and a change of the wire, of nothing, starts what waits.
        f"qdisc change dev {device} parent {parent} handle {TRACED} {_gate(frames, buffer, mtu)}",
        f"qdisc change dev {device} root handle 5: wire limit {buffer}",
    ]


def _gate(frames: int, buffer: int, mtu: int) -> str:
    # 100 bit/s: a slower rate would overflow tc's time to fill the bucket.
    return f"tbf rate 100bit burst {frames * (HEADER + TAG + mtu)} limit {buffer}"


def opportunities(text: str) -> tuple[int, ...]:
    """Return how many frames may leave in each ms of a trace of mahimahi's mm-link, up to the time
    of its last line.

    An opportunity at that time is one at the beginning of the next round. Raises ValueError, whose
    text follows the file's name.
    """
    times: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        word = line.strip()
        if not word:
            continue
        if not (word.isascii() and word.isdigit() and len(word) <= len(str(MAX_TRACE_MS))):
            raise ValueError(f":{number}: {word[:40]!r} is not a time in ms: write a whole number")
        times.append(int(word))
        if times[-2:] != sorted(times[-2:]):
            raise ValueError(f":{number}: the times must ascend")
    if not times or not 0 < times[-1] <= MAX_TRACE_MS:
        raise ValueError(f" must end with a time from 1 to {MAX_TRACE_MS} ms")
    counts = [0] * times[-1]
    for time in times:
        counts[time % len(counts)] += 1
    if max(counts) > MAX_OPPORTUNITIES:
        raise ValueError(f" has more than {MAX_OPPORTUNITIES} opportunities in one ms")
    return tuple(counts)


def impaired(rate: int, loss: float = 0, reorder: float = 0, later: int = 0, seed: int = 0) -> str:
    """Return netem, in tc's syntax, that loses and reorders frames, given in per cent.

    Reordered frames arrive ``later`` by this many ns. The kernel draws a seed if none is given.
    """
    words = [f"netem limit {_fitting(rate, later)}"]
    if reorder:
        # In netem's words, the others are "reordered": they do not wait.
        words.append(f"delay {later}ns reorder {100 - reorder:.7f}%")
    if loss:
        words.append(f"loss {loss:.7f}%")
    return " ".join([*words, *([f"seed {seed}"] if seed else [])])


def _fitting(rate: int, delay: int) -> int:
    """Return a limit for netem, which drops frames beyond it.

    It is twice the smallest frames that fit the delay.
    """
    return max(1000, 2 * rate * delay // (8 * 10**9 * (SMALLEST + PREAMBLE + GAP)))


def ifb(device: str) -> str:
    """Return the name of the device that gets what ``device`` receives. Raises QosError.

    ``mn -c`` recognises it by this name.
    """
    return _short(f"i-{device}", "give the node a shorter name")


def _short(name: str, remedy: str) -> str:
    if len(name.encode()) > NAME_CHARACTERS:
        problem = f"{name} is longer than the {NAME_CHARACTERS} characters of an interface's name"
        raise QosError(f"{problem}: {remedy}")
    return name


def priorities(
    device: str, parent: str, buffer: int = BUFFER, *, queue: str = "", handle: int = 20
) -> list[str]:
    """Return ``tc`` lines for one queue per level below ``parent``, served in strict priority.

    A queue holds ``buffer`` bytes, or is the qdisc ``queue`` in tc's syntax. The tag's PCP
    selects it, because a veth clears a packet's priority; an untagged packet has level 0.
    """
    prio = "prio bands 8 priomap" + " 7" * 16
    lines = [f"qdisc add dev {device} parent {parent} handle {handle}: {prio}"]
    for level in LEVELS:
        band, qdisc = f"{handle}:{8 - level}", queue or f"bfifo limit {buffer}"
        lines += [
            f"qdisc add dev {device} parent {band} handle {handle + level + 1}: {qdisc}",
            f"filter add dev {device} parent {handle}: protocol 802.1q prio {level + 1} "
            f"flower vlan_prio {level} classid {band}",
        ]
    return lines


def tagged_priorities(device: str) -> list[str]:
    """Return ``tc`` lines that set each outgoing frame's priority to its tag's level.

    They are for queues that classify by priority, which is 0 for a frame received through a veth.
    """
    frame = f"filter add dev {device} egress pref 1 protocol 802.1q flower"
    return [
        f"qdisc add dev {device} clsact",
        *(
            f"{frame} vlan_prio {level} action skbedit priority {level}"
            for level in LEVELS
            if level
        ),
    ]


OWNER = "external_ids:owner=mininet-qos"
COOKIE = "0x716f73"
"""The cookie that identifies our flows."""


def owned(switch: str = "") -> list[str]:
    """Return words that mark our rows of a switch; without ``switch`` they match all our rows."""
    return [OWNER, *([f"external_ids:switch={switch}"] if switch else [])]


def ovs_qos(rates: Mapping[str, int], owner: Sequence[str]) -> list[str]:
    """Return the command that gives each port of Open vSwitch eight linux-htb queues.

    ``rates`` are the ports' link rates. The queue with the lowest ``priority`` gets spare rate
    first. The rows are marked with ``owner``, see :func:`owned`.
    """
    command: list[str] = []
    for device, rate in rates.items():
        queues = ",".join(f"{level}=@q-{device}-{level}" for level in LEVELS)
        command += ["--", "set", "port", device, f"qos=@qos-{device}"]
        command += ["--", f"--id=@qos-{device}", "create", "qos", "type=linux-htb"]
        command += [f"other-config:max-rate={rate}", f"queues={queues}", *owner]
        for level in LEVELS:
            command += ["--", f"--id=@q-{device}-{level}", "create", "queue"]
            command += [
                f"other-config:priority={7 - level}",
                f"other-config:max-rate={rate}",
                *owner,
            ]
    return ["ovs-vsctl", *command[1:]]


def ovs_buffers(device: str, buffer: int = BUFFER) -> list[str]:
    """Return ``tc`` lines that limit :func:`ovs_qos`'s queues, by default 1000 packets."""
    return [
        f"qdisc add dev {device} parent 1:{level + 1} handle 2{level + 1}: bfifo limit {buffer}"
        for level in LEVELS
    ]


def ovs_flows(cookie: str = COOKIE) -> list[str]:
    """Return OpenFlow rules for a learning switch that selects the queue by the tag's PCP."""
    return [
        f"cookie={cookie},priority=100,vlan_tci=0x{level << 13 | 0x1000:04x}/0xf000,"
        f"actions=set_queue:{level},NORMAL"
        for level in LEVELS
    ]


def ovs_rows(table: str, owner: Sequence[str]) -> list[str]:
    """Return the command that lists the rows of ``table`` that are marked with ``owner``."""
    return ["ovs-vsctl", "--bare", "--columns=_uuid", "find", table, *owner]


def ovs_destroy(rows: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the command that destroys rows, which Open vSwitch keeps when their port is deleted.

    ``rows`` are names of rows, by table.
    """
    words = (("--", "destroy", table, name) for table, names in rows.items() for name in names)
    return ["ovs-vsctl", *(word for command in words for word in command)]
