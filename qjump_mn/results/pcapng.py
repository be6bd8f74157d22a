"""Write recorded frames as a pcapng file: an interface for each port, virtual time in ns.

draft-ietf-opsawg-pcapng. A frame has the time at which its first bit was sent; of its bytes only
the first are there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import numpy as np

from qjump_mn.results.frames import Frames
from qjump_mn.results.packets import Ends

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_BYTE_ORDER = 0x1A2B3C4D
_ETHERNET = 1
_SNAP_BYTES = 96
_END, _COMMENT, _NAME, _RESOLUTION, _FLAGS = 0, 1, 2, 9, 2
_NANOSECONDS = b"\x09"
_OUTBOUND = struct.pack("<I", 2)
_FCS_BYTES = 4


def blocks(frames: Frames, ends: Mapping[str, Ends], zero_ns: int) -> Iterator[bytes]:
    """Yield the file: all frames in the order of their times since ``zero_ns``, drops with a
    comment.

    Frames of devices without ``ends`` are left out.
    """
    yield _block(_SECTION, struct.pack("<IHHq", _BYTE_ORDER, 1, 0, -1))
    numbers: dict[int, int] = {}
    for index, device in enumerate(frames.devices):
        if device in ends:
            numbers[index] = len(numbers)
            options = (_NAME, " to ".join(ends[device]).encode()), (_RESOLUTION, _NANOSECONDS)
            yield _block(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, _SNAP_BYTES), *options)
    yield from _packets(frames, numbers, zero_ns)


def _packets(frames: Frames, numbers: Mapping[int, int], zero_ns: int) -> Iterator[bytes]:
    at = np.where(frames.dropped, frames.arrival, frames.start) - zero_ns
    dropped = frames.dropped.tolist()
    # A capture has no time before its zero: what came first waits from there on.
    at = np.maximum(at, 0)
    columns = (frames.device, at, frames.length, frames.tag, frames.head)
    rows = list(zip(*(column.tolist() for column in columns), dropped, strict=True))
    for row in np.argsort(at, kind="stable").tolist():
        device, time, length, tag, head, is_dropped = rows[row]
        if device not in numbers:
            continue
        data = _tagged(frames.heads[head], tag)
        sizes = len(data), max(length - _FCS_BYTES, len(data))
        body = struct.pack("<IIIII", numbers[device], time >> 32, time & 0xFFFFFFFF, *sizes)
        comment = ((_COMMENT, b"dropped: its queue was full"),) if is_dropped else ()
        yield _block(_PACKET, body + _padded(data), *comment, (_FLAGS, _OUTBOUND))


def _tagged(head: bytes, tag: int) -> bytes:
    return head if tag < 0 else head[:12] + struct.pack(">HH", 0x8100, tag) + head[12:]


def _block(kind: int, body: bytes, *options: tuple[int, bytes]) -> bytes:
    parts = [struct.pack("<HH", code, len(value)) + _padded(value) for code, value in options]
    end = struct.pack("<HH", _END, 0) if options else b""
    content = body + b"".join(parts) + end
    size = struct.pack("<I", len(content) + 12)
    return struct.pack("<I", kind) + size + content + size


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
