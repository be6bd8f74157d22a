"""Traffic that several checks send: frames that straddle epochs, and a TCP flow that takes what it gets."""
import contextlib
import socket
import threading
import time
from collections.abc import Callable

import rig


def straddle(metered: rig.Sender, bulk: rig.Sender | None, size: int) -> int:
    """60 times one frame, a pause that sweeps 0 to 10 ms, then 20 frames; with bulk in spells. Frames are numbered from 1; their count."""
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
    """A server in namespace b, port 5000, that reads everything; how many bytes it has read. The caller is in namespace a then."""
    received = 0

    def read(connection: socket.socket) -> None:
        nonlocal received
        with contextlib.suppress(ConnectionError):
            while data := connection.recv(1 << 20):
                received += len(data)

    def serve(listener: socket.socket) -> None:
        while True:  # one thread each: a closing segment may be deleted with its qdisc
            connection, _ = listener.accept()
            threading.Thread(target=read, args=(connection,), daemon=True).start()

    rig.enter("b")
    listener = socket.create_server(("10.9.0.2", 5000))
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    rig.enter("a")
    return lambda: received


def flood(connection: socket.socket, counted: Callable[[], int]) -> float:
    """Connect and send for 5 s; bytes per second by the counter, the first second left out."""
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
    """Close with a reset: nothing of it is left to send."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()
