"""The latency theorem of QJump: n senders, one receiver, one switch, all links saturated.

Host i is the end h<i> of a veth pair. Frames that arrive at its other end p<i> are redirected to
the port a0, whose peer b0 is the receiver: a store-and-forward switch with all traffic to one host.
Every port is a wire of R bit/s that classifies by PCP; hosts have qjump below it. Bulk (level 0,
unlimited) consists of full frames, which take b on a wire including preamble and gap. Packets of
the top level (7, one packet per budget) take c = 3 b / n. T = 2 n c, divided by the divisor in the
argument.

A sender waits T + b + 100 us between its packets and, with the whole epoch, a random time below T /
4; but at multiples of 8 T all send at once. b is needed because a packet may find a bulk frame on
the wire and leave up to b late. The next one, sent T later, would be held (qjump charges at
dequeue), find another bulk frame, and so fall behind without limit, by b / 2 per packet: with T
alone, n = 3 held 592 of 600 packets, the last for 117 ms.

Arguments: n:packets:divisor, .... Per case: `waits`, every hundredth of the delays, longest first
(stamp at the receiver minus the time before the system call); `lone_ns`, the median of 20 such
delays in the idle network; counters; `busy`, the fraction of time that the wires of the hosts (the
smallest) and of the receiver's port were sending.
"""
import heapq
import json
import random
import struct
import sys
import time

import rig

RATE, FRAME = 10_000_000, 1514
FRAMING = 24  # bytes: FCS 4, preamble 8, gap 12
BULK_NS = (FRAME + FRAMING) * 8 * 10**9 // RATE
AHEAD_NS = 100_000_000  # transmission time of bulk waiting in each host
MARGIN_NS = 100_000  # for processing: a packet takes some 10 us to the wire
BULK = 0x88B6  # IEEE 802 local experimental 2, which nobody receives


class Host:
    """A sender of both kinds of frames."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.top, bulk = rig.Sender(priority=7), rig.Sender(priority=0)
        for sender in (self.top, bulk):
            sender.socket.bind((device, 0))
        self.bulk = bulk.socket
        self.bulk_frame = (bulk.head + struct.pack("!HHH", 0x8100, 0 << 13 | 2, BULK)).ljust(FRAME, b"\0")
        self.busy_until = 0  # ns: when the wire will be idle

    def feed(self, now: int, top_ns: int = 0) -> None:
        """Account for a packet of top_ns, and add bulk until 100 ms of it wait."""
        self.busy_until = max(self.busy_until, now) + top_ns
        while self.busy_until < now + AHEAD_NS:
            self.bulk.send(self.bulk_frame)
            self.busy_until += BULK_NS


def build(n: int) -> list[Host]:
    rig.build()
    rig.tc(f"qdisc add dev a0 root handle 5: wire rate {RATE}")
    for i in range(n):
        rig.run(f"ip -n a link add h{i} type veth peer name p{i}")
        for end in (f"h{i}", f"p{i}"):
            rig.run(f"ip -n a link set {end} addrgenmode none up")
        rig.tc(f"qdisc add dev h{i} root handle 5: wire rate {RATE}")
        rig.tc(f"qdisc add dev p{i} ingress")
        rig.tc(f"filter add dev p{i} ingress matchall action mirred egress redirect dev a0")
    return [Host(f"h{i}") for i in range(n)]


Counters = dict[tuple[str, str], list[dict[str, int]]]


def shown() -> tuple[int, Counters]:
    """Return the time, and the counters of levels by device and kind of qdisc."""
    at = rig.now()
    return at, {(q["dev"], q["kind"]): q["levels"] for q in json.loads(rig.tc("-j -s qdisc show").stdout) if "levels" in q}


def top(counters: Counters, name: str) -> int:
    """Sum a counter of level 7 over all qdiscs that have it."""
    return sum(level.get(name, 0) for levels in counters.values() for level in levels if level["level"] == 7)


def transmit(hosts: list[Host], budget: int, packets: int, epoch: int, draw: random.Random, eager: bool) -> list[int]:
    """Send the packets; return the time of each by its number."""
    start = rig.now()
    due = [(start + draw.randrange(epoch), i) for i in range(len(hosts))]
    heapq.heapify(due)
    sent = [0] * (packets + 1)  # growing a dict delayed packets, so that 3 of 100,000 were held
    for number in range(1, packets + 1):
        when, i = due[0]
        wait = when - rig.now()
        if wait > 0:
            time.sleep(wait / 1e9)
        sent[number] = now = rig.now()
        hosts[i].top.send(budget - FRAMING, number, 7)
        earliest = now + epoch + BULK_NS + MARGIN_NS
        together = -(-earliest // (8 * epoch)) * 8 * epoch
        if not eager:
            earliest = together if together < earliest + epoch else earliest + draw.randrange(epoch // 4)
        heapq.heapreplace(due, (earliest, i))
        hosts[i].feed(now, budget * 8 * 10**9 // RATE)
    return sent


def case(hosts: list[Host], receiver: rig.Receiver, packets: int, divisor: int) -> dict[str, object]:
    n = len(hosts)
    budget = 3 * (FRAME + FRAMING) // n
    packet_ns = budget * 8 * 10**9 // RATE
    epoch = 2 * n * packet_ns // divisor
    for host in hosts:
        rig.tc(f"qdisc replace dev {host.device} parent 5:1 handle 6: qjump epoch {epoch}ns level 7 {budget} overhead {FRAMING} mpu 84")
    alone = []
    for number in range(20):
        before = rig.now()
        hosts[number % n].top.send(budget - FRAMING, 0, 7)
        alone.append(receiver.take_all(quiet=2e-9 * epoch)[0][0] - before)
    for host in hosts:
        host.feed(rig.now())
    time.sleep(0.01)
    start, first = shown()
    sent = transmit(hosts, budget, packets, epoch, random.Random(f"{n} {packets} {divisor}"), eager=divisor > 1)
    end, last = shown()
    arrived = {number: stamp for stamp, number in receiver.take_all() if number}
    used = {device: sum(y["bytes"] - x["bytes"] for x, y in zip(levels, last[device, "wire"], strict=True)) * 8e9 / RATE / (end - start)
            for (device, kind), levels in first.items() if kind == "wire"}
    _, drained = shown()
    waits = sorted((stamp - sent[number] for number, stamp in arrived.items()), reverse=True)
    return {
        "n": n, "divisor": divisor, "epoch_ns": epoch, "packet_ns": packet_ns, "sent": len(sent) - 1, "arrived": len(arrived),
        "waits": waits[::100], "lone_ns": sorted(alone)[10], "throttled": top(drained, "throttled") - top(first, "throttled"),
        "drops": top(drained, "drops") - top(first, "drops"),
        "busy": {"host": min(used[host.device] for host in hosts), "receiver": used["a0"]}, "virtual_s": (end - start) / 1e9,
    }


wanted = [tuple(map(int, argument.split(":"))) for argument in sys.argv[1:]]
everyone = build(max(n for n, _, _ in wanted))
taker = rig.Receiver()
taker.socket.bind(("b0", rig.ETHERTYPE))
rig.report(bulk_ns=BULK_NS, rate=RATE, cases=[case(everyone[:n], taker, packets, divisor) for n, packets, divisor in wanted])
