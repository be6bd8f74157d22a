"""The network on which checks of flow control run; it is set up on import.

Hosts h1 to h5 (devices h1, ...) are attached to a switch of Open vSwitch's datapath (ports s1, ...)
by wires of 10 Mb/s; frames have 1514 B. A frame takes FRAME_NS on its link. A control frame takes
CONTROL_NS until it has arrived, and occupies the link for 84 B.
"""

import atexit
import itertools
import json
import socket
import struct
from typing import Any

import rig

FRAME, LINE = 1514, 10_000_000
FRAME_NS, CONTROL_NS = (1518 + 20) * 800, (8 + 64) * 800
SLOW = 10_000  # bit/s: a control frame takes 67.2 ms
HOSTS = range(1, 6)
PAUSE = f"pause {20 * 1518} {10 * 1518}"
ALONE = "pfc 0"
VLAN = 2


def mac(host: int) -> str:
    return f"02:00:00:00:00:{host:02x}"


def tc(device: str, words: str) -> str:
    """Run tc in the namespace of the device (its host's or the switch's); return its output."""
    namespace = f"-n {device} " if device.startswith("h") else ""
    return rig.run(f"tc {namespace}{words}").stdout


def wire(device: str, *options: str, rate: int = LINE) -> None:
    tc(device, f"qdisc replace dev {device} root handle 5: wire rate {rate} limit 1mb {' '.join(options)}")


def stats(device: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tc(device, f"-j -s qdisc show dev {device} root"))[0]
    return found


def pause(device: str) -> dict[str, int]:
    """Return the pause counters in `tc -s`; empty if there are none."""
    found: dict[str, int] = stats(device).get("pause", {})
    return found


def link(one: str, other: str, other_in: str = "") -> None:
    rig.run(f"ip link add {one} type veth peer name {other} {other_in}")
    atexit.register(rig.run, f"ip link del {one}")
    rig.run(f"ip link set {one} addrgenmode none up")


def path(switch: str, source: int, to: int, host: int) -> None:
    rig.run(f"ovs-dpctl add-flow {switch} in_port({source}),eth(dst={mac(host)}),eth_type(0x88b5) {to}")


class Port:
    """A packet socket on a device: sends numbered frames, and stamps those received."""

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
        return rig.stamped(self.socket)


def fresh(options: str, slow: int = LINE) -> None:
    """Replace all wires, the fourth port's possibly by a slow one, and discard received frames."""
    for host in HOSTS:
        rig.run(f"tc qdisc del dev s{host} root", check=False)
        rig.run(f"tc -n h{host} qdisc del dev h{host} root", check=False)
        wire(f"s{host}", options, rate=slow if host == 4 else LINE)
        wire(f"h{host}")
        ports[f"h{host}"].take()


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
