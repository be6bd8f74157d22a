"""Answers the echo requests of a namespace whose kernel does not, in one of the ways below.

As a script, run in that namespace: it says "ready", and for each request whatever its way has it
say. A way that waits does so for a line on stdin.
"""

from __future__ import annotations

import itertools
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Self

HOST = "127.0.0.1"
FLOOD = 3000
"""Replies; the kernel's default receive buffer has room for some hundreds."""


class Echo(NamedTuple):
    """An echo request or reply."""

    type: int
    code: int
    identifier: int
    sequence: int
    payload: bytes

    def packet(self) -> bytes:
        head = struct.pack("!BBHHH", self.type, self.code, 0, self.identifier, self.sequence)
        whole = head + self.payload
        return whole[:2] + struct.pack("!H", checksum(whole)) + whole[4:]

    @property
    def number(self) -> int:
        return int.from_bytes(self.payload[:8], "big")

    def numbered(self, number: int) -> Echo:
        return self._replace(payload=struct.pack("!Q", number) + self.payload[8:])

    def at_another_time(self) -> Echo:
        other = bytes([self.payload[15] ^ 0xFF])
        return self._replace(payload=self.payload[:15] + other + self.payload[16:])

    def cut(self, length: int) -> Echo:
        return self._replace(payload=self.payload[:length])


def checksum(whole: bytes) -> int:
    words = struct.unpack(f"!{(len(whole) + 1) // 2}H", whole + bytes(len(whole) % 2))
    total: int = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def damaged(reply: Echo) -> bytes:
    packet = reply.packet()
    return packet[:-1] + bytes([packet[-1] ^ 1])


WRONG: dict[str, tuple[Callable[[Echo], bytes], int]] = {
    "of another identifier": (lambda right: right._replace(identifier=right.identifier ^ 1).packet(), 0),
    "of another type": (lambda right: right._replace(type=3, code=1).packet(), 0),
    "of another code": (lambda right: right._replace(code=1).packet(), 1),
    "empty": (lambda right: b"", 0),
    "a type and no more": (lambda right: right.packet()[:1], 0),
    "half a header": (lambda right: right.packet()[:4], 0),
    "a header": (lambda right: right.cut(0).packet(), 1),
    "half a number": (lambda right: right.cut(4).packet(), 1),
    "half a time": (lambda right: right.cut(12).packet(), 1),
    "a number and a time": (lambda right: right.cut(16).packet(), 1),
    "cut by a byte": (lambda right: right.cut(-1).packet(), 1),
    "a byte longer": (lambda right: right._replace(payload=right.payload + b"\0").packet(), 1),
    "of number 0": (lambda right: right.numbered(0)._replace(sequence=0).packet(), 1),
    "from the future": (lambda right: right.numbered(right.number + 65536).packet(), 1),
    "of the last number of all": (lambda right: right.numbered(2**64 - 1)._replace(sequence=65535).packet(), 1),
    "of another time": (lambda right: right.at_another_time().packet(), 1),
    "of another sequence": (lambda right: right._replace(sequence=right.sequence ^ 1).packet(), 1),
    "damaged": (damaged, 1),
}  # fmt: skip
"""Replies that are none, by what they are: made of the right one, and whether they count as
foreign."""


class Wires:
    """Raw sockets of the namespace."""

    def __init__(self) -> None:
        self._requests = self._socket()
        self._replies = self._socket()
        self._elsewhere = self._socket()
        self._elsewhere.bind(("127.0.0.2", 0))
        # The kernel makes an IP header only for ICMP of two bytes or more.
        self._any = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self._optional = self._socket()
        self._optional.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, b"\1\1\1\0")

    @staticmethod
    def _socket() -> socket.socket:
        return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)

    def requests(self) -> Iterator[Echo]:
        """The right replies to them."""
        while True:
            packet = self._requests.recv(65535)
            whole = packet[(packet[0] & 15) * 4 :]
            if len(whole) >= 8 and whole[0] == 8:
                _, _, _, identifier, sequence = struct.unpack("!BBHHH", whole[:8])
                yield Echo(0, 0, identifier, sequence, whole[8:])

    def reply(self, packet: bytes, how: str = "") -> None:
        out = {"elsewhere": self._elsewhere, "optional": self._optional}.get(how, self._replies)
        if len(packet) < 2:
            host = socket.inet_aton(HOST)
            fields = (0x45, 0, 20 + len(packet), 0, 0, 64, 1, 0, host, host)
            header = struct.pack("!BBHHHBBH4s4s", *fields)
            out, packet = self._any, header + packet
        out.sendto(packet, (HOST, 0))


def answer(how: str, wires: Wires) -> None:
    for right in wires.requests():
        if how in WRONG:
            wires.reply(WRONG[how][0](right))
            wires.reply(right.packet())
        elif how in ("twice", "elsewhere", "optional"):
            wires.reply(right.packet(), how)
            wires.reply(right.packet())
        elif how == "odd":
            if right.number % 2:
                wires.reply(right.packet())
        elif how == "backwards":
            others = itertools.islice(wires.requests(), 2)
            for each in reversed([right, *others]):
                wires.reply(each.packet())
        else:
            print("asked", flush=True)
            sys.stdin.readline()
            for _ in range(FLOOD if how == "flood" else 0):
                wires.reply(right.numbered(0).packet())
            wires.reply(right.packet())
            print("answered", flush=True)


class Impostor:
    """It as a script, running in the namespace of a prefix while it is entered."""

    def __init__(self, how: str, prefix: Sequence[str]) -> None:
        argv = [*prefix, sys.executable, __file__, how]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> Self:
        self.wait_for("ready")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def wait_for(self, word: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == f"{word}\n"

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()


if __name__ == "__main__":
    sockets = Wires()
    print("ready", flush=True)
    answer(sys.argv[1], sockets)
