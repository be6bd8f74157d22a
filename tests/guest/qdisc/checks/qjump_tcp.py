"""TCP through a limited level, delay mode: its share of the budget.

Frames of 1514 B, offloads off and on, budgets from 1.2 to 79 Mb/s (or of so many frames as the
arguments say) at T = 10 ms, 5 s each, the first of them left out. Bytes are counted by the qdisc's
own statistics.
Assert: 0.95 <= share <= 1.0025, one budget more in 4 s (budgets are whole numbers of frames).
"""
import contextlib
import socket
import sys
import threading
import time

import rig

EPOCH_S, FRAME = 0.01, 1514


def read(connection: socket.socket) -> None:
    with contextlib.suppress(ConnectionError):
        while connection.recv(1 << 20):
            pass


def serve(listener: socket.socket) -> None:
    while True:  # one thread each: a closing segment may be deleted with its qdisc
        connection, _ = listener.accept()
        threading.Thread(target=read, args=(connection,), daemon=True).start()


rig.build()
rig.enter("b")
listener = socket.create_server(("10.9.0.2", 5000))
threading.Thread(target=serve, args=(listener,), daemon=True).start()
rig.enter("a")
cases = []
for offloads, segments in (("off", 1), ("on", 65535)):
    for n in "ab":
        rig.run(f"ip -n {n} link set {n}0 gso_max_segs {segments}")
    for frames in map(int, sys.argv[1:] or "1 2 4 8 16 32 65".split()):
        rig.tc("qdisc replace dev a0 root handle 6: qjump epoch 10ms "
               f"level 4 {frames * FRAME}")
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 4)
        connection.connect(("10.9.0.2", 5000))
        connection.setblocking(False)
        marks: list[tuple[float, int]] = []
        start = time.monotonic()
        while len(marks) < 2:
            try:
                connection.send(bytes(65536))
            except BlockingIOError:
                time.sleep(0.002)
            if time.monotonic() - start > (1, 5)[len(marks)]:
                marks.append((time.monotonic(), rig.level("qjump", 4)["bytes"]))
        (t0, b0), (t1, b1) = marks
        rate = frames * FRAME * 8 / EPOCH_S
        cases.append({"offloads": offloads, "frames": frames, "budget_bps": rate,
                      "share": (b1 - b0) * 8 / (t1 - t0) / rate,
                      "stats": rig.level("qjump", 4)})
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
        rig.tc("qdisc del dev a0 root")
        time.sleep(0.1)
rig.report(cases=cases)
