"""A memcached, as far as memload needs one, that answers as a test tells it to: written from the
protocol's description, not from memload."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.native_programs import Listener

HEADER = struct.Struct(">BBHBBHIIQ")
GET, SET = 0, 1
OK, NOT_FOUND, NO_MEMORY = 0, 1, 0x82


@dataclass
class Request:
    """A request as it arrived: `number` counts all that came after the `keys` that were stored
    first, from 0; before, it is negative."""

    number: int
    opcode: int
    key: bytes
    value: bytes


def reply(opcode: int, status: int = OK, extras: bytes = b"", value: bytes = b"") -> bytes:
    """An answer's bytes."""
    body = extras + value
    return HEADER.pack(0x81, opcode, 0, len(extras), 0, status, len(body), 0, 0) + body


@dataclass
class Server(Listener):
    """Listens on loopback while it is entered. `answer` gives an answer's pieces, each sent by
    itself; None hangs up, and ConnectionResetError resets the connection.

    Requests of all connections are handled one after the other, in the order in which they came.
    """

    keys: int
    answer: Callable[[Request], list[bytes] | None]
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            try:
                while header := stream.read(HEADER.size):
                    fields = HEADER.unpack(header)
                    magic, opcode, key_length, extras_length, *_, body_length, _, _ = fields
                    body = stream.read(body_length)
                    assert magic == 0x80 and extras_length == (8 if opcode == SET else 0)
                    key_end = extras_length + key_length
                    with self._lock:
                        number, key = len(self.requests) - self.keys, body[extras_length:key_end]
                        request = Request(number, opcode, key, body[key_end:])
                        self.requests.append(request)
                        pieces = self.answer(request)
                        if pieces is None:
                            return
                        for piece in pieces:
                            connection.sendall(piece)
            except ConnectionResetError:
                linger = struct.pack("ii", 1, 0)  # closing sends RST
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            except OSError:
                return


def well(request: Request, value_bytes: int = 16) -> list[bytes]:
    """The right answer, in one piece."""
    if request.opcode == SET:
        return [reply(SET)]
    return [reply(GET, extras=bytes(4), value=b"v" * value_bytes)]
