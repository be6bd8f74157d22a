"""Flow control: hosts h1 to h5 (devices h1, ...) on a switch of Open vSwitch's datapath (ports s1, ...), wires of 10 Mb/s, frames of 1514 B.

A frame takes FRAME_NS of its link, a control frame CONTROL_NS until it has arrived and 84 B of the link.
Assert:
`lossless`: three hosts send 200 frames each to a fourth at once. Without pauses some are dropped; with them none, and of the first half each
    host has a third. `accounts`, of each port's ingress, are 0 in the end; `max_account` is XOFF and what came until the pause was obeyed.
`gap`: one host sends six frames to a port of 1 Mb/s, XOFF and XON at three and one frames waiting. The fourth frame to arrive finds the first on
    the wire and makes it three: pause, which the fifth, on its way already, does not obey. When the fourth starts: resume, after which the sixth
    starts. `gap_ns`, from the start of the fifth to that of the sixth, is three frames of the slow port, less the time from the first's arrival to
    the fifth's start, and the control frame. `paused_ns` is from arrival to arrival: three frames of the slow port less three of the sender's.
`control`: the same while the sender's own port is busy with other frames, the arrivals of which tell when the control frames went: two gaps are
    84 B longer than the others; no frame is cut short.
`blocking`: a host that sends to the congested port and a free one in turn gets no more through the free one (`free`) than through the other.
`gone`: the port that has paused a sender is replaced, deleted, told to send no pauses, or taken down, or the sender's own wire or the congested
    port's is replaced; then the sender, which had 30 frames, sends 10 more. All arrive but those that such a change purges; the account is 0.
`held`: a qjump below the wire that pauses holds a frame of level 0 back, and a control frame takes that wire.
    `urgent`: meanwhile a frame of level 7 comes. `epoch`: meanwhile the budget of level 0 is renewed.
    That frame starts when the control frame has left; `late_ns` is by how much later.
`alone`: `lossless`, `gap` and `gone` where only level 0, that of these frames, is paused (802.1Qbb).
`urgent`: three hosts fill a fourth's port; meanwhile the first sends frames of level 7 to a fifth. `wait_ns` is the longest time that one of these
    waited at its host, `paused_ns` how long levels 0 and 7 were paused there.
`children`: of every kind, two of which hold frames back themselves, below the wire of a sender (`obeys`) and below that of the port that pauses it
    (`sends`). `obeys`: two frames pass, then 20 come at once, and one of priority 7 while the sender is paused. When it was is reckoned from the arrivals at both
    ports: `reckoned` pauses of `reckoned_ns` together, in which `inside` frames started. `sends`: 60 frames go the other way meanwhile.
    `left`: what still waits in wire and child at the end.
`shortened`: the delay of the port that pauses falls from 100 ms to nothing between the pause and the resume: the resume comes with the pause,
    not before it, and `paused_ns` is 0.
`uncounted`: 20 frames come to a congested port that has a child.
`both`: over a link between two switches both ends pause each other; all frames arrive.
"""

import atexit
import itertools
import json
import socket
import struct
import time
from typing import Any

import rig

FRAME, LINE = 1514, 10_000_000
FRAME_NS, CONTROL_NS = (1518 + 20) * 800, (8 + 64) * 800
SLOW = 10_000  # bit/s: a control frame takes 67.2 ms
HOSTS = range(1, 6)
PAUSE = f"pause {20 * 1518} {10 * 1518}"
ALONE = "pfc 0"
VLAN = 2
CHILDREN = {
    "pfifo": ["pfifo limit 1000"],
    "prio": ["prio"],
    "htb": ["htb default 1", "class add dev {0} parent 6: classid 6:1 htb rate 8mbit burst 2000 cburst 2000"],
    "netem": ["netem delay 5ms"],
    "fq_codel": ["fq_codel"],
    "qjump": [f"qjump epoch 5ms level 0 {2 * FRAME} limit 1mb"],
}


def mac(host: int) -> str:
    return f"02:00:00:00:00:{host:02x}"


