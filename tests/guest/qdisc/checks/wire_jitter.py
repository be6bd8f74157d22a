"""Jitter: TCP segments through a wire of 1 Gb/s with jitter 0:1ms,50:2ms,99:5ms,100:8ms, seed 7.

Raw sockets send and read them; their checksum is wrong, so that no TCP answers.

- `took_ns`: 200 segments sent alone, minus the least that one takes without jitter; `drawn_ns` is
  what the kernel's generator gives for that seed, computed here.
- Then 3 flows of 40 segments back to back: `kept`, the order in which each flow arrived;
  `overtook`, how many arrived before one sent earlier; `off_ns`, twice with the same seed: the
  deviation of each arrival from the time predicted by its sending, the seed and the previous one in
  its flow.
- `overtook_udp`: `overtook` for UDP datagrams from 3 ports.
- `emptied`: a wire with frames in flight is replaced; `plain`: without jitter, in order.
"""

import contextlib
import itertools
import socket
import struct
import time
from dataclasses import dataclass

import rig

QUANTILES = ((0, 1_000_000), (50, 2_000_000), (99, 5_000_000), (100, 8_000_000))
JITTER = "jitter " + ",".join(f"{percent}:{ns}ns" for percent, ns in QUANTILES)
MOST = 2**32 - 1
FLOWS, EACH = 3, 40


def draws(seed: int, count: int) -> list[int]:
    """Return the jitter that prandom_seed_state() and prandom_u32_state() give, in ns."""
    x = (seed >> 32 ^ seed << 10 ^ seed) & MOST
    state = [x + least if x < least else x for least in (2, 8, 16, 128)]
    turns = (
        (6, 13, 4294967294, 18),
        (2, 27, 4294967288, 2),
        (13, 21, 4294967280, 7),
        (3, 12, 4294967168, 13),
    )
    points = [(round(percent * MOST / 100), ns) for percent, ns in QUANTILES]
    found = []
    for _ in range(count):
        state = [
            ((s & c) << d & MOST) ^ (((s << a & MOST) ^ s) >> b)
            for s, (a, b, c, d) in zip(state, turns, strict=True)
        ]
        share = state[0] ^ state[1] ^ state[2] ^ state[3]
        (low, low_ns), (high, high_ns) = next(
            pair for pair in itertools.pairwise(points) if share <= pair[1][0]
        )
        found.append(low_ns + (share - low) * (high_ns - low_ns) // (high - low))
    return found


@dataclass(frozen=True)
class Burst:
    """Times (ns) by flow and number: of sending, and of arrival in order of arrivals."""

    sent: dict[tuple[int, int], int]
    came: dict[tuple[int, int], int]

    def off(self, drawn: list[int]) -> list[int]:
        """Return the deviation of each arrival from the time drawn, in order of sending."""
        due: dict[int, int] = {}
        off = []
        for (flow, number), draw in zip(self.sent, drawn, strict=True):
            due[flow] = max(due.get(flow, 0), self.sent[flow, number] + draw)
            off.append(abs(self.came[flow, number] - due[flow]))
        return off


class Flows:
    """Senders of one protocol in namespace a, each with its own port, and their receiver in b."""

    def __init__(self, protocol: int) -> None:
        self.protocol = protocol
        rig.enter("b")
        self.receiver = self._socket()
        self.receiver.settimeout(5)
        self.receiver.setsockopt(socket.SOL_SOCKET, rig.SO_TIMESTAMPNS, 1)
        rig.enter("a")
        self.socket = self._socket()
        self.socket.connect(("10.9.0.2", 0))

    def _socket(self) -> socket.socket:
        return socket.socket(socket.AF_INET, socket.SOCK_RAW, self.protocol)

    def send(self, flow: int, number: int) -> None:
        rest = bytes(16) if self.protocol == socket.IPPROTO_TCP else struct.pack("!HH", 16, 1)
        self.socket.send(struct.pack("!HH", 1000 + flow, 9) + rest + struct.pack("!II", flow, number))

    def arrivals(self, count: int) -> list[tuple[int, int, int]]:
        """Return flow, number and the kernel's stamp of the next `count` arrivals."""
        found = []
        for _ in range(count):
            data, extra, _, _ = self.receiver.recvmsg(2000, 64)
            seconds, ns = struct.unpack("qq", extra[0][2][:16])
            found.append((*struct.unpack("!II", data[-8:]), seconds * 10**9 + ns))
        return found

    def alone(self, count: int) -> list[int]:
        took = []
        for number in range(count):
            before = rig.now()
            self.send(0, number)
            took.append(self.arrivals(1)[0][2] - before)
            time.sleep(0.001)
        return took

    def send_all(self) -> dict[tuple[int, int], int]:
        """Send all; return the time of each."""
        sent = {}
        for number in range(EACH):
            for flow in range(FLOWS):
                sent[flow, number] = rig.now()
                self.send(flow, number)
        return sent

    def burst(self) -> "Burst":
        sent = self.send_all()
        return Burst(sent, {(flow, number): ns for flow, number, ns in self.arrivals(FLOWS * EACH)})

    def drain(self) -> None:
        self.receiver.settimeout(0.02)
        with contextlib.suppress(TimeoutError):
            while True:
                self.receiver.recv(2000)
        self.receiver.settimeout(5)


def wire(options: str) -> None:
    rig.tc(f"qdisc replace dev a0 root handle 5: wire rate 1gbit {options}")


def sent_before(later: tuple[int, int], earlier: tuple[int, int]) -> bool:
    return (later[1], later[0]) > (earlier[1], earlier[0])


def overtakers(burst: Burst) -> int:
    came = list(burst.came)
    return sum(any(sent_before(one, other) for one in came[:place]) for place, other in enumerate(came))


rig.build()
tcp, udp = Flows(socket.IPPROTO_TCP), Flows(socket.IPPROTO_UDP)
wire("")
tcp.alone(5)  # warm up
least = min(tcp.alone(20))
rig.tc("qdisc del dev a0 root")
wire(f"{JITTER} seed 7")
took = [ns - least for ns in tcp.alone(200)]
bursts = []
for flows in (tcp, tcp, udp):
    rig.tc("qdisc del dev a0 root")
    wire(f"{JITTER} seed 7")
    bursts.append(flows.burst())
first, second, of_udp = bursts
for flow in range(FLOWS):
    tcp.send(flow, 0)
rig.tc("qdisc del dev a0 root")  # with frames in flight
wire(f"{JITTER} seed 7")
tcp.send_all()
rig.run("ip -n a link set a0 down")  # resets the wire with frames in flight
rig.run("ip -n a link set a0 up")
emptied = rig.qdisc("wire")["qlen"]
wire("jitter none")
tcp.drain()  # discard earlier arrivals
rig.run(f"ip -n a neigh replace 10.9.0.2 lladdr {rig.address_of('b')} dev a0 nud permanent")
rig.report(
    took_ns=took,
    drawn_ns=draws(7, 200),
    kept=[[number for f, number in first.came if f == flow] for flow in range(FLOWS)],
    overtook=overtakers(first),
    overtook_udp=overtakers(of_udp),
    off_ns=[burst.off([least + ns for ns in draws(7, FLOWS * EACH)]) for burst in (first, second)],
    emptied=emptied,
    plain=list(tcp.burst().came) == [(f, n) for n in range(EACH) for f in range(FLOWS)],
)
