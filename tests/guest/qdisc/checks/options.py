"""Generate sound and flawed sets of options for qjump, qjump2015 and wire as netlink attributes.

The generator of random numbers is passed in. A set is a list of nodes (type, flags, payload), where
the payload is bytes or another such list, or, with type RAW, bytes without a header. A fresh qdisc
accepts a sound set; a set with a flaw must be refused by every qdisc. Whether a qdisc that already
has options accepts a sound set is not predicted.
"""
import random
import struct
from collections.abc import Callable
from typing import Any

NESTED = 0x8000
NET_BYTEORDER = 0x4000
RAW = -1
Node = tuple[int, int, Any]
Fields = dict[str, tuple[str, list[int], list[int]]]  # name: format, values inside the limits, values outside

U32, U64 = 2**32 - 1, 2**64 - 1
HOUR = 3600 * 10**9
QJUMP: Fields = {
    "TCA_QJUMP_EPOCH": ("Q", [1000, 1001, 10**6, 5 * 10**6, 10**9, HOUR], [HOUR + 1, 2**63, U64]),
    "TCA_QJUMP_OVERHEAD": ("Q", [0, 1, 24, 2048], [2049, U32, U64]),
    "TCA_QJUMP_MPU": ("Q", [0, 1, 84, 2048], [2049, U32, U64]),
    "TCA_QJUMP_SLACK": ("Q", [0, 1, 25_000, HOUR], [HOUR + 1, 2**63, U64]),
}
LEVEL: Fields = {
    "TCA_QJUMP_LEVEL_BUDGET": ("Q", [0, 2**12, 15500, 2**31 - 1], [1, 63, 2**31, U32, U64]),
    "TCA_QJUMP_LEVEL_LIMIT": ("Q", [1, 2, 1000, 10**6], [0, 10**6 + 1, U32, U64]),
}
QJUMP2015: Fields = {"TCA_QJUMP2015_EPOCH": ("Q", [1000, 1001, 10**6, HOUR], [0, 1, 999, HOUR + 1, 2**63, U64])}
WIRE: Fields = {
    "TCA_WIRE_RATE": ("Q", [1000, 1001, 10**7, 10**8 + 1, 10**12], [1, 999, 10**12 + 1, 2**63, U64]),
    "TCA_WIRE_LIMIT": ("I", [64, 65, 152200, 2**31 - 1], [0, 1, 63, 2**31, U32]),
    "TCA_WIRE_CLASSIFY": ("I", [0, 1, 2], [3, 256, U32]),
    "TCA_WIRE_OVERHEAD": ("I", [0, 1, 24, 2048], [2049, U32]),
    "TCA_WIRE_DELAY": ("Q", [0, 1, 10**6, 10**10], [10**10 + 1, U64]),
    "TCA_WIRE_ORPHAN": ("I", [0, 1], [2, U32]),
    "TCA_WIRE_XOFF": ("I", [15001, 30000, 2**31, U32], []),
    "TCA_WIRE_XON": ("I", [0, 1, 15000], [U32]),
    "TCA_WIRE_PFC": ("I", [0, 1, 127, 255], [256, U32]),
}


def encode(nodes: list[Node]) -> bytes:
    """Encode nodes as netlink attributes."""
    data = b""
    for kind, flags, payload in nodes:
        if kind == RAW:
            data += payload
            continue
        body = payload if isinstance(payload, bytes) else encode(payload)
        data += struct.pack("HH", 4 + len(body), kind | flags) + body + bytes(-len(body) % 4)
    return data


