"""Generated sets of options for qjump, qjump2015 and wire, sent through raw netlink.

They are added, changed and replaced on a fresh and on a loaded qdisc. On the loaded device frames
of several priorities pass and wait, so that options change under a backlog; on the fresh one no
packet ever passes. Arguments: a seed; the values of attribute names as JSON; kind:count, ....

Reported per kind: numbers of sets accepted and refused; each refusal's message with its count; the
number of sets per flaw; and `wrong`, the sets that violated a property:

- A fresh qdisc accepts a sound set; every qdisc refuses a flawed one.
- The dump afterwards contains what the set asked for.
- After a refusal the dump is unchanged, byte for byte.
- A dump can be added to another device, which then dumps the same bytes.
"""
import collections
import errno
import json
import random
import socket
import struct
import sys
import time
from typing import Any

import rig
from options import NESTED, RAW, Grammar, decode, encode

NEWQDISC, DELQDISC, GETQDISC = 36, 37, 38
REQUEST, ACK, DUMP, REPLACE, EXCL, CREATE = 1, 4, 0x300, 0x100, 0x200, 0x400
ACK_TLVS = 0x200
SOL_NETLINK, CAP_ACK, EXT_ACK = 270, 10, 11
ERROR, DONE = 2, 3
KIND, OPTIONS = 1, 2
MESSAGE = 1  # NLMSGERR_ATTR_MSG
ROOT = 0xFFFFFFFF
HANDLE, OTHER = 6 << 16, 7 << 16


