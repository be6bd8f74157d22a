"""Traces of a link's rate, in the format of mahimahi's mm-link."""

from __future__ import annotations

MAX_MS = 600_000
MAX_EACH_MS = 1000
"""1 ms of full-size frames at 12 Gb/s."""


def opportunities(text: str) -> tuple[int, ...]:
    """Return how many frames may leave in each ms of a trace, up to the time of its last line.

    An opportunity at that time is one at the beginning of the next round. Raises ValueError, whose
    text follows the file's name.
    """
    times: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        word = line.strip()
        if not word:
            continue
        if not (word.isascii() and word.isdigit() and len(word) <= len(str(MAX_MS))):
            raise ValueError(f":{number}: {word[:40]!r} is not a time in ms: write a whole number")
        times.append(int(word))
        if times[-2:] != sorted(times[-2:]):
            raise ValueError(f":{number}: the times must ascend")
    if not times or not 0 < times[-1] <= MAX_MS:
        raise ValueError(f" must end with a time from 1 to {MAX_MS} ms")
    counts = [0] * times[-1]
    for time in times:
        counts[time % len(counts)] += 1
    if max(counts) > MAX_EACH_MS:
        raise ValueError(f" has more than {MAX_EACH_MS} opportunities in one ms")
    return tuple(counts)
