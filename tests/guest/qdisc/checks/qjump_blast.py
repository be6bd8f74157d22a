"""The most bytes of each level in any window of exactly one epoch, with all eight levels limited.

Every level has a budget of three full-size frames in bytes of the wire (`overhead 28 mpu 84`). A
blast is 60 bursts for each level, of frames of 60 to 1514 B, with pauses of up to two epochs, so
that levels are backlogged, idle, and at the edge of their budgets in turn.

Cases: as root, with epochs of 1 ms and 28.8 ms; below HTB, netem and prio (1 ms); and below a wire
of 100 Mb/s, which the budgets overload threefold (1 ms).

Reported, for no slack and one of 25 us, and each case: `most` by level, in budgets; `longer`, the
same in 1.1 epochs; frames `sent` and `received`. Assert: nothing is lost, no level exceeds its
budget in an epoch, and all do in 1.1.
"""
import random
import time

import rig

FULL, OVERHEAD, MPU = 1514, 28, 84
BUDGET = 3 * (FULL + OVERHEAD)
BURSTS = 60
SLACKS_NS = (0, 25_000)
RATE = 100_000_000
PARENTS = {
    "root": [],
    "htb": ["qdisc add dev a0 root handle 5: htb default 1",
            "class add dev a0 parent 5: classid 5:1 htb rate 150mbit burst 15k"],
    "netem": ["qdisc add dev a0 root handle 5: netem delay 300us limit 100000"],
    "prio": ["qdisc add dev a0 root handle 5: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"],
    "overload": [f"qdisc add dev a0 root handle 5: wire rate {RATE} limit 1mb overhead 0"],
}
CASES = {"root, 1 ms": ("root", 1_000_000), "root, 28.8 ms": ("root", 28_800_000),
         **{f"{parent}, 1 ms": (parent, 1_000_000) for parent in ("htb", "netem", "prio", "overload")}}


def cost(size: int) -> int:
    return max(size + OVERHEAD, MPU)


def began(stamp: int, size: int, parent: str) -> int:
    """Return when a frame started: a wire hands it over when its last bit has arrived."""
    return stamp - (max(size + 4, 64) + 8) * 8 * 10**9 // RATE if parent == "overload" else stamp


def case(parent: str, epoch_ns: int, slack_ns: int) -> dict[str, object]:
    for command in PARENTS[parent]:
        rig.tc(command)
    limits = " ".join(f"level {level} {BUDGET}" for level in range(8))
    place = "parent 5:1" if PARENTS[parent] else "root"
    rig.tc(f"qdisc add dev a0 {place} handle 6: qjump epoch {epoch_ns}ns slack {slack_ns}ns {limits} limit 20000 overhead {OVERHEAD} mpu {MPU}")
    draw, sent = random.Random(parent), dict[int, tuple[int, int]]()
    for _ in range(BURSTS):
        for level in draw.sample(range(8), 8):
            for _ in range(draw.choice((0, 1, 3, 4, 9, 30))):
                number, size = len(sent) + 1, draw.choice((60, 64, 300, FULL, FULL, draw.randint(60, FULL)))
                sent[number] = level, size
                senders[level].send(size, number)
        time.sleep(draw.random() * 2 * epoch_ns / 1e9)
    frames = [(stamp, number) for stamp, number in receiver.take_all(longest=300) if number]
    most, longer = [], []
    for level in range(8):
        starts = [(began(stamp, sent[number][1], parent), cost(sent[number][1])) for stamp, number in frames if sent[number][0] == level]
        most.append(rig.most_in_window(starts, epoch_ns) / BUDGET)
        longer.append(rig.most_in_window(starts, epoch_ns * 11 // 10) / BUDGET)
    rig.tc("qdisc del dev a0 root")
    return {"sent": len(sent), "received": len(frames), "most": most, "longer": longer}


rig.build()
receiver, senders = rig.Receiver(), [rig.Sender(level) for level in range(8)]
rig.report(budget=BUDGET, cases={slack: {name: case(*arguments, slack) for name, arguments in CASES.items()} for slack in SLACKS_NS})
