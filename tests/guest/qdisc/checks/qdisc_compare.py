"""Compare schemes that limit level 4 to 8 frames of 1042 B in 10 ms; docs/qdisc.md has the table.

- `most`: the most bytes of the level in any 10 ms at the peer, in budgets, as root and below an HTB
  class of 12 Mb/s that bulk of level 7 saturates in spells. Traffic straddles epochs, as in
  qjump_window. `lost`: frames lost of the 1260 sent, as root; `lost_below`: below HTB.
- `quarters`: the most in any 10 ms of a level with a budget of one frame, for frames of a quarter
  of it that are sent eight at once.
- `message_ns`: the longest time that a message of one budget takes in an idle network.
- `tcp`: the share of a budget of 4 and of 16 full-size frames that one TCP flow gets in 4 s. TCP
  makes packets of several frames whatever ethtool says. qjump and tbf split them; BPF cannot, so it
  charges them whole and drops those above a budget; cbs charges each as one frame, whatever its
  size.
  `tcp_single`: the same with packets of one frame (gso_max_segs). `tcp_two`: of two flows together.
- `wait_ns`: the longest wait of a frame of level 7, sent every 7 ms, above a 10 Mb/s wire with
  level 0 backlogged; `bulk_ns` is the time of a full-size frame on that wire.
- `most_level7`: `most` as root if level 7 has the budget: fq of 6.1 does not hold that priority.

`bpf qdisc`, which 6.12 does not have, is only measured if it is named. It can only be the root:
`refused` is the kernel's message elsewhere. Instead of the HTB class and the wire it limits its own
rate to theirs. With etf the sender keeps the budget, in aligned epochs, and late frames are
dropped; TCP cannot do that.

Assert: qjump and bpf qdisc never exceed 1 budget in either place, lose nothing, and send a message
at once; every other scheme fails in one of these.
"""
import contextlib
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator

import bpf
import rig
import traffic

EPOCH_S, SIZE, FRAMES, TCP_FRAME = 0.01, 1042, 8, 1514
LEVEL, SO_MARK = 4, 36
BULK_NS = (TCP_FRAME + 24) * 8 * 100
PACED, TIMED = "prio + fq, paced sockets", "prio + etf, timed by the program"
SO_MAX_PACING_RATE, SO_TXTIME, CLOCK_TAI = 47, 61, 11
SPEED_KBIT = 10_000_000
"""The speed that every veth reports, which cbs takes for that of the link."""
PRIO = "prio bands 8 priomap 7 6 5 4 3 2 1 0 0 0 0 0 0 0 0 0"
SCHEMES = {
    "qjump": ["qdisc add dev a0 {above} handle 6: qjump epoch 10ms level 4 {budget} limit 4000"],
    "qjump2015": ["qdisc add dev a0 {above} handle 6: qjump2015 epoch 10ms level 7 unlimited level 0 unlimited level 4 {budget}"],
    "prio + tbf": [f"qdisc add dev a0 {{above}} handle 6: {PRIO}", "qdisc add dev a0 parent 6:4 tbf rate {rate}bit burst {budget} limit 4mb"],
    "htb": ["qdisc add dev a0 {above} handle 6: htb default 10",
            "class add dev a0 parent 6: classid 6:1 htb rate 1gbit burst 15k",
            *(f"class add dev a0 parent 6:1 classid 6:1{p} htb prio {7 - p} rate 100kbit ceil 1gbit burst 2k cburst 2k" for p in (0, 7)),
            "class add dev a0 parent 6:1 classid 6:14 htb prio 3 rate {rate}bit burst {budget} cburst {budget}",
            "qdisc add dev a0 parent 6:14 pfifo limit 4000"],
    "clsact police + prio": ["qdisc add dev a0 clsact",
                             "filter add dev a0 egress protocol all prio 1 handle 4 fw action police rate {rate}bit burst {budget} conform-exceed drop",
                             f"qdisc add dev a0 {{above}} handle 6: {PRIO}"],
    "bpf times + prio, fq": ["qdisc add dev a0 clsact",
                             "filter add dev a0 egress protocol all prio 1 {bpf}",
                             f"qdisc add dev a0 {{above}} handle 6: {PRIO}",
                             *(f"qdisc add dev a0 parent 6:{band} fq limit 4000 flow_limit 4000" for band in (1, 4))],
    "bpf qdisc": ["qdisc add dev a0 {above} handle 6: {bpf}"],
    "prio + tbf, burst of a frame": [f"qdisc add dev a0 {{above}} handle 6: {PRIO}",
                                     "qdisc add dev a0 parent 6:4 tbf rate {rate}bit burst {frame} limit 4mb"],
    PACED: [f"qdisc add dev a0 {{above}} handle 6: {PRIO}", "qdisc add dev a0 parent 6:4 fq limit 4000 flow_limit 4000 quantum {frame} initial_quantum {frame}"],
    "prio + cake": [f"qdisc add dev a0 {{above}} handle 6: {PRIO}",
                    "qdisc add dev a0 parent 6:4 cake bandwidth {rate}bit besteffort raw memlimit 16mb"],
    "prio + cbs": [f"qdisc add dev a0 {{above}} handle 6: {PRIO}",
                   "qdisc add dev a0 parent 6:4 handle 64: cbs idleslope {kbit} sendslope {slope} hicredit {frame} locredit -{frame}",
                   "qdisc add dev a0 parent 64:1 pfifo limit 4000"],
    TIMED: [f"qdisc add dev a0 {{above}} handle 6: {PRIO}", "qdisc add dev a0 parent 6:4 etf clockid CLOCK_TAI delta 300000"],
}
BPF: dict[str, Callable[..., contextlib.AbstractContextManager[str]]] = {"bpf times + prio, fq": bpf.edt, "bpf qdisc": bpf.qdisc}
SINGLE = {*BPF, "prio + cbs"}
ABOVE = {
    "root": (["root"], []),
    "htb": (["parent 5:1"], ["qdisc add dev a0 root handle 5: htb default 1", "class add dev a0 parent 5: classid 5:1 htb rate 12mbit burst 15k"]),
    "wire": (["parent 5:1"], ["qdisc add dev a0 root handle 5: wire rate 10mbit limit 1mb"]),
}


