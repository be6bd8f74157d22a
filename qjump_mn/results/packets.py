"""Tell packets by their first bytes, and follow each from port to port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from qjump_mn.results.frames import Frames, Numbers

_IPV4 = b"\x08\0"
_ETHERNET = 14
ICMP, TCP, UDP = 1, 6, 17
PROTOCOLS = {ICMP: "ICMP", TCP: "TCP", UDP: "UDP"}
_OTHERS = {0x0806: "ARP", 0x86DD: "IPv6", 0x88F7: "PTP"}

Ends = tuple[str, str]
"""The nodes at which a wire begins and ends."""


class Header(NamedTuple):
    """What a frame says of itself: ``source`` and ``destination`` are IPv4 addresses, or "" without
    IPv4; ``ports`` are those of TCP and UDP, or 0; ``number`` is its ICMP or TCP sequence number,
    or else its IP identification."""

    source: str
    destination: str
    protocol: str
    ports: tuple[int, int]
    number: int


def header(head: bytes) -> Header:
    """Parse a frame's first bytes, without a tag; what is cut off reads as zeros."""
    kind = int.from_bytes(head[12:14], "big")
    if head[12:14] != _IPV4:
        return Header("", "", _OTHERS.get(kind, f"Ethernet type {kind:#06x}"), (0, 0), 0)
    data = head.ljust(_ETHERNET + 60 + 12, b"\0")
    source, destination = (".".join(map(str, data[at : at + 4])) for at in (26, 30))
    protocol, transport = data[23], data[_transport(data) :]
    first, second = (int.from_bytes(transport[at : at + 2], "big") for at in (0, 2))
    number = int.from_bytes(data[18:20], "big")
    if protocol == ICMP:
        number = int.from_bytes(transport[6:8], "big")
    elif protocol == TCP:
        number = int.from_bytes(transport[4:8], "big")
    ports = (first, second) if protocol in (TCP, UDP) else (0, 0)
    name = PROTOCOLS.get(protocol, f"IP protocol {protocol}")
    return Header(source, destination, name, ports, number)


def identity(head: bytes) -> bytes:
    """Return what is the same at every port, and differs between packets.

    Left out are what switches and queues may change: time to live, ECN marks and checksums.
    """
    if head[12:14] != _IPV4:
        return head
    at = _transport(head)
    transport = bytearray(head[at : at + 16])
    place = {ICMP: 2, UDP: 6}.get(head[23] if len(head) > 23 else 0)
    if place is not None:
        transport[place : place + 2] = b"\0\0"
    return head[16:22] + head[23:24] + head[26:34] + bytes(transport)


def _transport(head: bytes) -> int:
    """Return where the transport header begins."""
    return _ETHERNET + 4 * (head[_ETHERNET] & 15 if len(head) > _ETHERNET else 5)


def follow(frames: Frames, ends: Mapping[str, Ends]) -> Numbers:
    """Return the number of the packet of each row, from 0 in the order of their first arrivals.

    A frame continues the way of the packet of the same identity that came to its node last. Rows of
    devices that have no ``ends`` get -1.
    """
    keys: dict[bytes, int] = {}
    key_of = [keys.setdefault(identity(head), len(keys)) for head in frames.heads]
    nodes = [ends.get(device) for device in frames.devices]
    packets = np.full(len(frames.device), -1, dtype=np.int64)
    came: dict[tuple[int, str], list[tuple[int, int]]] = {}
    count = 0
    handovers, dropped = frames.handover.tolist(), frames.dropped.tolist()
    devices, heads, arrivals = (
        column.tolist() for column in (frames.device, frames.head, frames.arrival)
    )
    for row in np.argsort(frames.arrival, kind="stable").tolist():
        if (way := nodes[devices[row]]) is None:
            continue
        key = key_of[heads[row]]
        here = came.get((key, way[0]), ())
        packet = next((one for at, one in reversed(here) if at <= arrivals[row]), None)
        if packet is None:
            packet, count = count, count + 1
        packets[row] = packet
        if not dropped[row]:
            came.setdefault((key, way[1]), []).append((handovers[row], packet))
    return packets
