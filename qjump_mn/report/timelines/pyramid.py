"""Many points as few numbers: in the page of a time line every point has its time and its value, and above
them lie the least and the greatest of each 16, of each 256 and so on, so that drawing a million takes as many
steps as the picture has columns."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Words = npt.NDArray[np.int32] | npt.NDArray[np.float32]

FANOUT = 16
MOST_POINTS = 1 << 20
"""Of one line: what has more keeps the least and the greatest of every so many."""


def levels(values: npt.NDArray[np.float32]) -> list[npt.NDArray[np.float32]]:
    """The least and the greatest of each :data:`FANOUT` values, in order, then of each FANOUT of these, until
    no more than FANOUT are left; each of shape (chunks, 2)."""
    found, low, high = [], values, values
    while len(low) > FANOUT:
        starts = np.arange(0, len(low), FANOUT)
        low, high = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
        found.append(np.stack([low, high], axis=1))
    return found


def kept(values: Floats, most: int = MOST_POINTS) -> Rows:
    """Which rows to keep of ``values``: all, or, where there are more than ``most``, the least and the
    greatest of each of ``most`` / 2 chunks; in their order."""
    if len(values) <= most:
        return np.arange(len(values))
    size = -(-len(values) // (most // 2))
    padded = np.pad(values, (0, -len(values) % size), mode="edge").reshape(-1, size)
    begins = np.arange(len(padded)) * size
    rows = np.concatenate([begins + padded.argmin(axis=1), begins + padded.argmax(axis=1)])
    return np.unique(np.minimum(rows, len(values) - 1))


class Store:
    """Arrays of 32-bit words, one behind the other, as text for a page."""

    def __init__(self) -> None:
        self._words: list[Words] = []
        self._size = 0

    def add(self, words: Words) -> tuple[int, int]:
        """Put an array at the end; return its place there and its length, in words."""
        place = (self._size, words.size)
        self._words.append(words.ravel())
        self._size += words.size
        return place

    def text(self) -> str:
        """Everything, compressed (zlib) and in base64. First the lowest byte of every word, then the next
        of every word: neighbours that are alike take less room so."""
        data = b"".join(words.astype(words.dtype.newbyteorder("<")).tobytes() for words in self._words)
        planes = np.frombuffer(data, dtype=np.uint8).reshape(-1, 4).T
        return base64.b64encode(zlib.compress(planes.tobytes(), 6)).decode()
