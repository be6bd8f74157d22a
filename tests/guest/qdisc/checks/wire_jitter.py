"""Jitter: UDP datagrams through a wire of 1 Gb/s whose jitter is 0:1ms,50:2ms,99:5ms,100:8ms, seed 7.

`took_ns`: 200 datagrams sent alone, less the least that one takes without jitter; `drawn_ns` is what the kernel's generator gives from that
seed, computed here. Then 3 flows of 40 datagrams back to back: `kept`, in what order each flow's came, and `overtook`, how many came before
one sent earlier; `again_ns`: by how much they come at other times, since the first was sent, with the same seed again. `emptied`: a wire with frames in flight is replaced; `plain`: without jitter,
in order.
Assert: |took_ns - drawn_ns| and `again_ns` are a few us; flows are kept in order and overtake each other.
"""

import contextlib
import itertools
import socket
import struct
import time

import rig

QUANTILES = ((0, 1_000_000), (50, 2_000_000), (99, 5_000_000), (100, 8_000_000))
JITTER = "jitter " + ",".join(f"{percent}:{ns}ns" for percent, ns in QUANTILES)
MOST = 2**32 - 1
FLOWS, EACH = 3, 40


def draws(seed: int, count: int) -> list[int]:
    """What prandom_seed_state() and prandom_u32_state() give, as shares between the quantiles."""
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


def wire(options: str) -> None:
    rig.tc(f"qdisc replace dev a0 root handle 5: wire rate 1gbit {options}")


def arrivals(count: int) -> list[tuple[int, int, int]]:
    """Flow, number and the kernel's stamp of so many datagrams, as they come."""
    found = []
    for _ in range(count):
        data, extra, _, _ = receiver.recvmsg(2000, 64)
        seconds, ns = struct.unpack("qq", extra[0][2][:16])
        found.append((*struct.unpack("!II", data[:8]), seconds * 10**9 + ns))
    return found


def alone(count: int) -> list[int]:
    took = []
    for number in range(count):
        before = rig.now()
        senders[0].send(struct.pack("!II", 0, number))
        took.append(arrivals(1)[0][2] - before)
        time.sleep(0.001)
    return took


def send_all() -> None:
    for number in range(EACH):
        for flow, sender in enumerate(senders):
            sender.send(struct.pack("!II", flow, number))


def burst() -> dict[tuple[int, int], int]:
    """When each came since the first was sent, in the order of their coming."""
    began = rig.now()
    send_all()
    return {(flow, number): ns - began for flow, number, ns in arrivals(FLOWS * EACH)}


def drain() -> None:
    receiver.settimeout(0.02)
    with contextlib.suppress(TimeoutError):
        while True:
            receiver.recv(2000)
    receiver.settimeout(5)


def sent_before(later: tuple[int, int], earlier: tuple[int, int]) -> bool:
    return (later[1], later[0]) > (earlier[1], earlier[0])


rig.build()
rig.enter("b")
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("10.9.0.2", 9))
receiver.settimeout(5)
receiver.setsockopt(socket.SOL_SOCKET, rig.SO_TIMESTAMPNS, 1)
rig.enter("a")
senders = []
for flow in range(FLOWS):
    senders.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    senders[-1].bind(("10.9.0.1", 1000 + flow))
    senders[-1].connect(("10.9.0.2", 9))
wire("")
alone(5)  # warm up
least = min(alone(20))
rig.tc("qdisc del dev a0 root")
wire(f"{JITTER} seed 7")
took = [ns - least for ns in alone(200)]
bursts = []
for _ in range(2):
    rig.tc("qdisc del dev a0 root")
    wire(f"{JITTER} seed 7")
    bursts.append(burst())
first, second = bursts
came = list(first)
for sender in senders:
    sender.send(bytes(8))
rig.tc("qdisc del dev a0 root")  # with frames in flight
wire(f"{JITTER} seed 7")
send_all()
rig.run("ip -n a link set a0 down")  # resets it, with frames in flight
rig.run("ip -n a link set a0 up")
emptied = rig.qdisc("wire")["qlen"]
wire("jitter none")
drain()  # what had arrived before
rig.run(f"ip -n a neigh replace 10.9.0.2 lladdr {rig.address_of('b')} dev a0 nud permanent")
rig.report(
    took_ns=took,
    drawn_ns=draws(7, 200),
    kept=[[number for f, number in came if f == flow] for flow in range(FLOWS)],
    overtook=sum(any(sent_before(one, other) for one in came[:place]) for place, other in enumerate(came)),
    again_ns=[abs(second[datagram] - ns) for datagram, ns in first.items()],
    emptied=emptied,
    plain=list(burst()) == [(f, n) for n in range(EACH) for f in range(FLOWS)],
)
