"""The share of its budget that TCP gets in a limited level.

Frames have 1514 B, offloads are off and on, T = 10 ms. Budgets are 1.2 to 79 Mb/s, or as many
frames as the arguments say; each is measured for 5 s without the first second, by the qdisc's byte
counter.
"""
import socket
import sys
import time

import rig
import traffic

EPOCH_S, FRAME = 0.01, 1514


rig.build()
traffic.listen()
cases = []
for offloads, segments in (("off", 1), ("on", 65535)):
    for n in "ab":
        rig.run(f"ip -n {n} link set {n}0 gso_max_segs {segments}")
    for frames in map(int, sys.argv[1:] or "1 2 4 8 16 32 65".split()):
        rig.tc("qdisc replace dev a0 root handle 6: qjump epoch 10ms "
               f"level 4 {frames * FRAME}")
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 4)
        measured = traffic.flood(connection, lambda: rig.level("qjump", 4)["bytes"])
        rate = frames * FRAME * 8 / EPOCH_S
        cases.append({"offloads": offloads, "frames": frames, "budget_bps": rate,
                      "share": measured * 8 / rate,
                      "stats": rig.level("qjump", 4)})
        traffic.reset(connection)
        rig.tc("qdisc del dev a0 root")
        time.sleep(0.1)
rig.report(cases=cases)