OWN_RATE = {"root": (0, 0), "htb": (12_000_000, 0), "wire": (10_000_000, 24)}
"""For bpf qdisc: bit/s, and bytes added per frame."""


@contextlib.contextmanager
def scheme(name: str, place: str, frame: int, frames: int, level: int = LEVEL) -> Iterator[None]:
    budget = frame * frames
    own = OWN_RATE[place] if name == "bpf qdisc" else ()
    (above,), commands = ABOVE["root" if own else place]
    with BPF[name](round(EPOCH_S * 1e9), {level: budget}, *own) if name in BPF else contextlib.nullcontext() as program:
        for command in [*commands, *SCHEMES[name]]:
            rate = round(budget * 8 / EPOCH_S)
            rig.tc(command.format(above=above, frame=frame, budget=budget, rate=rate, kbit=rate // 1000, slope=rate // 1000 - SPEED_KBIT, bpf=program))
        yield
        for parent in ("clsact", "root"):
            rig.tc(f"qdisc del dev a0 {parent}", check=False)


def refused() -> dict[str, str]:
    """Return the kernel's messages for a bpf qdisc below another qdisc."""
    words = {}
    for place in ("htb", "wire"):
        (above,), commands = ABOVE[place]
        with bpf.qdisc(round(EPOCH_S * 1e9), {}) as kind:
            for command in commands:
                rig.tc(command)
            words[place] = rig.tc(f"qdisc add dev a0 {above} handle 6: {kind}", check=False).stderr
            rig.tc("qdisc del dev a0 root")
    return words


class TimedSender(rig.Sender):
    """Sets each frame's launch time to the start of an epoch with room, at least 1 ms ahead."""

    epoch, room, budget = 0, 0, SIZE * FRAMES

    def send(self, size: int, number: int = 0, pcp: int | None = None) -> bool:
        ns = round(EPOCH_S * 1e9)
        first = (time.clock_gettime_ns(CLOCK_TAI) + 1_000_000) // ns + 1
        if self.epoch < first or self.room < size:
            self.epoch, self.room = max(self.epoch + 1, first), self.budget
        self.room -= size
        launch = (socket.SOL_SOCKET, SO_TXTIME, (self.epoch * ns).to_bytes(8, "little"))
        return self.socket.sendmsg([self.frame(size, number, pcp)], [launch]) == size


def mark(name: str, level: int, connection: socket.socket, budget: int = SIZE * FRAMES) -> None:
    """Give a socket its level in the way that the scheme expects."""
    if level == LEVEL and name == PACED:
        connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, round(budget / EPOCH_S))
    if level == LEVEL and name == TIMED:
        connection.setsockopt(socket.SOL_SOCKET, SO_TXTIME, struct.pack("iI", CLOCK_TAI, 0))
    priority = 0x60010 + level if name == "htb" else level
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
    connection.setsockopt(socket.SOL_SOCKET, SO_MARK, level)


def sender(name: str, level: int, budget: int = SIZE * FRAMES) -> rig.Sender:
    made = TimedSender() if level == LEVEL and name == TIMED else rig.Sender()
    if isinstance(made, TimedSender):
        made.budget = budget
    mark(name, level, made.socket, budget)
    return made


def window(name: str, place: str, level: int = LEVEL) -> tuple[float, int, int]:
    with scheme(name, place, SIZE, FRAMES, level):
        sent = traffic.straddle(sender(name, level), sender(name, 7) if place == "htb" else None, SIZE)
        stamps = [(t, SIZE) for t, n in receiver.take_all() if n]
    return rig.most_in_window(stamps, round(EPOCH_S * 1e9) - 25_000) / (SIZE * FRAMES), sent, sent - len(stamps)


def urgent(name: str) -> int:
    """Return the longest delay of an urgent frame at the receiver, less its transmission time."""
    with scheme(name, "wire", SIZE, FRAMES):
        bulk, top = sender(name, 0), sender(name, 7)
        sent: dict[int, int] = {}
        for number in range(1, 101):
            for _ in range(40 if number == 1 else 8):  # the wire sends six in 7 ms
                bulk.send(1514, 0)
            sent[number] = rig.now()
            top.send(60, number)
            time.sleep(0.007)
        arrived = {n: t for t, n in receiver.take_all() if n}
    own = (64 + 20) * 8 * 100
    return max(arrived[n] - sent[n] - own for n in arrived) if len(arrived) == len(sent) else -1


def quarters(name: str) -> float:
    """Return the most in any T, in budgets of one frame, of quarter frames sent eight at once."""
    size, number = SIZE // 4, 0
    with scheme(name, "root", SIZE, 1):
        metered = sender(name, LEVEL, SIZE)
        for i in range(60):
            for _ in range(8):
                number += 1
                metered.send(size, number)
            time.sleep(2 * EPOCH_S + i * 167e-6)
        stamps = [(t, size) for t, n in receiver.take_all() if n]
    return rig.most_in_window(stamps, round(EPOCH_S * 1e9) - 25_000) / SIZE


def message(name: str) -> int:
    """Return the longest time of 20 messages of one budget at different phases of T."""
    took = []
    with scheme(name, "root", SIZE, FRAMES):
        metered = sender(name, LEVEL)
        for number in range(20):
            time.sleep(3.05 * EPOCH_S)
            began = rig.now()
            for _ in range(FRAMES):
                metered.send(SIZE, number)
            arrived = receiver.take_all(quiet=2 * EPOCH_S)
            took.append(arrived[-1][0] - began if len(arrived) == FRAMES else -1)
    return max(took) if min(took) > 0 else -1


def tcp(name: str, frames: int, connections: int = 1) -> float:
    # An unlimited flow sends more in 5 s than the guest's memory; do not keep copies of it.
    receiver.socket.setsockopt(socket.SOL_SOCKET, rig.SO_RCVBUFFORCE, 1 << 16)
    with scheme(name, "root", TCP_FRAME, frames):
        flows = [socket.socket() for _ in range(connections)]
        for flow in flows:
            mark(name, LEVEL, flow, frames * TCP_FRAME)
        others = [threading.Thread(target=traffic.flood, args=(flow, received)) for flow in flows[1:]]
        for other in others:
            other.start()
        rate = traffic.flood(flows[0], received)
        for other in others:
            other.join()
        for flow in flows:
            traffic.reset(flow)
        time.sleep(0.1)
    receiver.take()
    receiver.socket.setsockopt(socket.SOL_SOCKET, rig.SO_RCVBUFFORCE, 1 << 29)
    return rate / 1448 * TCP_FRAME / (frames * TCP_FRAME / EPOCH_S)


rig.build()
rig.offloads_off()
receiver = rig.Receiver()
received = traffic.listen()
cases = {}
for name in sys.argv[1:] or [name for name in SCHEMES if name != "bpf qdisc"]:
    most, sent, lost = window(name, "root")
    below, _, lost_below = window(name, "htb")
    cases[name] = {"most": most, "below_htb": below, "sent": sent, "lost": lost, "lost_below": lost_below, "quarters": quarters(name),
                   "message_ns": message(name),
                   "wait_ns": urgent(name),
                   "tcp": {str(frames): tcp(name, frames) for frames in (4, 16) if name != TIMED}}
if PACED in cases:
    cases[PACED]["tcp_two"] = {"16": tcp(PACED, 16, connections=2)}
if "bpf times + prio, fq" in cases:
    cases["bpf times + prio, fq"]["most_level7"] = window("bpf times + prio, fq", "root", 7)[0]
rig.run("ip -n a link set a0 gso_max_segs 1")
for name in SINGLE & cases.keys():
    cases[name]["tcp_single"] = {str(frames): tcp(name, frames) for frames in (4, 16)}
if "bpf qdisc" in cases:
    cases["bpf qdisc"]["refused"] = refused()
rig.report(bulk_ns=BULK_NS, cases=cases)
