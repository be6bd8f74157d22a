"""Pack the points of a time line into its page: a limited number for each line, compressed."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Words = npt.NDArray[np.int32] | npt.NDArray[np.float32]

MAX_POINTS = 1 << 20
"""Of one line: what has more keeps the least and the greatest of every so many."""


def kept(values: Floats, most: int = MAX_POINTS) -> Rows:
    """Return the rows of ``values`` to keep: all, or the least and greatest of each of ``most`` / 2
    chunks."""
    if len(values) <= most:
        return np.arange(len(values))
    size = -(-len(values) // (most // 2))
    padded = np.pad(values, (0, -len(values) % size), mode="edge").reshape(-1, size)
    begins = np.arange(len(padded)) * size
    rows = np.concatenate([begins + padded.argmin(axis=1), begins + padded.argmax(axis=1)])
    return np.unique(np.minimum(rows, len(values) - 1))


class Store:
    """Arrays of 32-bit words, one after another, as text for a page."""

    def __init__(self) -> None:
        self._words: list[bytes] = []
        self._size = 0

    def add(self, words: Words) -> tuple[int, int]:
        """Append an array; return its offset and its length, in words."""
        place = (self._size, words.size)
        self._words.append(words.astype(words.dtype.newbyteorder("<")).tobytes())
        self._size += words.size
        return place

    def text(self) -> str:
        """Return everything, compressed (zlib) and in base64."""
        return base64.b64encode(zlib.compress(b"".join(self._words), 6)).decode()
