"""Read files of other programs and of editors: text, and distributions of sizes."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path

Point = tuple[int, float]
"""A size, and the share of flows that are not larger."""

_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_EXPECTED = "expected a size and a share, with or without a count between"


def text(path: str | PathLike[str]) -> str:
    """The text of a file in UTF-8, or in UTF-16 with a byte-order mark. Raises OSError, and
    ValueError with the file."""
    content = Path(path).read_bytes()
    coding = next((coding for mark, coding in _MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        return content.decode(coding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}: line {line}: expected text in UTF-8") from None


def points(path: str | PathLike[str], payload: int | None) -> list[Point]:
    """The points of a distribution in packets; with `payload`, from sizes in bytes. Raises OSError,
    and ValueError with the file and line."""
    rows = list(_rows(path))
    if not rows:
        raise ValueError(f"{path}: {_EXPECTED} in each line (got no line)")
    whole = 100.0 if rows[-1][2] > 1 else 1.0
    _check(path, rows, whole)
    if payload is None and rows[0][1] < 1:
        raise ValueError(f"{path}: line {rows[0][0]}: expected a packet or more; sizes in bytes need `payload` (got {rows[0][1]})")
    read = [(size, share / whole) for _, size, share in rows]
    return read if payload is None else in_packets(read, payload)


def _rows(path: str | PathLike[str]) -> Iterator[tuple[int, int, float]]:
    """Yield the number of each line, with its size and share."""
    for number, line in enumerate(text(path).splitlines(), 1):
        words = re.split(r"[\s,;]+", line.strip())
        if words == [""] or words[0].startswith("#"):
            continue
        try:
            size, *count, share = map(float, words)
        except ValueError:
            count = [0.0, 0.0]
        if len(count) > 1 or not size.is_integer():
            raise ValueError(f"{path}: line {number}: {_EXPECTED} (got {line.strip()!r})")
        yield number, int(size), share


def _check(path: str | PathLike[str], rows: Sequence[tuple[int, int, float]], whole: float) -> None:
    def refuse(number: int, expected: str, got: float) -> None:
        raise ValueError(f"{path}: line {number}: expected {expected} (got {got:g})")

    (first, size, share), (last, _, end) = rows[0], rows[-1]
    if size < 0:
        refuse(first, "a size of 0 or more", size)
    if share != 0:
        refuse(first, "the share 0 of flows that are not larger than the smallest size", share)
    for (_, below, lower), (number, above, higher) in pairwise(rows):
        if above < below:
            refuse(number, f"a size not below the one before it, {below}", above)
        if not higher >= lower:
            refuse(number, f"a share not below the one before it, {lower:g}", higher)
    if end != whole:
        refuse(last, "a share of 1, or 100 per cent, at the largest size", end)


def in_packets(sizes: Sequence[Point], payload: int) -> list[Point]:
    """The distribution of whole packets that carry `payload` bytes each, of one in bytes that is
    linear between its points: the same shares at every multiple of `payload`."""
    def packets(size: int) -> int:
        return max(1, -(-size // payload))

    found: list[Point] = [(packets(sizes[0][0]), 0.0)]
    for (below, lower), (above, higher) in pairwise(sizes):
        # Between two multiples in a piece the shares are linear, as they are between two points.
        for count in sorted({packets(below), above // payload}):
            if below <= (size := count * payload) <= above and below < above:
                share = lower + (higher - lower) * (size - below) / (above - below)
                found.append((count, max(share, found[-1][1])))
    return [*found, (packets(sizes[-1][0]), 1.0)]
