"""A change gives nobody a fresh budget, and charges nothing twice.

Frames of 1042 B, a budget of two of them. `most` is the largest sum of bytes that left in a window of the least
epoch of before and after, less 25 us; `passed` how many came through.
`epochs`: level 5 is kept backlogged while its epochs change from one kind or length to another, every 15 ms.
Assert: rolling to rolling most = one budget; wherever one of both kinds lets two budgets meet at an edge, two.
`shortened`: a budget leaves, and the epoch becomes a hundredth, after that has passed. Assert: what waits leaves, one
budget in any of the new epochs.
`rebased`: aligned epochs whose base is changed every 3 ms so that an edge would come 1 ms later. Assert: two budgets at
most in any T.
`to_drop`: eight frames wait with T = 20 ms, then mode drop, then one more. Assert: it is dropped; the eight leave
by two budgets at most in any window of T, as before; once all are gone, two of a burst of five are taken.
`to_delay`: in mode drop, behind a wire that is busy, two frames are taken and charged; then mode delay. Assert:
both leave without waiting for the next epoch; a third waits.
`split`: a UDP packet of ten segments waits at an unlimited level, which then is limited to two segments.
Assert: its ten segments leave, two in each epoch, and none is dropped as oversize.
"""
import contextlib
import socket
import time

import rig

SIZE = 1042
BUDGET = 2 * SIZE
UDP_SEGMENT = 103
MS = 1_000_000
KINDS = {"rolling": "epochs rolling", "first-packet": "epochs first-packet", "aligned": "epochs aligned base 1ms"}


def most(stamps: list[tuple[int, int]], window_ns: int) -> float:
    """In budgets."""
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


def rebased() -> dict[str, float]:
    rig.tc(f"qdisc add dev a0 root handle 6: qjump level 5 {BUDGET} epoch 100ms epochs aligned")
    for number in range(40):
        sender.send(SIZE, number)
    for _ in range(100):
        time.sleep(0.003)
        base = (time.clock_gettime_ns(time.CLOCK_MONOTONIC) + MS) % (100 * MS)
        rig.tc(f"qdisc change dev a0 root handle 6: qjump base {base}ns")
    stamps = receiver.take_all(2.0)
    rig.tc("qdisc del dev a0 root")
    return {"passed": len(stamps), "most": most(stamps, 100 * MS)}


def to_drop() -> dict[str, object]:
    rig.tc(f"qdisc add dev a0 root handle 6: qjump epoch 20ms level 5 {BUDGET}")
    for number in range(10):
        sender.send(SIZE, number)
    rig.tc("qdisc change dev a0 root handle 6: qjump mode drop")
    late = sender.send(SIZE, 99)
    stamps = receiver.take_all()
    burst = sum(sender.send(SIZE, 1) for _ in range(5))
    stats = rig.level("qjump", 5)
    rig.tc("qdisc del dev a0 root")
    receiver.take_all()
    return {"late": late, "passed": len(stamps), "most": most(stamps, 20 * MS), "burst": burst, "stats": stats}


def to_delay() -> dict[str, object]:
    rig.tc("qdisc add dev a0 root handle 5: wire rate 1mbit")
    rig.tc(f"qdisc add dev a0 parent 5:1 handle 6: qjump epoch 400ms mode drop level 5 {BUDGET}")
    busy.send(1500, 100)  # 12 ms of the wire
    taken = [sender.send(SIZE, number) for number in range(3)]
    rig.tc("qdisc change dev a0 parent 5:1 handle 6: qjump mode delay")
    sender.send(SIZE, 3)
    stamps = [(stamp, number) for stamp, number in receiver.take_all(0.6) if number != 100]
    rig.tc("qdisc del dev a0 root")
    return {"taken": taken, "numbers": [number for _, number in stamps],
            "after_ms": [(stamp - stamps[0][0]) / MS for stamp, _ in stamps]}


def split() -> dict[str, object]:
    rig.tc("qdisc add dev a0 root handle 5: htb default 1")
    rig.tc("class add dev a0 parent 5: classid 5:1 htb rate 1mbit burst 1600 cburst 1600")
    rig.tc("qdisc add dev a0 parent 5:1 handle 6: qjump")
    busy.send(1500)
    busy.send(1500)
    rig.enter("a")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
        datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 5)
        with contextlib.suppress(OSError):
            datagrams.sendto(bytes(10_000), ("10.9.0.2", 9))
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
epochs = {}
for first in KINDS:
    for second in KINDS:
        if first != second:
            epochs[f"{first} to {second}"] = changed(
                f"epoch 20ms {KINDS[first]}", f"epoch 20ms {KINDS[second]}", 20)
epochs["longer"] = changed("epoch 10ms", "epoch 40ms", 10)
shorter = {
    "rolling": shortened("3600s", "20ms", 20),
    "slack": shortened("20ms slack 3s", "20ms slack 0ms", 20),
    "first-packet": shortened("3s epochs first-packet", "20ms", 20),
}
rig.report(budget=BUDGET, epochs=epochs, shortened=shorter, rebased=rebased(), to_drop=to_drop(), to_delay=to_delay(), split=split())