def tc(device: str, words: str) -> str:
    """What tc says where the device is: in its host's namespace, or the switches'."""
    namespace = f"-n {device} " if device.startswith("h") else ""
    return rig.run(f"tc {namespace}{words}").stdout


def wire(device: str, *options: str, rate: int = LINE) -> None:
    tc(device, f"qdisc replace dev {device} root handle 5: wire rate {rate} limit 1mb {' '.join(options)}")


def stats(device: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tc(device, f"-j -s qdisc show dev {device} root"))[0]
    return found


def pause(device: str) -> dict[str, int]:
    """What `tc -s` says of them; nothing where there are none."""
    found: dict[str, int] = stats(device).get("pause", {})
    return found


def link(one: str, other: str, other_in: str = "") -> None:
    rig.run(f"ip link add {one} type veth peer name {other} {other_in}")
    atexit.register(rig.run, f"ip link del {one}")
    rig.run(f"ip link set {one} addrgenmode none up")


def path(switch: str, source: int, to: int, host: int) -> None:
    rig.run(f"ovs-dpctl add-flow {switch} in_port({source}),eth(dst={mac(host)}),eth_type(0x88b5) {to}")


class Port:
    """A packet socket on a device: sends numbered frames, and has stamps and numbers of those that come in."""

    def __init__(self, device: str, protocol: int = rig.ETHERTYPE) -> None:
        rig.enter(device if device.startswith("h") else "")
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
        self.socket.bind((device, protocol))
        self.socket.setsockopt(socket.SOL_SOCKET, rig.SO_SNDBUFFORCE, 1 << 27)
        self.socket.setsockopt(socket.SOL_SOCKET, rig.SO_RCVBUFFORCE, 1 << 29)
        self.socket.setsockopt(socket.SOL_SOCKET, rig.SO_TIMESTAMPNS, 1)
        self.socket.setblocking(False)
        rig.enter()

    def send(self, to: int, number: int, pcp: int = 0) -> None:
        tag = struct.pack("!HH", 0x8100, pcp << 13 | VLAN) if pcp else b""
        head = bytes.fromhex(mac(to).replace(":", "")) + bytes(6) + tag
        self.socket.send((head + struct.pack("!HI", rig.ETHERTYPE, number)).ljust(FRAME, b"\0"))

    def take(self) -> list[tuple[int, int]]:
        frames: list[tuple[int, int]] = []
        while True:
            try:
                data, extra, _, address = self.socket.recvmsg(64, 64, socket.MSG_TRUNC)
            except BlockingIOError:
                return frames
            if address[2] != socket.PACKET_OUTGOING:
                seconds, ns = struct.unpack("qq", extra[0][2][:16])
                frames.append((seconds * 10**9 + ns, struct.unpack("!I", data[14:18])[0]))


def fresh(options: str, slow: int = LINE) -> None:
    """All wires new; the fourth port may be slow. Nothing has arrived."""
    for host in HOSTS:
        rig.run(f"tc qdisc del dev s{host} root", check=False)
        rig.run(f"tc -n h{host} qdisc del dev h{host} root", check=False)
        wire(f"s{host}", options, rate=slow if host == 4 else LINE)
        wire(f"h{host}")
        ports[f"h{host}"].take()


def lossless(options: str) -> dict[str, Any]:
    fresh(options)
    for host in HOSTS:
        wire(f"s{host}", "limit 152200", options)
    for host in (1, 2, 3) * 200:
        ports[f"h{host}"].send(4, host)
    time.sleep(1)
    came = [number for _, number in ports["h4"].take()]
    return {
        "arrived": len(came),
        "drops": stats("s4")["drops"],
        "half": [came[:300].count(host) for host in (1, 2, 3)],
        "accounts": [pause(f"s{host}").get("ingress") for host in HOSTS],
        "pauses": [pause(f"s{host}") for host in (1, 2, 3)],
        "obeyed": [pause(f"h{host}") for host in (1, 2, 3)],
    }


