"""A worker that does as a test tells it to. Knows the layout of shuffle's messages (native/shuffle/shuffle.h and node.h)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from tests.native_programs import Listener

HELLO = struct.Struct("<QII4I3Q")  # magic, kind, padding, the copy that is wanted
PLAN = struct.Struct("<4I5Q1024s")
ORDER = struct.Struct("<II")
REPORT = struct.Struct("<III100s")
COPY = struct.Struct("<4I3Q")  # round, step, source, destination, bytes, start, end
CALL = HELLO.pack(0x31306C6675687371, 0, 0, *[0] * 7)  # a master's first words
JOB = PLAN.pack(1, 1, 1, 1, 0, 0, 0, 0, 0, b"")  # one worker, nothing to copy
ROUND, SHUFFLE = 0, 1
MAPPED, REDUCED, BROKEN = 0, 1, 2

Ordered = Callable[[int, int], bytes | None]


def report(what: int, number: int, *copies: tuple[int, ...], count: int | None = None, why: bytes = b"") -> bytes:
    """A report's bytes."""
    return REPORT.pack(what, number, len(copies) if count is None else count, why) + b"".join(COPY.pack(*copy) for copy in copies)


class Impostor(Listener):
    """Listens on loopback while it is entered.

    `ordered(what, round)` gives what is said to the master's order, None hangs up; `served(bytes)` how many bytes a copy gets.
    """

    def __init__(self, ordered: Ordered, served: Callable[[int], int] = lambda wanted: wanted) -> None:
        super().__init__()
        self._ordered, self._served = ordered, served

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            try:
                _, fetches, _, *_, wanted, _, _ = HELLO.unpack(stream.read(HELLO.size))
                if fetches:
                    connection.sendall(bytes(self._served(wanted)))
                    return
                stream.read(PLAN.size)
                while order := stream.read(ORDER.size):
                    said = self._ordered(*ORDER.unpack(order))
                    if said is None:
                        return
                    connection.sendall(said)
            except (OSError, struct.error):  # gone, perhaps before it asked
                return
