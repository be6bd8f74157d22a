"""How late a program gets the processor that it waits for, where code takes time: all hosts share a machine,
and what waits for its processors did not wait in the network. In the guest time stands still while code runs,
so that nothing is late there, and nobody watches.

The mean share of the time that the processor is busy does not tell: half busy may be all busy for a while,
such as a round of a MapReduce job, and then idle.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Self


class Lateness:
    """While the block runs, a thread sleeps until set times, ``every_s``, and notes how late it wakes up, as
    any program would that waits for them."""

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
        """End before the block does."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        began, number = time.monotonic(), 0
        while not self._ended.is_set():
            number = max(number + 1, math.ceil((time.monotonic() - began) / self._every_s))
            due = began + number * self._every_s
            time.sleep(max(0.0, due - time.monotonic()))
            self._late_s.append(time.monotonic() - due)

    def quantiles_us(self) -> dict[str, float]:
        """Median, 99th percentile and maximum (nearest rank) in us, beyond the least, which is the timer's
        own slack; all 0 without a wake-up.

        At least two wake-ups are later than the 99th percentile: in a short while one alone that met the
        scheduler's tick says nothing.
        """
        late = sorted(self._late_s) or [0.0]
        count = len(late)
        ranks = {
            "p50": math.ceil(count / 2),
            "p99": max(1, min(math.ceil(0.99 * count), count - 2)),
            "max": count,
        }
        return {name: round((late[rank - 1] - late[0]) * 1e6, 3) for name, rank in ranks.items()}
