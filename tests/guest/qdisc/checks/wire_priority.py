"""Strict priority without preemption: 2000 urgent frames into a wire that bulk keeps full.

Classified by PCP and by skb->priority, with fifo as the counter-example. The rate is 10 Mb/s; bulk
has 1514 B, urgent frames have 98 B at level 7 and are sent at phases that sweep the time of a bulk
frame.
"""
import time

import rig

rig.build()
RATE, BULK, URGENT = 10_000_000, 1514, 98
receiver, results = rig.Receiver(), {}
bulk, urgent = rig.Sender(priority=0), rig.Sender(priority=7)
for classify in ("pcp", "priority", "fifo"):
    rig.tc(f"qdisc replace dev a0 root handle 5: wire rate {RATE} limit 40000 classify {classify}")
    tags = (0, 7) if classify == "pcp" else (None, None)
    tagged = 0 if classify != "pcp" else 4
    before = rig.now()
    urgent.send(URGENT + tagged, 0, tags[1])
    lone = receiver.take_all()[0][0] - before
    sent = {}
    for number in range(1, 2001):
        while bulk.send(BULK, 0, tags[0]):
            pass
        time.sleep(0.0003 + number % 97 * 13e-6)
        sent[number] = rig.now()
        urgent.send(URGENT + tagged, number, tags[1])
    arrived = {n: t for t, n in receiver.take_all() if n}
    waits = sorted(arrived[n] - sent[n] - lone for n in arrived)
    results[classify] = {"sent": len(sent), "arrived": len(arrived), "lone_ns": lone,
                         "median_wait_ns": waits[len(waits) // 2], "longest_waits_ns": waits[-3:]}
rig.report(bulk_ns=(BULK + 24) * 8 * 10**9 // RATE, classify=results)
