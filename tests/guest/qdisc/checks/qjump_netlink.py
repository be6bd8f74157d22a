"""The kernel's answers to messages that tc never sends: the strict policies of qjump's attributes.

`answers`: per case the error number, the message of the extended acknowledgement, and whether it
points at an attribute.
"""
import errno
import json
import socket
import struct

import rig

NETLINK_EXT_ACK, SOL_NETLINK = 11, 270
REQUEST_ACK_CREATE_EXCL, NEWQDISC = 0x0605, 36
ROOT, HANDLE = 0xFFFFFFFF, 0x60000
NESTED = 0x8000
EPOCH, LEVEL, PRIOMAP, OVERHEAD, MPU, SLACK = range(1, 7)
INDEX, BUDGET, LIMIT = range(1, 4)
HOUR = 3600 * 10**9


def attr(kind: int, data: bytes) -> bytes:
    return struct.pack("HH", 4 + len(data), kind) + data.ljust((len(data) + 3) & ~3, b"\0")


def u64(kind: int, value: int) -> bytes:
    return attr(kind, struct.pack("Q", value))


def level(*attributes: bytes) -> bytes:
    return attr(LEVEL | NESTED, b"".join(attributes))


T = u64(EPOCH, 10_000_000)
CASES = {
    "good": T + level(u64(INDEX, 3), u64(BUDGET, 3100)),
    "no index": T + level(u64(BUDGET, 3100)),
    "index 8": T + level(u64(INDEX, 8)),
    "level not nested": T + attr(LEVEL, u64(INDEX, 3)),
    "unknown level attribute": T + level(u64(INDEX, 3), u64(9, 1)),
    "unknown attribute": T + u64(30, 1),
    "budget of 63": T + level(u64(INDEX, 3), u64(BUDGET, 63)),
    "budget of 2 GB": T + level(u64(INDEX, 3), u64(BUDGET, 1 << 31)),
    "budget of 16 bits": T + level(u64(INDEX, 3), attr(BUDGET, bytes(2))),
    "no limit": T + level(u64(INDEX, 3), u64(LIMIT, 0)),
    "long limit": T + level(u64(INDEX, 3), u64(LIMIT, 10**6 + 1)),
    "budget without an epoch": level(u64(INDEX, 3), u64(BUDGET, 3100)),
    "budget and a short epoch": u64(EPOCH, 999) + level(u64(INDEX, 3), u64(BUDGET, 3100)),
    "long epoch": u64(EPOCH, HOUR + 1),
    "long slack": T + u64(SLACK, HOUR + 1),
    "map of 15": T + attr(PRIOMAP, bytes(15)),
    "map of 17": T + attr(PRIOMAP, bytes(17)),
    "map to 8": T + attr(PRIOMAP, bytes([8] * 16)),
    "overhead 2049": T + u64(OVERHEAD, 2049),
    "mpu 2049": T + u64(MPU, 2049),
}


def send(options: bytes) -> dict[str, object]:
    """Add the qdisc as root of a0; return the kernel's answer."""
    head = struct.pack("BxxxiIII", 0, index, HANDLE, ROOT, 0)
    body = head + attr(1, b"qjump\0") + attr(2 | NESTED, options)
    netlink.send(struct.pack("IHHII", 16 + len(body), NEWQDISC, REQUEST_ACK_CREATE_EXCL, 1, 0) + body)
    answer = netlink.recv(65536)
    flags, error = struct.unpack_from("H", answer, 6)[0], struct.unpack_from("i", answer, 16)[0]
    rest = answer[20 + (16 if flags & 0x100 else struct.unpack_from("I", answer, 20)[0]):]
    found = {}
    while len(rest) >= 4:
        length, kind = struct.unpack_from("HH", rest)
        found[kind & 0x3FFF] = rest[4:length]
        rest = rest[(length + 3) & ~3:]
    return {"error": errno.errorcode.get(-error, error), "words": found.get(1, b"").rstrip(b"\0").decode(), "points": 2 in found}


rig.build()
rig.enter("a")
index = socket.if_nametoindex("a0")
netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
netlink.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
answers = {name: send(options) for name, options in CASES.items() if name != "good"}
leftover = "qjump" in {q["kind"] for q in json.loads(rig.tc("-j qdisc show dev a0").stdout)}
rig.report(good=send(CASES["good"]), answers=answers, leftover=leftover)
