"""The largest byte count of a level in any window of exactly one epoch, as the peer sees it, without a slack and with one.

Rolling epochs of 100 us, 1 ms and 28.8 ms, mode delay, level 5, the qdisc as root. The budget is one frame of 1042 B: of
all budgets that in which a frame that is late shows. The rule holds at the instants of dequeue; a frame is stamped later,
by some 20 us where a tick or a thread of the kernel comes between.
4000 frames are sent at once (28.8 ms: 1000), which keep the level backlogged, then 200 one after the other, with pauses
that sweep an epoch. `most`: in budgets; `late_ns`: by how much the closest two frames are closer than an epoch (below 0: they
are not); `share`: what the backlogged level got of a budget every epoch.
Assert: most = 1 with a slack of 25 us, at every epoch.
"""
import itertools
import time

import rig

SIZE = 1042
BACKLOG = {100_000: 4000, 1_000_000: 4000, 28_800_000: 1000}  # by the epoch in ns
LONE = 200


def case(epoch_ns: int, slack_ns: int) -> dict[str, float]:
    rig.tc(f"qdisc add dev a0 root handle 6: qjump epoch {epoch_ns}ns level 5 {SIZE} slack {slack_ns}ns limit 8mb packets 8000")
    for number in range(BACKLOG[epoch_ns]):
        sender.send(SIZE, number)
    stamps = [stamp for stamp, _ in receiver.take_all(longest=300)]
    epochs = (stamps[-1] - stamps[0]) / epoch_ns
    for number in range(LONE):
        sender.send(SIZE, number)
        time.sleep(epoch_ns * (1 + number / LONE) / 1e9)
    lone = [stamp for stamp, _ in receiver.take_all(longest=300)]
    drops = rig.level("qjump", 5)["drops"]
    rig.tc("qdisc del dev a0 root")
    apart = [later - one for row in (stamps, lone) for one, later in itertools.pairwise(row)]
    return {
        "epoch_ns": epoch_ns, "slack_ns": slack_ns, "sent": BACKLOG[epoch_ns] + LONE, "received": len(stamps) + len(lone), "drops": drops,
        "most": max(rig.most_in_window([(stamp, SIZE) for stamp in row], epoch_ns) for row in (stamps, lone)) / SIZE,
        "late_ns": epoch_ns - min(apart), "share": (len(stamps) - 1) / epochs,
    }


rig.build()
receiver, sender = rig.Receiver(), rig.Sender(5)
rig.report(cases=[case(epoch, slack) for epoch in BACKLOG for slack in (0, 25_000)])
