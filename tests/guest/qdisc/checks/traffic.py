"""Traffic for several checks: frames that straddle epochs, and a greedy TCP flow."""
import contextlib
import socket
import threading
import time
from collections.abc import Callable

import rig


def straddle(metered: rig.Sender, bulk: rig.Sender | None, size: int) -> int:
    """Send 60 times: one frame, a pause that sweeps 0 to 10 ms, 20 frames; with bulk in spells.

    Number the frames from 1; return how many were sent.
    """
    number = 0
    for i in range(60):
        if bulk:
            for _ in range(40):
                bulk.send(1514, 0)
        for frames, pause in ((1, i * 167e-6), (20, 0.015)):
            for _ in range(frames):
                number += 1
                metered.send(size, number)
            time.sleep(pause)
    return number


def listen() -> Callable[[], int]:
    """Start a server in namespace b, port 5000, that reads everything, and enter namespace a.

    Return a function that returns the bytes read so far.
    """
    received = 0

    def read(connection: socket.socket) -> None:
        nonlocal received
        with contextlib.suppress(ConnectionError):
            while data := connection.recv(1 << 20):
                received += len(data)

    def serve(listener: socket.socket) -> None:
        while True:  # one thread each: a FIN may be lost when its qdisc is deleted
            connection, _ = listener.accept()
            threading.Thread(target=read, args=(connection,), daemon=True).start()

    rig.enter("b")
    listener = socket.create_server(("10.9.0.2", 5000))
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    rig.enter("a")
    return lambda: received


def flood(connection: socket.socket, counted: Callable[[], int]) -> float:
    """Connect and send for 5 s; return bytes/s by the counter, without the first second."""
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
            marks.append((time.monotonic(), counted()))
    (t0, b0), (t1, b1) = marks
    return (b1 - b0) / (t1 - t0)


def reset(connection: socket.socket) -> None:
    """Close with a reset, so that no data remains to be sent."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()
