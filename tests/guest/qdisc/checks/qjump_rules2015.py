"""Mode 2015, the rules of the published module, in exact numbers.

Frames of 500 B, a budget of three of them. `passed` are how many of each burst were taken.
`edge`: T = 10 ms. A frame dearer than the budget starts an epoch and is dropped; just before its end a burst of five, just after it
another. Assert: passed [0, 3, 3], `most` bytes in a window of T = two budgets.
`first`: T = 100 ms; bursts 50 and 105 ms after the qdisc was made. Assert: 2015 [3, 3], as its first epoch starts with the qdisc; drop with
first-packet epochs [3, 0].
`clamped`: level of priorities 0, 7, 8, 9, 15, 16 and 1000 in mode 2015 and in the default. `zero`: five frames of a level with a
budget of 0; assert: none passes.
`gso`: a UDP packet of ten segments (10 * 1042 B) under budgets of 10420 and of 10419 B. Assert: 2015: [1 packet sent], then dropped as
oversize; drop: segments, 10 and 9 of them.
`htb`: 20 bursts of five in as many epochs of 10 ms while level 7 keeps an HTB class of 8 Mb/s busy. Assert: 2015: most >= 3
budgets; delay (same set-up): most = the budget, and nothing is dropped.
"""
import contextlib
import socket
import time

import rig

SIZE = 500
BUDGET = 3 * SIZE
UDP_SEGMENT = 103


def burst(sender: rig.Sender, frames: int = 5) -> int:
    return sum(sender.send(SIZE, 1) for _ in range(frames))


def wait_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic() - 0.0005))
    while time.monotonic() < moment:
        pass


def add(options: str) -> float:
    """A qjump as root; the time when it was there."""
    rig.tc(f"qdisc add dev a0 root handle 6: qjump {options}")
    return time.monotonic()


def edge() -> dict[str, object]:
    add(f"epoch 10ms mode 2015 level 5 {BUDGET}")
    time.sleep(0.05)
    receiver.take()
    start = time.monotonic()
    passed = [int(senders[5].send(BUDGET + 1))]
    wait_until(start + 0.0085)
    passed.append(burst(senders[5]))
    wait_until(start + 0.0105)
    passed.append(burst(senders[5]))
    frames = [(stamp, SIZE) for stamp, _ in receiver.take_all()]
    stats = rig.level("qjump", 5)
    rig.tc("qdisc del dev a0 root")
    return {"passed": passed, "most": rig.most_in_window(frames, 10_000_000), "stats": stats}


def first(mode: str) -> list[int]:
    made = add(f"epoch 100ms level 5 {BUDGET} {mode}")
    passed = []
    for after in (0.05, 0.105):
        wait_until(made + after)
        passed.append(burst(senders[5]))
    rig.tc("qdisc del dev a0 root")
    return passed


def levels_of(mode: str) -> dict[int, int]:
    add(f"epoch 10ms {mode} " + " ".join(f"level {p} 1mb" for p in range(8)))
    found = {}
    for priority in (0, 7, 8, 9, 15, 16, 1000):
        before = {x["level"]: x["packets"] for x in rig.qdisc("qjump")["levels"]}
        burst(rig.Sender(priority), 1)
        after = {x["level"]: x["packets"] for x in rig.qdisc("qjump")["levels"]}
        found[priority] = next(p for p in after if after[p] != before[p])
    rig.tc("qdisc del dev a0 root")
    return found


def zero() -> dict[str, object]:
    add(f"epoch 10ms mode 2015 level 5 {BUDGET}")
    passed = burst(senders[3])
    stats = rig.level("qjump", 3)
    rig.tc("qdisc del dev a0 root")
    return {"passed": passed, "stats": stats}


def gso(mode: str, budget: int) -> dict[str, int]:
    add(f"epoch 1s mode {mode} level 5 {budget}")
    rig.enter("a")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 5)
        with contextlib.suppress(OSError):  # ENOBUFS: dropped by the qdisc
            sender.sendto(bytes(10_000), ("10.9.0.2", 9))
    stats = rig.level("qjump", 5)
    rig.tc("qdisc del dev a0 root")
    return stats


def htb(mode: str, bulk: str) -> dict[str, object]:
    rig.tc("qdisc add dev a0 root handle 5: htb default 1")
    rig.tc("class add dev a0 parent 5: classid 5:1 htb rate 8mbit burst 1600")
    rig.tc(f"qdisc add dev a0 parent 5:1 handle 6: qjump epoch 10ms mode {mode} level 5 {BUDGET} level 7 {bulk}")
    receiver.take_all()
    start = time.monotonic()
    passed = 0
    for turn in range(20):
        for _ in range(10):  # 15 kB in 10 ms, of which the class sends 10
            senders[7].send(1500, 0)
        passed += burst(senders[5])
        wait_until(start + (turn + 1) * 0.0101)
    frames = [(stamp, SIZE) for stamp, number in receiver.take_all() if number]
    stats = rig.level("qjump", 5)
    rig.tc("qdisc del dev a0 root")
    return {"passed": passed, "received": len(frames), "most": rig.most_in_window(frames, 9_975_000), "stats": stats}


rig.build()
receiver = rig.Receiver()
senders = [rig.Sender(p) for p in range(8)]
rig.report(
    budget=BUDGET,
    edge=edge(),
    first={"2015": first("mode 2015"), "drop": first("mode drop epochs first-packet")},
    clamped={"2015": levels_of("mode 2015"), "delay": levels_of("mode delay")},
    zero=zero(),
    gso={f"{mode} {budget}": gso(mode, budget) for mode in ("2015", "drop") for budget in (10420, 10419)},
    htb={"2015": htb("2015", "4mb"), "delay": htb("delay", "unlimited")},
)
