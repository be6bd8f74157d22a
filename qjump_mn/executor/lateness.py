"""Measure how late programs get the processor, on the host backend.

All hosts of the network share one machine, so a packet may wait for a processor instead of in the
network. The processor's mean utilisation does not show this: a processor that is half busy may
be fully busy for a while, as in a round of a MapReduce job, and then idle. In the guest time
stands still while code runs, so nothing is late there and nothing is measured.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Self


class Lateness:
    """Within the block, a thread wakes up ``every_s`` seconds and records how late it is."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s

    def __enter__(self) -> Self:
        self._late_s: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lateness", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop measuring before the block ends."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        start, number = time.monotonic(), 0
        while not self._ended.is_set():
            number = max(number + 1, math.ceil((time.monotonic() - start) / self._every_s))
            due = start + number * self._every_s
            time.sleep(max(0.0, due - time.monotonic()))
            self._late_s.append(time.monotonic() - due)

    def quantiles_us(self) -> dict[str, float]:
        """Return median, 99th percentile and maximum (nearest rank) in us; all 0 without a wake-up.

        The minimum, which is the timer's slack, is subtracted. At least two wake-ups are later than
        the 99th percentile, because a single one may just have met the scheduler's tick.
        """
        late = sorted(self._late_s) or [0.0]
        count = len(late)
        ranks = {
            "p50": math.ceil(count / 2),
            "p99": max(1, min(math.ceil(0.99 * count), count - 2)),
            "max": count,
        }
        return {name: round((late[rank - 1] - late[0]) * 1e6, 3) for name, rank in ranks.items()}
