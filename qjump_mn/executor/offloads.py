"""Turn an interface's offloads on and off, as ``ethtool -K`` does."""

from __future__ import annotations

import array
import fcntl
import fnmatch
import socket
import struct

SEGMENTATION = ("tx-tcp*-segmentation", "tx-generic-segmentation")
"""The kernel's names for ``tso`` and ``gso``."""
RECEIVE_OFFLOAD = "rx-gro"
"""The kernel's name for ``gro``."""

# include/uapi/linux/sockios.h, ethtool.h
_SIOCETHTOOL = 0x8946
_GSTRINGS, _SFEATURES, _SS_FEATURES = 0x1B, 0x3B, 4
_NAME_BYTES, _MAX_NAMES = 32, 512


def turn(device: str, *, on: bool) -> None:
    """Turn segmentation offload on, or segmentation and receive offload off.

    With offloads off, queues hold single frames instead of up to 64 kB of TCP at once, and
    received frames are not merged.
    """
    patterns = SEGMENTATION if on else (*SEGMENTATION, RECEIVE_OFFLOAD)
    names = array.array("I", [_GSTRINGS, _SS_FEATURES, 0, *[0] * (_MAX_NAMES * _NAME_BYTES // 4)])
    with socket.socket(type=socket.SOCK_DGRAM) as handle:

        def call(data: array.array[int]) -> None:
            request = struct.pack("16sP16x", device.encode(), data.buffer_info()[0])
            fcntl.ioctl(handle, _SIOCETHTOOL, request)

        call(names)
        words = [0] * ((names[2] + 31) // 32)
        features = struct.iter_unpack(f"{_NAME_BYTES}s", names[3:].tobytes())
        for number, (name,) in enumerate(features):
            if any(fnmatch.fnmatch(name.rstrip(b"\0").decode(), pattern) for pattern in patterns):
                words[number // 32] |= 1 << number % 32
        blocks = (value for valid in words for value in (valid, valid if on else 0))
        call(array.array("I", [_SFEATURES, len(words), *blocks]))
