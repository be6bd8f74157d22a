"""A change, or a device that goes down and up, gives nobody a fresh budget.

Frames have 1042 B, a budget is two of them. `most` is the most bytes sent in any window of the
shorter epoch, before or after the change, less 25 us; `passed` is the number of frames received.

- `longer`: level 5 is kept backlogged while its epoch changes between 10 and 40 ms, every 15 ms.
- `shortened`: a budget leaves; after the time of the new epoch has passed, the epoch is reduced to
  a hundredth.
- `fresh`: a budget for an epoch of 10 s has left when the device goes down and up, its queue length
  changes, the level becomes unlimited and then limited again, or is limited for the first time.
- `split`: a UDP packet of ten segments waits at an unlimited level, which then gets a budget of two
  segments.
- `between`: a UDP packet of 40 segments waits at an unlimited level below an HTB class of 8 Mb/s,
  while another level has a budget; 5 ms later an urgent frame arrives.
- `segments`: level 5 has a limit of 45, and a UDP packet of 40 segments uses up its budget of two;
  then another such packet and eight frames follow.
- `never`: a UDP packet of 40 segments at a limit of 39.
"""
import contextlib
import socket
import time

import rig

SIZE = 1042
BUDGET = 2 * SIZE
UDP_SEGMENT = 103
MS = 1_000_000


def most(stamps: list[tuple[int, int]], window_ns: int) -> float:
    """Return the most bytes in any window, in budgets."""
    return rig.most_in_window([(stamp, SIZE) for stamp, _ in stamps], window_ns - 25_000) / BUDGET


def changed(before: str, after: str, least_ms: int) -> dict[str, float]:
    rig.tc(f"qdisc add dev a0 root handle 6: qjump level 5 {BUDGET} {before}")
    for number in range(40):
        sender.send(SIZE, number)
    for turn in range(6):
        time.sleep(0.015)
        rig.tc(f"qdisc change dev a0 root handle 6: qjump {(after, before)[turn % 2]}")
    stamps = receiver.take_all()
    rig.tc("qdisc del dev a0 root")
    return {"passed": len(stamps), "most": most(stamps, least_ms * MS)}


def shortened(before: str, after: str, after_ms: int) -> dict[str, float]:
    rig.tc(f"qdisc add dev a0 root handle 6: qjump level 5 {BUDGET} epoch {before}")
    for number in range(12):
        sender.send(SIZE, number)
    time.sleep(3 * after_ms / 1000)
    rig.tc(f"qdisc change dev a0 root handle 6: qjump epoch {after}")
    stamps = receiver.take_all(8 * after_ms / 1000)
    rig.tc("qdisc del dev a0 root")
    return {"passed": len(stamps), "most": most(stamps, after_ms * MS)}


LIMITED = f"tc -n a qdisc change dev a0 root handle 6: qjump level 5 {BUDGET}"
WAYS = {
    "nothing": [],
    "down and up": ["ip -n a link set a0 down", "ip -n a link set a0 up"],
    "queue length": ["ip -n a link set a0 txqueuelen 500"],
    "unlimited and back": ["tc -n a qdisc change dev a0 root handle 6: qjump level 5 unlimited", LIMITED],
    "unlimited at first": [LIMITED],
}


def fresh(way: str) -> list[int]:
    budget = "unlimited" if way == "unlimited at first" else BUDGET
    rig.tc(f"qdisc add dev a0 root handle 6: qjump epoch 10s level 5 {budget}")
    for number in range(2):
        sender.send(SIZE, number)
    before = len(receiver.take_all())
    for command in WAYS[way]:
        rig.run(command)
    for number in range(3):
        sender.send(SIZE, number)
    after = len(receiver.take_all(1.0))
    rig.tc("qdisc del dev a0 root")
    receiver.take_all()
    return [before, after]


def datagrams(priority: int, segments: int) -> None:
    rig.enter("a")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
        sending.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
        with contextlib.suppress(OSError):
            sending.sendto(bytes(1000 * segments), ("10.9.0.2", 9))


def between() -> float:
    """Return the wait of an urgent frame behind the datagram, in times of its segments."""
    rig.tc("qdisc add dev a0 root handle 5: htb default 1")
    rig.tc("class add dev a0 parent 5: classid 5:1 htb rate 8mbit burst 1600 cburst 1600")
    rig.tc(f"qdisc add dev a0 parent 5:1 handle 6: qjump epoch 10s level 5 {BUDGET} limit 100")
    receiver.take_all()
    datagrams(0, 40)
    time.sleep(0.005)
    sent = rig.now()
    busy.send(60, 77)
    arrived = next(stamp for stamp, number in receiver.take_all() if number == 77)
    rig.tc("qdisc del dev a0 root")
    return (arrived - sent) / (SIZE * 1000)


def segments() -> dict[str, int]:
    rig.tc(f"qdisc add dev a0 root handle 6: qjump epoch 10s level 5 {BUDGET} limit 45")
    datagrams(5, 40)
    datagrams(5, 40)
    for number in range(8):
        sender.send(SIZE, number)
    found = rig.level("qjump", 5)
    rig.tc("qdisc del dev a0 root")
    receiver.take_all()
    return found


def never() -> dict[str, int]:
    rig.tc("qdisc add dev a0 root handle 6: qjump limit 39")
    datagrams(5, 40)
    found = rig.level("qjump", 5)
    rig.tc("qdisc del dev a0 root")
    receiver.take_all()
    return found


def split() -> dict[str, object]:
    rig.tc("qdisc add dev a0 root handle 5: htb default 1")
    rig.tc("class add dev a0 parent 5: classid 5:1 htb rate 1mbit burst 1600 cburst 1600")
    rig.tc("qdisc add dev a0 parent 5:1 handle 6: qjump")
    busy.send(1500)
    busy.send(1500)
    datagrams(5, 10)
    before = rig.level("qjump", 5)
    rig.tc(f"qdisc change dev a0 parent 5:1 handle 6: qjump epoch 30ms level 5 {BUDGET}")
    after, parent = rig.level("qjump", 5), rig.qdisc("htb")
    time.sleep(1)
    gone = rig.level("qjump", 5)
    left = rig.qdisc("htb")
    rig.tc("qdisc del dev a0 root")
    return {"before": before, "after": after, "gone": gone, "parents": [parent["qlen"], left["qlen"]]}


rig.build()
receiver, sender, busy = rig.Receiver(), rig.Sender(5), rig.Sender(7)
shorter = {"plain": shortened("3600s", "20ms", 20), "slack": shortened("20ms slack 3s", "20ms slack 0ms", 20)}
rig.report(budget=BUDGET, longer=changed("epoch 10ms", "epoch 40ms", 10), shortened=shorter, fresh={way: fresh(way) for way in WAYS},
           split=split(), between=between(), segments=segments(), never=never())