def decode(data: bytes) -> list[tuple[int, bytes]]:
    """Return (type, payload) of each attribute."""
    found = []
    while len(data) >= 4:
        size, kind = struct.unpack("HH", data[:4])
        assert size >= 4, data
        found.append((kind & 0x3FFF, data[4:size]))
        data = data[-(-size // 4) * 4 :]
    return found


class Grammar:
    """Generates options of one kind of qdisc; `numbers` maps names of attributes to numbers."""

    def __init__(self, kind: str, numbers: dict[str, int], draw: random.Random) -> None:
        self.kind, self.numbers, self.draw = kind, numbers, draw
        self.fields = {"qjump": QJUMP, "qjump2015": QJUMP2015, "wire": WIRE}[kind]
        self.unknown = [0, self.largest() + 1, 0x3FFF] + [numbers[name] for name in (f"TCA_{kind.upper()}_PAD",) if name in numbers]

    def largest(self, prefix: str = "") -> int:
        return self.numbers[f"__TCA_{self.kind.upper()}{prefix}_MAX"] - 1

    def scalar(self, name: str, value: int, fields: Fields | None = None) -> Node:
        return self.numbers[name], 0, struct.pack((fields or self.fields)[name][0], value)

    def chosen(self, fields: Fields, share: float) -> list[tuple[str, int]]:
        return [(name, self.draw.choice(values)) for name, (_, values, _) in fields.items() if self.draw.random() < share]

    def sound(self) -> list[Node]:
        """Return a shuffled set that a fresh qdisc accepts, perhaps with a repeated attribute."""
        values = dict(self.chosen(self.fields, 0.5))
        nodes: list[Node] = []
        if self.kind == "wire":
            values.setdefault("TCA_WIRE_RATE", 10**7)
            if {"TCA_WIRE_XON", "TCA_WIRE_PFC"} & set(values):
                values.setdefault("TCA_WIRE_XOFF", 15001)
        elif self.kind == "qjump2015":
            values.setdefault("TCA_QJUMP2015_EPOCH", 10**6)
            if self.draw.random() < 0.8:
                budgets = [self.draw.choice([0, 1, 2048, 15500, U32]) for _ in range(8)]
                nodes.append((self.numbers["TCA_QJUMP2015_BUDGETS"], 0, struct.pack("8I", *budgets)))
        else:
            values.setdefault("TCA_QJUMP_EPOCH", 10**6)
            nodes += [self.level(i) for i in range(8) if self.draw.random() < 0.4]
            if self.draw.random() < 0.4:
                nodes.append((self.numbers["TCA_QJUMP_PRIOMAP"], 0, bytes(self.draw.randrange(8) for _ in range(16))))
        nodes += [self.scalar(name, value) for name, value in values.items()]
        self.draw.shuffle(nodes)
        if self.draw.random() < 0.1:
            name = self.draw.choice(list(values))
            nodes.insert(0, self.scalar(name, self.draw.choice(self.fields[name][1])))
        return nodes

    def level(self, index: int) -> Node:
        inside = [self.scalar(name, value, LEVEL) for name, value in self.chosen(LEVEL, 0.6)]
        inside.append((self.numbers["TCA_QJUMP_LEVEL_INDEX"], 0, struct.pack("Q", index)))
        self.draw.shuffle(inside)
        return self.numbers["TCA_QJUMP_LEVEL"], NESTED, inside

    def flawed(self) -> tuple[str, list[Node]]:
        """Return the name of a flaw, and a set that has it."""
        flaws: list[Callable[[list[Node]], None]] = [
            self.out_of_range, self.wrong_length, self.unknown_type, self.scalar_as_nest, self.trailing, self.overlong,
        ]
        if self.kind == "qjump":
            flaws += [
                self.level_flat, self.level_nameless, self.level_unknown, self.level_absurd, self.level_out_of_range,
                self.level_wrong_length, self.map_out_of_range, self.map_wrong_length, self.budget_below_mpu, self.budget_without_epoch,
            ]
        elif self.kind == "qjump2015":
            flaws.append(self.budgets_wrong_length)
        else:
            flaws.append(self.thresholds_alike)
        flaw, nodes = self.draw.choice(flaws), self.sound()
        flaw(nodes)
        return flaw.__name__, nodes

    # Flaws are appended: if an attribute is repeated, the last one counts.

    def out_of_range(self, nodes: list[Node]) -> None:
        name = self.draw.choice([name for name, (_, _, absurd) in self.fields.items() if absurd])
        nodes.append(self.scalar(name, self.draw.choice(self.fields[name][2])))

    def wrong_length(self, nodes: list[Node]) -> None:
        name = self.draw.choice(list(self.fields))
        right = {4, 8} if self.kind == "qjump" else {struct.calcsize(self.fields[name][0])}
        size = self.draw.choice([n for n in (0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 64) if n not in right])
        nodes.append((self.numbers[name], 0, self.draw.randbytes(size)))

    def unknown_type(self, nodes: list[Node]) -> None:
        nodes.append((self.draw.choice(self.unknown), self.draw.choice([0, NESTED, NET_BYTEORDER]), self.draw.randbytes(4)))

    def scalar_as_nest(self, nodes: list[Node]) -> None:
        name = self.draw.choice(list(self.fields))
        kind, _, payload = self.scalar(name, self.draw.choice(self.fields[name][1]))
        nodes.append((kind, NESTED, payload))

    def trailing(self, nodes: list[Node]) -> None:
        """Append too few bytes for a header."""
        nodes.append((RAW, 0, self.draw.randbytes(self.draw.randrange(1, 4))))

    def overlong(self, nodes: list[Node]) -> None:
        """Append a header with a length beyond the end, or less than itself."""
        size = self.draw.choice([0, 1, 3, 9, 200, 0xFFFF])
        nodes.append((RAW, 0, struct.pack("HHI", size, self.largest(), 0)))

    def level_flat(self, nodes: list[Node]) -> None:
        kind, _, inside = self.level(self.draw.randrange(8))
        nodes.append((kind, 0, inside))

    def level_nameless(self, nodes: list[Node]) -> None:
        nodes.append((self.numbers["TCA_QJUMP_LEVEL"], NESTED, [self.scalar(name, value, LEVEL) for name, value in self.chosen(LEVEL, 0.5)]))

    def level_unknown(self, nodes: list[Node]) -> None:
        kind, flags, inside = self.level(self.draw.randrange(8))
        inside.append((self.draw.choice([0, self.largest("_LEVEL") + 1, 0x3FFF]), 0, self.draw.randbytes(4)))
        nodes.append((kind, flags, inside))

    def level_absurd(self, nodes: list[Node]) -> None:
        index = struct.pack("Q", self.draw.choice([8, 255, U32, U64]))
        nodes.append((self.numbers["TCA_QJUMP_LEVEL"], NESTED, [(self.numbers["TCA_QJUMP_LEVEL_INDEX"], 0, index)]))

    def level_out_of_range(self, nodes: list[Node]) -> None:
        kind, flags, inside = self.level(self.draw.randrange(8))
        name = self.draw.choice(list(LEVEL))
        nodes[:] = [node for node in nodes if node[0] != kind]
        nodes.append((kind, flags, [*inside, self.scalar(name, self.draw.choice(LEVEL[name][2]), LEVEL)]))

    def level_wrong_length(self, nodes: list[Node]) -> None:
        kind, flags, inside = self.level(self.draw.randrange(8))
        inside.append((self.numbers[self.draw.choice(list(LEVEL))], 0, self.draw.randbytes(self.draw.choice([0, 1, 3, 5, 12]))))
        nodes.append((kind, flags, inside))

    def map_out_of_range(self, nodes: list[Node]) -> None:
        entries = bytearray(16)
        entries[self.draw.randrange(16)] = self.draw.choice([8, 128, 255])
        nodes.append((self.numbers["TCA_QJUMP_PRIOMAP"], 0, bytes(entries)))

    def map_wrong_length(self, nodes: list[Node]) -> None:
        nodes.append((self.numbers["TCA_QJUMP_PRIOMAP"], 0, bytes(self.draw.choice([0, 1, 15, 17, 32]))))

    def budgets_wrong_length(self, nodes: list[Node]) -> None:
        nodes.append((self.numbers["TCA_QJUMP2015_BUDGETS"], 0, bytes(self.draw.choice([0, 4, 31, 33, 64]))))

    def budget(self, nodes: list[Node], budget: int) -> None:
        """Give a budget to one level, and to no other."""
        kind = self.numbers["TCA_QJUMP_LEVEL"]
        nodes[:] = [node for node in nodes if node[0] != kind]
        index = struct.pack("Q", self.draw.randrange(8))
        nodes.append((kind, NESTED, [(self.numbers["TCA_QJUMP_LEVEL_INDEX"], 0, index), self.scalar("TCA_QJUMP_LEVEL_BUDGET", budget, LEVEL)]))

    def budget_without_epoch(self, nodes: list[Node]) -> None:
        self.budget(nodes, 15500)
        nodes.append(self.scalar("TCA_QJUMP_EPOCH", self.draw.choice([0, 1, 999])))

    def budget_below_mpu(self, nodes: list[Node]) -> None:
        self.budget(nodes, 2047)
        nodes.append(self.scalar("TCA_QJUMP_MPU", 2048))

    def thresholds_alike(self, nodes: list[Node]) -> None:
        value = self.draw.choice([1, 30000, U32])
        nodes += [self.scalar("TCA_WIRE_XOFF", value), self.scalar("TCA_WIRE_XON", value)]
