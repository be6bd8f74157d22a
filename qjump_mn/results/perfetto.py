"""Write recorded frames as a Chrome trace, which Perfetto opens: each node is a process, each port
a track, each frame a slice from its first bit to its last, and arrows are a packet's way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from qjump_mn import theory
from qjump_mn.results import packets
from qjump_mn.results.frames import Frames
from qjump_mn.results.packets import Ends


def lines(
    frames: Frames, ends: Mapping[str, Ends], rates: Mapping[str, int], zero_ns: int
) -> Iterator[bytes]:
    """Yield the file: all frames, with times since ``zero_ns``; ``rates`` are in bit/s, by device.

    Frames of devices without ``ends`` are left out.
    """
    yield b'{"displayTimeUnit":"ns","traceEvents":[\n'
    for place, event in enumerate(_events(frames, ends, rates, zero_ns)):
        yield (b",\n" if place else b"") + msgspec.json.encode(event)
    yield b"\n]}\n"


def _events(
    frames: Frames, ends: Mapping[str, Ends], rates: Mapping[str, int], zero_ns: int
) -> Iterator[dict[str, Any]]:
    devices = [device for device in frames.devices if device in ends]
    nodes = {
        node: place + 1 for place, node in enumerate(sorted({ends[one][0] for one in devices}))
    }
    tracks = {
        device: {"pid": nodes[ends[device][0]], "tid": place + 1}
        for place, device in enumerate(devices)
    }
    for node, pid in nodes.items():
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": node}}
    for device, track in tracks.items():
        name = f"{ends[device][0]} to {ends[device][1]}"
        yield {"ph": "M", "name": "thread_name", **track, "args": {"name": name}}
    packet = packets.follow(frames, ends).tolist()
    hops, seen = Counter(packet), Counter[int]()
    arrivals, starts = (each.tolist() for each in (frames.arrival, frames.start))
    for row in np.argsort(frames.arrival, kind="stable").tolist():
        device = frames.devices[frames.device[row]]
        if device not in tracks:
            continue
        number, track = packet[row], tracks[device]
        dropped = bool(frames.dropped[row])
        common = {"name": _name(frames, row), "cat": "frame", **track}
        common["ts"] = ((arrivals if dropped else starts)[row] - zero_ns) / 1e3
        if dropped:
            yield {**common, "ph": "i", "s": "t", "name": f"dropped: {common['name']}"}
        else:
            yield {**common, "ph": "X", **_slice(frames, row, number, rates[device])}
        if hops[number] > 1:
            phase = "s" if not seen[number] else "f" if seen[number] == hops[number] - 1 else "t"
            yield {**common, "ph": phase, "id": number, "bp": "e", "cat": "way", "name": "way"}
        seen[number] += 1


def _slice(frames: Frames, row: int, number: int, rate_bps: int) -> dict[str, Any]:
    length = int(frames.length[row])
    return {
        "dur": (theory.PREAMBLE_BYTES + length) * 8e6 / rate_bps,
        "args": {
            "packet": number,
            "bytes": length,
            "level": int(frames.level[row]),
            "waited_us": int(frames.waited[row]) / 1e3,
        },
    }


def _name(frames: Frames, row: int) -> str:
    header = packets.header(frames.heads[frames.head[row]])
    way = f" {header.source} to {header.destination}" if header.source else ""
    return f"{header.protocol}{way}"
