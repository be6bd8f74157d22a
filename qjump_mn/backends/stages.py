"""How far an emulated trial has come: its stage, and the seconds of it on the clock that its programs see."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from qjump_mn.backends.protocol import Progress
from qjump_mn.model.plan import Trial

MEASURING = "measuring"
"""What the executor says when the measurement begins; before it, it says nothing."""
TICK_S = 1.0


class Stages:
    """Makes lines for ``progress`` of what a trial says, and of what its machine's clock says.

    What is measured may take longer than its trial's duration, and what is begun after it ends: both are the
    last stage's.
    """

    def __init__(self, trial: Trial, progress: Progress, *, boots: bool = False, unit: str = "s") -> None:
        self._duration_s = trial.duration_ns / 1e9
        self._progress, self._stage = progress, "boots and sets up" if boots else "sets up"
        self._measures, self._unit = False, unit
        self._now_s = self._since_s = -1.0

    def line(self, line: str) -> None:
        """A line of the trial's own, or about it."""
        if line != MEASURING:
            self._progress(line)
            return
        self._measures, self._since_s = True, self._now_s
        self._tell()

    def clock(self, now_s: float) -> None:
        """Its machine's clock says this, whenever that began."""
        self._now_s = now_s
        if self._since_s < 0:
            self._since_s = self._now_s
        self._tell()

    def _tell(self) -> None:
        gone_s = self._now_s - self._since_s
        if not self._measures:
            self._progress(f"{self._stage}, {gone_s:.3g} {self._unit}")
        elif gone_s <= self._duration_s:
            self._progress(f"measures, {gone_s:.3g} of {self._duration_s:g} {self._unit}")
        else:
            late_s = gone_s - self._duration_s
            self._progress(f"measures, {late_s:.3g} {self._unit} more than {self._duration_s:g}")


@contextmanager
def ticking(stages: Stages) -> Iterator[None]:
    """Within the block the clock is this machine's own."""
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(TICK_S):
            stages.clock(time.monotonic())

    thread = threading.Thread(target=tick, name="ticks", daemon=True)
    stages.clock(time.monotonic())
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