class Kernel:
    """Sends requests to traffic control in the namespace in which it was created."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.socket.bind((0, 0))
        for option in (CAP_ACK, EXT_ACK):
            self.socket.setsockopt(SOL_NETLINK, option, 1)
        self.number = 0

    def send(self, kind: int, flags: int, index: int, handle: int, attributes: bytes) -> None:
        self.number += 1
        body = struct.pack("BxxxiIII", 0, index, handle, ROOT if index else 0, 0) + attributes
        self.socket.send(struct.pack("IHHII", 16 + len(body), kind, flags | REQUEST, self.number, 0) + body)

    def ask(self, kind: int, flags: int, index: int, handle: int, attributes: bytes = b"") -> tuple[int, str]:
        """Send a request; return the error number (0: none) and the kernel's message."""
        self.send(kind, flags | ACK, index, handle, attributes)
        reply = self.socket.recv(65536)
        size, what, reply_flags, number, _, code = struct.unpack("IHHIIi", reply[:20])
        assert (what, number) == (ERROR, self.number), reply
        words = dict(decode(reply[36:size])).get(MESSAGE, b"") if reply_flags & ACK_TLVS else b""
        return -code, words.rstrip(b"\0").decode()

    def options(self, index: int, kind: str) -> bytes | None:
        """Return the options that a device's root qdisc dumps; None if it is of another kind."""
        self.send(GETQDISC, DUMP, 0, 0, b"")
        found = None
        while True:
            data = self.socket.recv(1 << 18)
            while data:
                size, what, _, _, _ = struct.unpack("IHHII", data[:16])
                if what == DONE:
                    return found
                assert what == NEWQDISC, data
                device, _, parent = struct.unpack("iII", data[20:32])
                attributes = dict(decode(data[36:size]))
                if device == index and parent == ROOT and attributes[KIND] == kind.encode() + b"\0":
                    found = attributes[OPTIONS]
                data = data[-(-size // 4) * 4 :]


def message(kind: str, options: list[Any], flags: int = NESTED) -> bytes:
    return encode([(KIND, 0, kind.encode() + b"\0"), (OPTIONS, flags, options)])


def number(payload: bytes) -> int:
    """Decode a number of 32 or 64 bits."""
    return int.from_bytes(payload, "little")


def flat(nodes: list[tuple[int, bytes]], level: int | None) -> dict[object, int]:
    """Map attributes to values; attributes of a level are under (index, attribute)."""
    values: dict[object, int] = {}
    for kind, payload in nodes:
        if kind != level:
            values[kind] = number(payload)
            continue
        inside = {inner: number(value) for inner, value in decode(payload)}
        values.update({(inside[1], inner): value for inner, value in inside.items()})
    return values


class Fuzz:
    """Applies sets to one kind of qdisc, and collects the results."""

    def __init__(self, kind: str, grammar: Grammar, draw: random.Random, kernel: Kernel, senders: list[rig.Sender]) -> None:
        self.kind, self.grammar, self.draw, self.kernel, self.senders = kind, grammar, draw, kernel, senders
        self.loaded, self.fresh, self.copy = (socket.if_nametoindex(name) for name in ("a0", "c0", "d0"))
        self.state: dict[int, bytes | None] = {self.loaded: None, self.fresh: None, self.copy: None}
        self.handle = HANDLE
        self.counts: collections.Counter[str] = collections.Counter()
        self.words: collections.Counter[str] = collections.Counter()
        self.flaws: collections.Counter[str] = collections.Counter()
        self.wrong: list[dict[str, object]] = []

    def clear(self, device: int) -> None:
        if self.state[device] is not None:
            code, words = self.kernel.ask(DELQDISC, 0, device, 0)
            assert code == 0, (code, words)
            self.state[device] = None

    def operation(self) -> tuple[str, int, int]:
        """Choose an operation; return its name, netlink flags and device."""
        if self.draw.random() < 0.3:
            self.clear(self.fresh)
            return "add", CREATE | EXCL, self.fresh
        name = self.draw.choice(["add", "change", "replace", "replace by another"])
        if name == "add" or self.state[self.loaded] is None:
            self.clear(self.loaded)
            self.handle = HANDLE
            return "add", CREATE | EXCL, self.loaded
        if name == "change":
            return name, 0, self.loaded
        if name == "replace by another":
            self.handle = HANDLE + OTHER - self.handle
        return name, CREATE | REPLACE, self.loaded

    def one(self) -> None:
        name, flags, device = self.operation()
        flaw, nodes = self.grammar.flawed() if self.draw.random() < 0.5 else ("", self.grammar.sound())
        nest = NESTED
        if self.draw.random() < 0.02:
            flaw, nest = "options_flat", 0
        before, made_new = self.state[device], name in ("add", "replace by another")
        code, words = self.kernel.ask(NEWQDISC, flags, device, self.handle, message(self.kind, nodes, nest))
        after = self.state[device] = self.kernel.options(device, self.kind)
        self.counts[f"{name}: {'refused' if code else 'accepted'}"] += 1
        self.flaws[flaw] += 1
        if code:
            self.words[words] += 1
            self.expect(after == before, "a refusal changed the options", name, flaw, nodes, words)
            self.expect(code in (errno.EINVAL, errno.ERANGE, errno.EOPNOTSUPP), f"error {code}", name, flaw, nodes, words)
            self.expect(bool(flaw) or not made_new, "a sound set was refused", name, flaw, nodes, words)
            if name == "replace by another":
                self.handle = HANDLE + OTHER - self.handle
            return
        self.expect(not flaw, "a flawed set was accepted", name, flaw, nodes, words)
        self.expect(after is not None, "an accepted set is not there", name, flaw, nodes, words)
        if after is None or flaw:
            return
        level = self.grammar.numbers["TCA_QJUMP_LEVEL"] if self.kind == "qjump" else None
        asked, dumped = flat(decode(encode(nodes)), level), flat(decode(after), level)
        self.expect(asked.items() <= dumped.items(), "the dump is not what was asked", name, flaw, nodes, after.hex())
        code, words = self.kernel.ask(NEWQDISC, CREATE | EXCL, self.copy, HANDLE, message(self.kind, [(RAW, 0, after)]))
        again = self.state[self.copy] = self.kernel.options(self.copy, self.kind)
        self.expect((code, again) == (0, after), "the dump of the dump differs", name, flaw, nodes, f"{words} {after.hex()}")
        self.clear(self.copy)

    def expect(self, holds: bool, property_: str, name: str, flaw: str, nodes: list[Any], words: str) -> None:
        if not holds and len(self.wrong) < 20:
            self.wrong.append({"property": property_, "operation": name, "flaw": flaw, "set": repr(nodes), "words": words})

    def run(self, count: int) -> dict[str, object]:
        for number in range(count):
            for sender in self.senders:
                sender.send(self.draw.randrange(60, 1515))
            self.one()
            if number % 16 == 0:
                time.sleep(0.002)
        for device in self.state:
            self.clear(device)
        return {"counts": self.counts, "words": self.words, "flaws": self.flaws, "wrong": self.wrong}


rig.build()
for name in "cd":
    rig.run(f"ip -n a link add {name}0 type dummy")
    rig.run(f"ip -n a link set {name}0 addrgenmode none up")
every = [rig.Sender(p) for p in (0, 5, 7, 12)]
seed, numbers = sys.argv[1], json.loads(sys.argv[2])
tc = Kernel()
results = {}
for case in sys.argv[3:]:
    kind, count = case.split(":")
    draw = random.Random(f"{seed} {kind}")
    results[kind] = Fuzz(kind, Grammar(kind, numbers, draw), draw, tc, every).run(int(count))
rig.report(**results)
