"""Two switches of Open vSwitch's datapath with a trunk, four hosts each, one sender per host.

Host n is namespace hn with device hn; its port pn is in the namespace of its switch, s1 or s2. The
trunk is t1 <-> t2. Senders continue whatever is done to devices and qdiscs: a datagram that cannot
be sent is not counted.
"""
import ctypes
import itertools
import mmap
import os
import random
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator

import rig

HOSTS = range(1, 9)
OF_TCP = (4, 8)  # hosts that send by TCP
PORT = 7
BURST, REST_S = 8, 0.1  # pause after this many sends, to leave the processors to others
UDP_SEGMENT = 103
PR_SET_PDEATHSIG = 1
TRUNKS = {"t1": "s1", "t2": "s2"}
PORTS = {f"p{n}": "s1" if n <= 4 else "s2" for n in HOSTS}
PLACES = {**{f"h{n}": f"h{n}" for n in HOSTS}, **PORTS, **TRUNKS}
"""The namespace of each device."""


def mac(n: int) -> str:
    return f"02:00:00:00:00:{n:02x}"


def address(n: int) -> str:
    return f"10.9.0.{n}"


def number(device: str) -> int:
    """Return the port number of a device in its datapath."""
    return int(device[1:]) if device in PORTS else 9


def neighbours(n: int) -> list[str]:
    """Return lines for `ip -batch` with the neighbours that a host loses with its device."""
    return [f"neigh replace {address(m)} lladdr {mac(m)} dev h{n} nud permanent" for m in HOSTS if m != n]


def batch(program: str, namespace: str, lines: list[str]) -> subprocess.Popen[str]:
    """Start a `tc` or `ip` that executes all lines, even if some fail; errors go to its stderr."""
    argv = [program, "-n", namespace, "-force", "-batch", "-"]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stdin
    process.stdin.write("\n".join(lines) + "\n")
    process.stdin.close()
    process.stdin = None
    return process


def attach(device: str) -> None:
    """Add a device to the switch in its namespace."""
    place = PLACES[device]
    rig.run(f"ip -n {place} link set {device} up")
    rig.run(f"ip netns exec {place} ovs-dpctl add-if {place} {device},port_no={number(device)}")


def trunk() -> None:
    rig.run("ip -n s1 link add t1 type veth peer name t2 netns s2")
    for device in TRUNKS:
        attach(device)


def build() -> None:
    for place in sorted(set(PLACES.values())):
        rig.run(f"ip netns add {place}")
        rig.run(f"ip netns exec {place} sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1", check=False)
    for switch in ("s1", "s2"):
        rig.run(f"ip netns exec {switch} ovs-dpctl add-dp {switch}")
    trunk()
    for n in HOSTS:
        rig.run(f"ip -n h{n} link add h{n} address {mac(n)} type veth peer name p{n} netns {PORTS[f'p{n}']}")
        rig.run(f"ip -n h{n} addr add {address(n)}/24 dev h{n}")
        rig.run(f"ip -n h{n} link set h{n} up")
        batch("ip", f"h{n}", neighbours(n)).wait()
        attach(f"p{n}")
    for switch in ("s1", "s2"):
        for n in HOSTS:
            out = n if PORTS[f"p{n}"] == switch else 9
            flow = f"eth(dst={mac(n)}),eth_type(0x0800),ipv4(frag=no)"
            rig.run(f"ip netns exec {switch} ovs-dpctl add-flow {switch} {flow} {out}")


class Shared:
    """State shared by all processes: whether senders send, whether to end, a counter per sender."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 4096)

    @property
    def sending(self) -> bool:
        return bool(self.memory[0])

    @sending.setter
    def sending(self, on: bool) -> None:
        self.memory[0] = on

    def add(self, host: int, count: int) -> None:
        struct.pack_into("Q", self.memory, 8 * host, self.sent(host) + count)

    def sent(self, host: int) -> int:
        return int(struct.unpack_from("Q", self.memory, 8 * host)[0])


def process(work: Callable[..., None], *arguments: object) -> None:
    """Start a process that calls work() and is killed when this one ends."""
    parent = os.getpid()
    if os.fork():
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent:
        work(*arguments)
    os._exit(0)


def udp_sender(host: int, shared: Shared) -> None:
    """Send datagrams of all priorities and sizes to all other hosts, singly and as GSO packets."""
    rig.enter(f"h{host}")
    chance, sockets = random.Random(host), []
    for priority in range(8):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        sender.setsockopt(socket.SOL_SOCKET, rig.SO_SNDBUFFORCE, 1 << 20)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
        sockets.append(sender)
    others = [(address(n), PORT) for n in HOSTS if n != host]
    for turn in itertools.count():
        if turn % BURST == 0:
            time.sleep(REST_S)
        while not shared.sending:
            time.sleep(REST_S)
        size, count = chance.choice((18, 100, 500, 1400)), chance.choice((1, 1, 4, 16))
        segments = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("H", size))] if count > 1 else []
        try:
            chance.choice(sockets).sendmsg([bytes(size * count)], segments, 0, chance.choice(others))
        except OSError:  # the socket is full, or device or route are temporarily gone
            time.sleep(0.01)
        else:
            shared.add(host, count)


def tcp_sender(host: int, shared: Shared) -> None:
    """Make one connection after another; count accepted bytes in units of full frames."""
    rig.enter(f"h{host}")
    chance = random.Random(host)
    while True:
        with socket.socket() as sender:
            sender.settimeout(1)
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, chance.randrange(8))
            try:
                sender.connect((address(chance.choice([n for n in HOSTS if n != host])), PORT))
                for _ in range(20):
                    time.sleep(REST_S)
                    while not shared.sending:
                        time.sleep(REST_S)
                    shared.add(host, sender.send(bytes(64_000)) // 1448)
            except OSError:
                time.sleep(0.02)


def sink() -> None:
    """Receive TCP data at all hosts. Do not read datagrams: a full socket drops further ones."""
    poll = select.epoll()
    sockets: dict[int, socket.socket] = {}
    listening: dict[int, socket.socket] = {}
    kept = []
    for n in HOSTS:
        rig.enter(f"h{n}")
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind(("", PORT))
        listener = socket.create_server(("", PORT), reuse_port=True)
        listening[listener.fileno()] = listener
        kept.append(datagrams)
        poll.register(listener, select.EPOLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor in listening:
                connection, _ = listening[descriptor].accept()
                sockets[connection.fileno()] = connection
                poll.register(connection, select.EPOLLIN)
                continue
            try:
                alive = sockets[descriptor].recv(1 << 20)
            except OSError:
                alive = b""
            if not alive:
                poll.unregister(descriptor)
                sockets.pop(descriptor).close()


def start(shared: Shared) -> None:
    process(sink)
    for n in HOSTS:
        sender = tcp_sender if n in OF_TCP else udp_sender
        process(sender, n, shared)


def passed() -> Iterator[tuple[str, int]]:
    """Yield packets that left the root qdisc of each device; a recreated trunk starts at 0."""
    for place in sorted(set(PLACES.values())):
        rig.enter(place)
        with open("/proc/self/net/dev") as lines:
            for line in lines:
                name, _, figures = line.partition(":")
                if name.strip() in PLACES:
                    yield name.strip(), int(figures.split()[9])
    rig.enter()
