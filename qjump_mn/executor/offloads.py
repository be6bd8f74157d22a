"""An interface's offloads, as ``ethtool -K`` changes them."""

from __future__ import annotations

import array
import fcntl
import fnmatch
import socket
import struct

CUTTING = ("tx-tcp*-segmentation", "tx-generic-segmentation")
"""What ``tso`` and ``gso`` stand for."""
JOINING = "rx-gro"
"""What ``gro`` stands for."""

# include/uapi/linux/sockios.h, ethtool.h
_SIOCETHTOOL = 0x8946
_GSTRINGS, _SFEATURES, _SS_FEATURES = 0x1B, 0x3B, 4
_NAME_BYTES, _MOST_NAMES = 32, 512


def turn(device: str, *, on: bool) -> None:
    """Off, what is queued is frames, not TCP's 64 kB at once, and what comes in stays frames; on, the first
    is no longer so."""
    patterns = CUTTING if on else (*CUTTING, JOINING)
    names = array.array("I", [_GSTRINGS, _SS_FEATURES, 0, *[0] * (_MOST_NAMES * _NAME_BYTES // 4)])
    with socket.socket(type=socket.SOCK_DGRAM) as handle:

        def call(data: array.array[int]) -> None:
            request = struct.pack("16sP16x", device.encode(), data.buffer_info()[0])
            fcntl.ioctl(handle, _SIOCETHTOOL, request)

        call(names)
        words = [0] * ((names[2] + 31) // 32)
        for number, (name,) in enumerate(struct.iter_unpack(f"{_NAME_BYTES}s", names[3:].tobytes())):
            if any(fnmatch.fnmatch(name.rstrip(b"\0").decode(), pattern) for pattern in patterns):
                words[number // 32] |= 1 << number % 32
        blocks = (value for valid in words for value in (valid, valid if on else 0))
        call(array.array("I", [_SFEATURES, len(words), *blocks]))
