"""The rules of the published module (kind qjump2015) in exact numbers, compared with qjump's.

Frames have 500 B, a budget is three of them. `passed` are the frames accepted of each burst.

- `edge`: T = 10 ms. A frame larger than the budget starts an epoch and is dropped; a burst of five
  follows just before the end of the epoch, another just after it.
- `first`: T = 100 ms; bursts 50 and 105 ms after the qdisc was created.
- `clamped`: the levels of priorities 0, 7, 8, 9, 15, 16 and 1000.
- `zero`: five frames of a level with a budget of 0.
- `gso`: a UDP packet of ten segments (10 * 1042 B) under budgets of 10420 and 10419 B.
- `htb`: 20 bursts of five in as many epochs of 10 ms, while level 7 keeps an HTB class of 8 Mb/s
  busy.
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


def add(words: str) -> float:
    """Add a root qdisc; return the time at which it exists."""
    rig.tc(f"qdisc add dev a0 root handle 6: {words}")
    return time.monotonic()


def edge() -> dict[str, object]:
    add(f"qjump2015 epoch 10ms level 5 {BUDGET}")
    time.sleep(0.05)
    receiver.take()
    start = time.monotonic()
    passed = [int(senders[5].send(BUDGET + 1))]
    wait_until(start + 0.0085)
    passed.append(burst(senders[5]))
    wait_until(start + 0.0105)
    passed.append(burst(senders[5]))
    frames = [(stamp, SIZE) for stamp, _ in receiver.take_all()]
    stats = rig.level("qjump2015", 5)
    rig.tc("qdisc del dev a0 root")
    return {"passed": passed, "most": rig.most_in_window(frames, 10_000_000), "stats": stats}


def first() -> list[int]:
    made = add(f"qjump2015 epoch 100ms level 5 {BUDGET}")
    passed = []
    for after in (0.05, 0.105):
        wait_until(made + after)
        passed.append(burst(senders[5]))
    rig.tc("qdisc del dev a0 root")
    return passed


def levels_of(kind: str) -> dict[int, int]:
    add(f"{kind} epoch 10ms " + " ".join(f"level {p} 1mb" for p in range(8)))
    found = {}
    for priority in (0, 7, 8, 9, 15, 16, 1000):
        before = {x["level"]: x["packets"] for x in rig.qdisc(kind)["levels"]}
        burst(rig.Sender(priority), 1)
        after = {x["level"]: x["packets"] for x in rig.qdisc(kind)["levels"]}
        found[priority] = next(p for p in after if after[p] != before[p])
    rig.tc("qdisc del dev a0 root")
    return found


def zero() -> dict[str, object]:
    add(f"qjump2015 epoch 10ms level 5 {BUDGET}")
    passed = burst(senders[3])
    stats = rig.level("qjump2015", 3)
    rig.tc("qdisc del dev a0 root")
    return {"passed": passed, "stats": stats}


def gso(kind: str, budget: int) -> dict[str, int]:
    add(f"{kind} epoch 10s level 5 {budget}")
    rig.enter("a")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 5)
        with contextlib.suppress(OSError):  # ENOBUFS: dropped by the qdisc
            sender.sendto(bytes(10_000), ("10.9.0.2", 9))
    stats = rig.level(kind, 5)
    rig.tc("qdisc del dev a0 root")
    return stats


def htb(kind: str, bulk: str) -> dict[str, object]:
    rig.tc("qdisc add dev a0 root handle 5: htb default 1")
    rig.tc("class add dev a0 parent 5: classid 5:1 htb rate 8mbit burst 1600")
    rig.tc(f"qdisc add dev a0 parent 5:1 handle 6: {kind} epoch 10ms level 5 {BUDGET} level 7 {bulk}")
    receiver.take_all()
    start = time.monotonic()
    passed = 0
    for turn in range(20):
        for _ in range(10):  # 15 kB in 10 ms; the class sends 10 kB
            senders[7].send(1500, 0)
        passed += burst(senders[5])
        wait_until(start + (turn + 1) * 0.0101)
    frames = [(stamp, SIZE) for stamp, number in receiver.take_all() if number]
    stats = rig.level(kind, 5)
    rig.tc("qdisc del dev a0 root")
    return {"passed": passed, "received": len(frames), "most": rig.most_in_window(frames, 9_975_000), "stats": stats}


rig.build()
receiver = rig.Receiver()
senders = [rig.Sender(p) for p in range(8)]
rig.report(
    budget=BUDGET,
    edge=edge(),
    first=first(),
    clamped={kind: levels_of(kind) for kind in ("qjump2015", "qjump")},
    zero=zero(),
    gso={f"{kind} {budget}": gso(kind, budget) for kind in ("qjump2015", "qjump") for budget in (10420, 10419)},
    htb={"qjump2015": htb("qjump2015", "4mb"), "qjump": htb("qjump", "unlimited")},
)
