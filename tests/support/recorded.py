"""What a guest's trace has of frames, made up, and read as the guest reads it."""

from __future__ import annotations

import itertools
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from qjump_mn.model.topology import Network
from qjump_mn.steps.frames import READS


class Event(NamedTuple):
    """A frame that started on a wire, or was dropped if it has no ``start``; times are ns."""

    device: str
    level: int
    length: int
    arrival: int
    start: int
    handover: int
    vlan: int
    head: bytes


def ping(source: str, destination: str, sequence: int, *, ttl: int = 64) -> bytes:
    """The first bytes of an echo request, without a tag."""
    checksum = sequence ^ ttl  # any
    icmp = struct.pack(">BBHHH", 8, 0, checksum, 77, sequence)
    return _ipv4(source, destination, 1, sequence, ttl) + icmp.ljust(58, b"\0")


def tcp(source: str, destination: str, ports: tuple[int, int], sequence: int) -> bytes:
    """The first bytes of a segment, without a tag."""
    segment = struct.pack(">HHIIHHHH", *ports, sequence, 0, 0x5010, 100, sequence & 0xFFFF, 0)
    return _ipv4(source, destination, 6, sequence & 0xFFFF, 64) + segment.ljust(58, b"\0")


def _ipv4(source: str, destination: str, protocol: int, number: int, ttl: int) -> bytes:
    addresses = b"".join(bytes(map(int, each.split("."))) for each in (source, destination))
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 84, number, 0x4000, ttl, protocol, 0) + addresses
    return b"\2" * 6 + b"\4" * 6 + b"\x08\0" + ip


def tagged(head: bytes, level: int) -> bytes:
    """The same frame with its tag inline."""
    return head[:12] + b"\x81\0" + bytes([level << 5, 2]) + head[12:]


def crossing(
    network: Network,
    way: Sequence[str],
    head: bytes,
    *,
    at: int,
    length: int,
    waits: Sequence[int],
    level: int = 0,
) -> list[Event]:
    """The events of a packet on its way, which waits that long at each port."""
    interfaces, events = network.interfaces(), []
    for hop, (link, wait) in enumerate(zip(itertools.pairwise(way), waits, strict=True)):
        handover = at + wait + 8 * (length + 8) * 100
        # Hosts have a tag apart, switches inline, as it may be.
        data = tagged(head, level) if hop % 2 else head
        vlan = -1 if hop % 2 else level << 13 | 2
        events.append(
            Event(interfaces[link], level, length, at, at + wait, handover, vlan, data[:96])
        )
        at = handover
    return events


def recorded(
    folder: Path, events: Sequence[Event], *, from_ns: int, to_ns: int, lost: int = 0
) -> bytes:
    """What the guest's program prints of a trace with these events; ``folder`` is empty."""
    for event in ("wire_frame", "wire_drop"):
        (folder / "events/wire" / event).mkdir(parents=True)
    bounds = f"handover >= {from_ns} && arrival < {to_ns}\n"
    (folder / "events/wire/wire_frame/filter").write_text(bounds)
    (folder / "per_cpu/cpu0").mkdir(parents=True)
    (folder / "per_cpu/cpu0/stats").write_text(f"entries: 5\ndropped events: {lost}\n")
    (folder / "trace").write_text("# tracer: nop\n#\n" + "".join(map(_line, events)))
    argv = [sys.executable, "-c", READS, str(folder)]
    return subprocess.run(argv, capture_output=True, check=True).stdout


def _line(event: Event) -> str:
    kind = "frame" if event.start else "drop"
    fields = (
        " ".join(
            f"{name}={value.hex() if isinstance(value, bytes) else value}"
            for name, value in event._asdict().items()
        )
        .replace("device=", "dev=")
        .replace("length=", "len=")
    )
    return f"          iperf3-123     [000] b....     1.000001: wire_{kind}: {fields}\n"
