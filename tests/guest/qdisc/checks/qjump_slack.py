"""The most bytes of a level in any window of exactly one epoch at the peer, with and without slack.

Epochs are 100 us, 1 ms and 28.8 ms; level 5 is limited, with the qdisc as root. The budget is one
frame of 1042 B, as lateness shows most clearly with the smallest budget. The rule holds for dequeue
times; a frame is stamped later, by some 20 us if a tick or a kernel thread comes in between.

4000 frames (28.8 ms: 1000) are sent at once, which keep the level backlogged, then 200 one by one,
with pauses that sweep an epoch. `most` is in budgets; `late_ns` is how much closer than an epoch
the two closest frames are (negative: they are not); `share` is what the backlogged level got of a
budget per epoch.

Then lateness is provoked: with the level backlogged, a packet of seven datagrams of level 7 arrives
160 times, at times that sweep the 40 us before a frame may leave. qjump splits it. For a device
with several queues the kernel takes up to eight frames from the qdisc before it sends the first. If
the eighth is one of level 5, it is charged with the seven and leaves after them, and the next frame
of the level leaves at once. `behind`: most and late_ns of these; `excess`: bytes by which most
exceeds the budget.
"""
import itertools
import socket
import time

import rig

SIZE = 1042
BACKLOG = {100_000: 4000, 1_000_000: 4000, 28_800_000: 1000}  # by the epoch in ns
LONE = 200
BURSTS, SWEEP_NS = 160, 40_000
OTHERS, DATAGRAM = 7, 1400  # frames of a burst, bytes of each
LATE_NS = 1200  # usual delay of a departure
UDP_SEGMENT = 103


def backlogged(count: int) -> None:
    for number in range(count):
        sender.send(SIZE, number)


def behind(period_ns: int) -> list[int]:
    """Return the stamps of a level whose frames leave behind bursts of another level."""
    ahead = 2 + 400_000 // period_ns  # at least the departures between two bursts
    backlogged((ahead + 2) * BURSTS)
    time.sleep(2 * period_ns / 1e9)
    stamps: list[int] = []
    for number in range(BURSTS):
        stamps += [stamp for stamp, _ in receiver.take()]
        due, now = stamps[-1], rig.now()
        due += -(-(now + 150_000 - due) // (period_ns + LATE_NS)) * (period_ns + LATE_NS)
        at = due - number * SWEEP_NS // BURSTS
        time.sleep(max(0, at - now - 100_000) / 1e9)  # a sleep may be 50 us too long
        while rig.now() < at:
            pass
        datagrams.send(bytes(OTHERS * DATAGRAM))
    return stamps + [stamp for stamp, _ in receiver.take_all(longest=300)]


def found(rows: list[list[int]], epoch_ns: int) -> dict[str, float]:
    apart = [later - one for row in rows for one, later in itertools.pairwise(row)]
    return {"most": max(rig.most_in_window([(stamp, SIZE) for stamp in row], epoch_ns) for row in rows) / SIZE, "late_ns": epoch_ns - min(apart)}


def case(epoch_ns: int, slack_ns: int) -> dict[str, object]:
    limits = f"limit 8000 level 5 {SIZE} level 7 100kb"
    rig.tc(f"qdisc add dev a0 root handle 6: qjump epoch {epoch_ns}ns {limits} slack {slack_ns}ns")
    backlogged(BACKLOG[epoch_ns])
    stamps = [stamp for stamp, _ in receiver.take_all(longest=300)]
    epochs = (stamps[-1] - stamps[0]) / epoch_ns
    for number in range(LONE):
        sender.send(SIZE, number)
        time.sleep(epoch_ns * (1 + number / LONE) / 1e9)
    lone = [stamp for stamp, _ in receiver.take_all(longest=300)]
    provoked = behind(epoch_ns + slack_ns)
    level, others = rig.level("qjump", 5), rig.level("qjump", 7)
    rig.tc("qdisc del dev a0 root")
    late = found([provoked], epoch_ns)
    return {
        "epoch_ns": epoch_ns, "slack_ns": slack_ns, "sent": level["packets"], "received": len(stamps) + len(lone) + len(provoked), "drops": level["drops"],
        **found([stamps, lone], epoch_ns), "share": (len(stamps) - 1) / epochs,
        "behind": late, "excess": round((late["most"] - 1) * SIZE), "others": others["packets"],
    }


rig.build()
rig.run("ip netns exec a ethtool -L a0 tx 1 rx 1")  # use one of eight queues, for all eight frames
rig.enter("b")
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("10.9.0.2", 9))
receiver, sender = rig.Receiver(), rig.Sender(5)
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, DATAGRAM)
datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 7)
datagrams.connect(("10.9.0.2", 9))
rig.report(budget=SIZE, bursts=BURSTS, cases=[case(epoch, slack) for epoch in BACKLOG for slack in (0, 25_000)])
