"""The kernel's timers, time stamps and sockets, and a wire of the given Mb/s. Times are in ns."""

import ctypes
import itertools
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rig import SO_TIMESTAMPNS, Receiver, Sender, build, enter, offloads_off, report, tc

SLEEPS_NS = [100_000, 1_000_000, 10_000_000, 700_000_000]
FRAME, FRAMES = 1518 - 4, 100
PORT = 7000
SO_TIMESTAMPING, TIMESTAMPING = 37, 0x2 | 0x8 | 0x10  # software stamps, sent and received
TCP_INFO, TCP_QUICKACK = 11, 12
RTO, LAST_DATA_SENT = 0, 9  # of struct tcp_info: indices of the u32 after eight u8
CLOCKS = (time.CLOCK_MONOTONIC, time.CLOCK_REALTIME, time.CLOCK_BOOTTIME)
RTO_S = 3.5  # longer than four timeouts: 0.2, 0.4, 0.8 and 1.6 s


def sleeps() -> list[int]:
    """Return how late each sleep ends."""
    late = []
    for sleep_ns in SLEEPS_NS:
        began = time.monotonic_ns()
        time.sleep(sleep_ns / 1e9)
        late.append(time.monotonic_ns() - began - sleep_ns)
    return late


def clocks() -> list[int]:
    """Return the length of a sleep by each clock."""
    began = [time.clock_gettime_ns(clock) for clock in CLOCKS]
    time.sleep(0.3)
    return [time.clock_gettime_ns(clock) - start for clock, start in zip(CLOCKS, began, strict=True)]


def timer(interval_ns: int = 250_000, count: int = 40) -> list[int]:
    """Return when a periodic timerfd was read, relative to its start."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.timerfd_create(time.CLOCK_MONOTONIC, 0)
    value = struct.pack("4q", 0, interval_ns, 0, interval_ns)
    began = time.monotonic_ns()
    libc.timerfd_settime(descriptor, 0, value, None)
    with open(descriptor, "rb", buffering=0) as file:
        return [(file.read(8), time.monotonic_ns() - began)[1] for _ in range(count)]


def serialised() -> list[int]:
    """Return the gaps between arrivals of full-size frames over the wire."""
    receiver = Receiver()
    sender = Sender()
    for number in range(FRAMES):
        sender.send(FRAME, number)
    stamps = [stamp for stamp, _ in receiver.take_all(0.01)]
    return [late - early for early, late in itertools.pairwise(stamps)]


def stamped() -> tuple[int, int]:
    """Return the time from a datagram's transmit stamp to its receive stamp, and from a clock
    reading before sending to the transmit stamp."""
    enter("b")
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("10.9.0.2", PORT))
    enter("a")
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for end in (receiver, sender):
        end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, TIMESTAMPING)
    time.sleep(0.05)  # the kernel enables stamps after a moment
    before = time.time_ns()
    sender.sendto(b"x" * 100, ("10.9.0.2", PORT))
    select.select([receiver], [], [], 1)
    arrived = stamp(receiver.recvmsg(200, 200)[1])
    poll = select.poll()
    poll.register(sender, 0)  # the error queue
    poll.poll(1000)
    left = stamp(sender.recvmsg(200, 200, socket.MSG_ERRQUEUE)[1])
    return arrived - left, left - before


def stamp(extra: list[tuple[int, int, bytes]]) -> int:
    seconds, ns = struct.unpack("qq", next(data for _, kind, data in extra if kind == SO_TIMESTAMPING)[:16])
    return int(seconds * 10**9 + ns)


class Tap:
    """A packet socket that sees what an interface sends and receives, with the kernel's stamps."""

    def __init__(self, namespace: str) -> None:
        enter(namespace)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.bind((f"{namespace}0", 3))  # ETH_P_ALL, required to see outgoing frames
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setblocking(False)

    def frames(self) -> Iterator[tuple[int, bool, bytes]]:
        """Yield stamp, whether it is outgoing, and the frame."""
        while True:
            try:
                data, extra, _, address = self.socket.recvmsg(2000, 64)
            except BlockingIOError:
                return
            seconds, ns = struct.unpack("qq", extra[0][2][:16])
            yield seconds * 10**9 + ns, address[2] == 4, data


def connected() -> tuple[socket.socket, socket.socket]:
    enter("b")
    listener = socket.create_server(("10.9.0.2", 0))
    enter("a")
    client = socket.create_connection(listener.getsockname(), timeout=10)
    server, _ = listener.accept()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client, server


def payload(frame: bytes) -> int:
    """Return the bytes of data in a TCP segment."""
    (total,) = struct.unpack("!H", frame[16:18])
    return int(total - 20 - (frame[46] >> 4) * 4)


def delayed_ack() -> int:
    """Return how long a receiver delays an acknowledgement."""
    client, server = connected()
    tap = Tap("a")
    for _ in range(40):  # leave quick-ack mode
        client.send(b"x")
        server.recv(1)
        server.send(b"y")
        client.recv(1)
    time.sleep(0.5)
    list(tap.frames())
    server.setsockopt(socket.IPPROTO_TCP, TCP_QUICKACK, 0)
    client.send(b"x")
    time.sleep(0.2)
    frames = list(tap.frames())
    sent = next(at for at, left, frame in frames if left and payload(frame))
    return next(at for at, left, frame in frames if not left and not payload(frame)) - sent


def tcp_info() -> dict[str, int]:
    """Return tcp_info, in its own units, of a connection that has been idle for 0.25 s."""
    client, _ = connected()
    client.send(b"x" * 100)
    time.sleep(0.25)
    words = struct.unpack_from("10I", client.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 200), 8)
    return {"rto_us": words[RTO], "last_sent_ms": words[LAST_DATA_SENT]}


def retransmissions() -> list[int]:
    """Return the times of retransmissions of an unacknowledged segment, after its first sending."""
    client, _ = connected()
    tap = Tap("a")
    client.send(b"x" * 100)
    time.sleep(0.5)
    list(tap.frames())
    tc("qdisc add dev b0 root netem loss 100%", "b")
    client.send(b"x" * 100)
    time.sleep(RTO_S)
    sent = [at for at, left, frame in tap.frames() if left and payload(frame)]
    tc("qdisc del dev b0 root", "b")
    return [at - sent[0] for at in sent[1:]]


build()
offloads_off()
Path("/proc/self/timerslack_ns").write_text("1")
for namespace in "ab":
    enter(namespace)
    Path("/proc/sys/net/ipv4/tcp_early_retrans").write_text("0")  # no loss probe before the timeout
enter()
values: dict[str, object] = {
    check.__name__: check()
    for check in (sleeps, clocks, timer, stamped, tcp_info, delayed_ack, retransmissions)
}
tc(f"qdisc add dev a0 root wire rate {sys.argv[1]}mbit")
values["gaps"] = serialised()
values["after"] = sleeps()
report(**values)
