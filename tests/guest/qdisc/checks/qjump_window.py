"""The most bytes of a level in any window of one epoch at the peer.

The bound is on dequeue times. A tick or a kernel thread between dequeue and stamp makes a stamp up
to 20 us late, so the windows of `most` are 25 us (0.25 %) shorter than an epoch; `exact` uses
windows of one epoch, for which there is a slack of as much. `closest_ns` is the shortest time from
a frame to the one a budget later.

Measured with and without slack, for every level (or the arguments parent:level, ...), as root,
below a wire, and below an HTB class that bulk of another level saturates. T = 10 ms, the budget is
8 frames of 1042 B. The traffic straddles epochs: one frame, a pause that sweeps 0 to 10 ms, then 20
frames. Below HTB bulk of a higher level comes in spells (of level 0, without effect, if level 7 is
measured).
"""
import sys

import rig
import traffic

EPOCH_NS, SIZE, FRAMES = 10_000_000, 1042, 8
WINDOW_NS = EPOCH_NS - 25_000
BUDGET = SIZE * FRAMES
PARENTS = {
    "root": ["qdisc add dev a0 root handle 6: {}"],
    "wire": ["qdisc add dev a0 root handle 5: wire rate 100mbit limit 1mb",
             "qdisc add dev a0 parent 5:1 handle 6: {}"],
    "htb": ["qdisc add dev a0 root handle 5: htb default 1",
            "class add dev a0 parent 5: classid 5:1 htb rate 12mbit burst 15k",
            "qdisc add dev a0 parent 5:1 handle 6: {}"],
}


rig.build()
receiver, cases = rig.Receiver(), []
for parent, commands in PARENTS.items():
    levels = [p for p in range(8) if len(sys.argv) == 1 or f"{parent}:{p}" in sys.argv]
    for slack in ("0us", "25us"):
        for p in levels:
            for command in commands:
                rig.tc(command.format(f"qjump epoch 10ms level {p} {BUDGET} slack {slack} limit 4000"))
            bulk = rig.Sender(7 if p < 7 else 0) if parent == "htb" else None
            sent = traffic.straddle(rig.Sender(p), bulk, SIZE)
            stamps = [(t, SIZE) for t, n in receiver.take_all() if n]
            cases.append({"parent": parent, "slack": slack, "level": p,
                          "sent": sent, "received": len(stamps),
                          "most": rig.most_in_window(stamps, WINDOW_NS),
                          "exact": rig.most_in_window(stamps, EPOCH_NS),
                          "closest_ns": min(b[0] - a[0] for a, b in
                                            zip(stamps, stamps[FRAMES:], strict=False)),
                          "stats": rig.level("qjump", p)})
            rig.tc("qdisc del dev a0 root")
rig.report(budget=BUDGET, cases=cases)
