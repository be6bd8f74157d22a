"""Strict priority of qjump below a wire, with all eight levels backlogged.

Levels 0 to 6 are kept full; level 7 has one packet per turn. T = 20 ms; levels 4 to 7 have budgets
of 3 frames, the others are unlimited. The wire has 10 Mb/s; frames have 1514 B, urgent ones 98 B.
"""
import time

import rig

RATE, EPOCH = 10_000_000, 0.02
rig.build()
receiver = rig.Receiver()
senders = [rig.Sender(p) for p in range(8)]
rig.tc(f"qdisc add dev a0 root handle 5: wire rate {RATE}")
rig.tc("qdisc add dev a0 parent 5:1 handle 6: qjump epoch 20ms limit 20 "
       + " ".join(f"level {p} {3 * 1514}" for p in range(4, 8)))
for number in range(16):  # the first one starts at once
    senders[number % 8].send(1514, number)
order = [n % 8 for _, n in receiver.take_all()]
before = rig.now()
senders[7].send(98, 0)
lone = receiver.take_all()[0][0] - before
sent, start = {}, time.monotonic()
for number in range(1, 400):
    for p in range(7):
        while senders[p].send(1514, 0):
            pass
    time.sleep(EPOCH + number % 101 * 13e-6)
    sent[number] = rig.now()
    senders[7].send(98, number)
duration = time.monotonic() - start
levels = rig.qdisc("qjump")["levels"]
rig.tc("qdisc change dev a0 root handle 5: wire rate 1gbit")
arrived = {n: t for t, n in receiver.take_all() if n}
waits = sorted(arrived[n] - sent[n] - lone for n in arrived)
rig.report(bulk_ns=(1514 + 24) * 8 * 10**9 // RATE, sent=len(sent), arrived=len(arrived),
           median_wait_ns=waits[len(waits) // 2], longest_waits_ns=waits[-3:], duration=duration,
           epoch=EPOCH, order=order, packets={x["level"]: x["packets"] for x in levels})
