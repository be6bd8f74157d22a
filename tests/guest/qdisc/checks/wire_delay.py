"""Propagation: 20 frames of 1000 B back to back at 10 Mb/s, with `delay` and with a netem child.

`first_ns` is the latency of the first frame minus that without delay, `gap_ns` the median gap.
"""
import itertools

import rig

rig.build()
receiver, sender = rig.Receiver(), rig.Sender()


def burst() -> tuple[int, int]:
    before = rig.now()
    for number in range(20):
        sender.send(1000, number)
    stamps = [t for t, _ in receiver.take_all()]
    gaps = sorted(b - a for a, b in itertools.pairwise(stamps))
    return stamps[0] - before, gaps[len(gaps) // 2]


rig.tc("qdisc add dev a0 root handle 5: wire rate 10mbit")
burst()  # warm up
base, _ = burst()
rig.tc("qdisc change dev a0 root handle 5: wire rate 10mbit delay 5ms")
first, gap = burst()
results = {"delay": {"first_ns": first - base, "gap_ns": gap}}
for number in range(20):
    sender.send(1000, number)
rig.tc("qdisc change dev a0 root handle 5: wire delay 0ms")
numbers = [n for _, n in receiver.take_all()]
rig.tc("qdisc add dev a0 parent 5:1 handle 6: netem delay 5ms limit 1000")
first, gap = burst()
results["netem"] = {"first_ns": first - base, "gap_ns": gap}
rig.report(**results, ordered=numbers == list(range(20)))
