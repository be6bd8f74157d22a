"""A worker, or a master's words, as a test tells them to be.

Knows the layout of shuffle's messages (native/shuffle/shuffle.h and node.h).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from tests.support.native_programs import Listener

HELLO = struct.Struct("<QII4I3Q")  # magic, kind, padding, the copy that is wanted
PLAN = struct.Struct("<4I5Q1024s")
ORDER = struct.Struct("<II")
REPORT = struct.Struct("<III100s")
COPY = struct.Struct("<4I3Q")  # round, step, source, destination, bytes, start, end
ROUND, SHUFFLE = 0, 1
MAPPED, REDUCED, BROKEN = 0, 1, 2

Ordered = Callable[[int, int], bytes | None]


def hello(kind: int, *copy: int) -> bytes:
    """First words; kind 1 wants a copy: round, step, source, destination, bytes."""
    return HELLO.pack(0x31306C6675687371, kind, 0, *copy, *[0] * (7 - len(copy)))


CALL = hello(0)  # a master's


def plan(**numbers: int) -> bytes:
    """A plan's bytes: one worker and nothing to copy, but for these numbers, which may be
    negative."""
    plan_of_one = {"node": 1, "workers": 1, "parallel": 1, "master_port": 1}
    small = [(plan_of_one | numbers)[name] % 2**32 for name in plan_of_one]
    names = ("distribute", "shuffle", "compute", "jitter", "seed")
    large = [numbers.get(name, 0) % 2**64 for name in names]
    return PLAN.pack(*small, *large, b"")


JOB = plan()


def report(
    what: int, number: int, *copies: tuple[int, ...], count: int | None = None, why: bytes = b""
) -> bytes:
    """A report's bytes."""
    return REPORT.pack(what, number, len(copies) if count is None else count, why) + b"".join(
        COPY.pack(*copy) for copy in copies
    )


class Impostor(Listener):
    """Listens on loopback while it is entered.

    `ordered(what, round)` gives what is said to the master's order, None hangs up; `served(bytes)`
    how many bytes a copy gets.
    """

    def __init__(
        self, ordered: Ordered, served: Callable[[int], int] = lambda wanted: wanted
    ) -> None:
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