def gap(busy: int = 0, levels: str = "") -> dict[str, Any]:
    fresh(f"pause {3 * 1518} 1518 {levels}", slow=LINE // 10)
    tap = Port("s1", protocol=3)  # of all protocols: before the switch takes the frame
    for number in range(busy):
        ports["h5"].send(1, number)
    time.sleep(0.02 if busy else 0)
    for number in range(6):
        ports["h1"].send(4, number)
    time.sleep(0.3)
    starts = [stamp for stamp, _ in tap.take()]
    others = [b - a for a, b in itertools.pairwise(stamp for stamp, _ in ports["h1"].take())]
    return {
        "arrived": len(ports["h4"].take()),
        "gaps": [b - a for a, b in itertools.pairwise(starts)],
        "sent": pause("s1"),
        "obeyed": pause("h1"),
        "others": others,
    }


def shortened() -> dict[str, Any]:
    fresh(f"delay 100ms pause {3 * 1518} 1518", slow=LINE // 10)
    for number in range(6):
        ports["h1"].send(4, number)
    time.sleep(0.02)
    rig.run("tc qdisc change dev s1 root wire delay 0ns")
    time.sleep(0.3)
    return {"arrived": len(ports["h4"].take()), "sent": pause("s1")["sent"], "obeyed": pause("h1")}


def blocking(options: str) -> dict[str, int]:
    fresh(options)
    for number in range(400):
        ports["h1"].send(4 + number % 2, number)
        for host in (2, 3):
            ports[f"h{host}"].send(4, 1000)
    time.sleep(0.4)
    return {
        "congested": sum(number < 1000 for _, number in ports["h4"].take()),
        "free": len(ports["h5"].take()),
    }


def gone(*commands: str, levels: str = "") -> dict[str, Any]:
    fresh(f"pause {3 * 1518} 1518 {levels}", slow=LINE // 10)
    for number in range(30):
        ports["h1"].send(4, number)
    time.sleep(0.01)
    before = pause("h1")
    for command in commands:
        rig.run(command)
    time.sleep(0.01)
    for number in range(30, 40):
        ports["h1"].send(4, number)
    time.sleep(1)
    return {
        "before": before,
        "after": pause("h1"),
        "arrived": len(ports["h4"].take()),
        "account": pause("s1").get("ingress", 0),
    }


def urgent(options: str) -> dict[str, Any]:
    fresh(options)
    sender = Port("h1", protocol=3)  # of all protocols: a frame's own is that of its tag
    for host in (1, 2, 3) * 200:
        ports[f"h{host}"].send(4, host)
    for number in range(20):
        time.sleep(0.01)
        sender.send(5, number, pcp=7)
    time.sleep(1)
    levels = {level["level"]: level for level in stats("h1")["levels"]}
    return {
        "arrived": len(ports["h4"].take()),
        "urgent": [number for _, number in ports["h5"].take()],
        "drops": stats("s4")["drops"],
        "packets": levels[7]["packets"],
        "wait_ns": levels[7]["max_wait_ns"],
        "paused_ns": [levels[p].get("paused_ns", 0) for p in (0, 7)],
        "accounts": [
            next(level.get("max_ingress", 0) for level in stats("s1")["levels"] if level["level"] == p)
            for p in (0, 7)
        ],
    }


def held(urgent: bool) -> dict[str, Any]:
    fresh("")
    wire("s4", rate=SLOW // 10)
    wire("s1", "pause 3000 1000", rate=SLOW)
    rig.run("tc qdisc add dev s1 parent 5:1 handle 6: qjump epoch 5s level 0 1550")
    port = Port("s1", protocol=3)  # of all protocols: before the switch takes the frame
    port.send(1, 0)
    port.send(1, 1)
    time.sleep(2 if urgent else 4.96)
    for number in range(3):
        ports["h1"].send(4, number)
    time.sleep(0.01)
    if urgent:
        port.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 7)
        port.send(1, 2)
    time.sleep(5)
    congested_ns = port.take()[2][0]
    expected_ns = congested_ns + (8 + 64 + 12 + 8 + 1518) * 8 * 10**9 // SLOW
    arrivals = {number: stamp for stamp, number in ports["h1"].take()}
    arrival_ns = arrivals.get(2 if urgent else 1)
    return {"sent": pause("s1")["sent"], "late_ns": arrival_ns and arrival_ns - expected_ns}


def child(device: str, kind: str) -> None:
    qdisc, *others = CHILDREN[kind]
    for command in (f"qdisc add dev {{0}} parent 5:1 handle 6: {qdisc}", *others):
        tc(device, command.format(device))


def childs(device: str) -> dict[str, Any]:
    """What the wire's child has dropped, and what waits in both."""
    both = [
        q for q in json.loads(tc(device, f"-j -s qdisc show dev {device}")) if q["handle"] in ("5:", "6:")
    ]
    return {"drops": both[1]["drops"], "left": [[q["qlen"], q["backlog"]] for q in both]}


def reckoned(ins: list[int], outs: list[int]) -> list[tuple[int, int]]:
    """When the sender is paused, by when frames come in and start to leave: from three waiting on until one is."""
    waiting, begin, spans = 0, 0, []
    for stamp, step in sorted([(stamp, 1) for stamp in ins] + [(stamp, -1) for stamp in outs]):
        waiting += step
        if waiting == 3 and not begin:
            begin = stamp + CONTROL_NS
        if waiting == 1 and begin:
            spans.append((begin, stamp + CONTROL_NS))
            begin = 0
    return spans


def obeys(kind: str, levels: str) -> dict[str, Any]:
    fresh(f"pause {3 * 1518} 1518 {levels}", slow=LINE // 10)
    child("h1", kind)
    tap, sender = Port("s1", protocol=3), ports["h1"]  # of all protocols: before the switch takes the frame
    for number in range(2):
        sender.send(4, number)
    time.sleep(0.1)
    before = [number for _, number in ports["h4"].take()]
    tap.take()
    passed = pause("h1").get("received", 0)
    for number in range(20):
        sender.send(4, number)
    time.sleep(0.03)
    sender.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 7)
    sender.send(4, 100)
    sender.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0)
    time.sleep(0.4)
    ins, (outs, numbers) = [stamp for stamp, _ in tap.take()], zip(*ports["h4"].take(), strict=True)
    spans = reckoned(ins, [stamp - (FRAME_NS - 12 * 800) * 10 for stamp in outs])
    starts = [stamp - (FRAME_NS - 12 * 800) for stamp in ins]
    return {
        "before": before,
        "passed": passed,
        "numbers": numbers,
        "reckoned": len(spans),
        "reckoned_ns": sum(end - begin for begin, end in spans),
        "inside": sum(begin + 30_000 < start < end - 30_000 for start in starts for begin, end in spans),
        "obeyed": pause("h1"),
        "sent": pause("s1"),
        **childs("h1"),
    }


def sends(kind: str, levels: str) -> dict[str, Any]:
    fresh(f"pause {3 * 1518} 1518 {levels}", slow=LINE // 10)
    child("s1", kind)
    for number in range(60):
        ports["h5"].send(1, number)
        if number < 20:
            ports["h1"].send(4, number)
    time.sleep(0.4)
    return {
        "numbers": [number for _, number in ports["h4"].take()],
        "back": [number for _, number in ports["h1"].take()],
        "obeyed": pause("h1"),
        "sent": pause("s1"),
        **childs("s1"),
    }


def uncounted() -> dict[str, Any]:
    fresh(f"pause {3 * 1518} 1518", slow=LINE // 10)
    child("s4", "pfifo")
    for number in range(20):
        ports["h1"].send(4, number)
    time.sleep(0.4)
    return {"arrived": len(ports["h4"].take()), "sent": pause("s1")}


def both() -> dict[str, Any]:
    fresh(PAUSE)
    link("s6", "s7")
    rig.run("ip link set s7 addrgenmode none up")
    rig.run("ovs-dpctl del-flows sw")
    rig.run("ovs-dpctl del-if sw s2")
    rig.run("ovs-dpctl del-if sw s3")
    rig.run("ovs-dpctl add-if sw s6,port_no=6")
    rig.run("ovs-dpctl add-dp other")
    atexit.register(rig.run, "ovs-dpctl del-dp other")
    for host in (2, 3):
        rig.run(f"ovs-dpctl add-if other s{host},port_no={host}")
    rig.run("ovs-dpctl add-if other s7,port_no=7")
    path("sw", 1, 6, 3)
    path("other", 7, 3, 3)
    path("other", 2, 7, 4)
    path("sw", 6, 4, 4)
    for device in ("s6", "s7"):
        wire(device, f"pause {3 * 1518} 1518")
    for device in ("s3", "s4"):
        wire(device, rate=LINE // 10)
    for number in range(40):
        ports["h1"].send(3, number)
        ports["h2"].send(4, number)
    time.sleep(1)
    return {
        "arrived": [len(ports[host].take()) for host in ("h3", "h4")],
        "pauses": [pause("s6"), pause("s7")],
    }


rig.run("modprobe openvswitch")
rig.run("ovs-dpctl add-dp sw")
atexit.register(rig.run, "ovs-dpctl del-dp sw")
for host in HOSTS:
    rig.run(f"ip netns add h{host}")
    atexit.register(rig.run, f"ip netns del h{host}")
    link(f"s{host}", f"h{host}", f"netns h{host}")
    rig.run(f"ip -n h{host} link set h{host} address {mac(host)} addrgenmode none up")
    rig.run(f"ovs-dpctl add-if sw s{host},port_no={host}")
for source, to in itertools.permutations(HOSTS, 2):
    path("sw", source, to, to)
rig.run(
    f"ovs-dpctl add-flow sw in_port(1),eth(dst={mac(5)}),eth_type(0x8100),vlan(vid={VLAN},pcp=7),encap(eth_type(0x88b5)) 5"
)
ports = {f"h{host}": Port(f"h{host}") for host in HOSTS}
results = {
    "lossless": {options or "none": lossless(options) for options in ("", PAUSE)},
    "gap": gap(),
    "control": gap(busy=100),
    "blocking": {options or "none": blocking(options) for options in ("", PAUSE)},
    "gone": {
        "replaced": gone(f"tc qdisc replace dev s1 root handle 7: wire rate {LINE} {PAUSE}"),
        "deleted": gone("tc qdisc del dev s1 root"),
        "off": gone("tc qdisc change dev s1 root wire pause 0 0"),
        "down": gone("ip link set s1 down", "ip link set s1 up"),
        "sender": gone(f"tc -n h1 qdisc replace dev h1 root handle 7: wire rate {LINE}"),
        "congested": gone(f"tc qdisc replace dev s4 root handle 7: wire rate {LINE // 10}"),
    },
    "alone": {
        "lossless": lossless(f"{PAUSE} {ALONE}"),
        "gap": gap(levels=ALONE),
        "gone": {
            "replaced": gone(
                f"tc qdisc replace dev s1 root handle 7: wire rate {LINE} {PAUSE} {ALONE}", levels=ALONE
            ),
            "off": gone("tc qdisc change dev s1 root wire pause 0 0", levels=ALONE),
            "others": gone("tc qdisc change dev s1 root wire pfc 1", levels=ALONE),
        },
    },
    "urgent": {options: urgent(options) for options in (PAUSE, f"{PAUSE} {ALONE}")},
    "held": {"urgent": held(urgent=True), "epoch": held(urgent=False)},
    "children": {
        levels or "link": {
            kind: {"obeys": obeys(kind, levels), "sends": sends(kind, levels)} for kind in CHILDREN
        }
        for levels in ("", ALONE)
    },
    "shortened": shortened(),
    "uncounted": uncounted(),
    "both": both(),
}
rig.report(frame_ns=FRAME_NS, control_ns=CONTROL_NS, **results)
