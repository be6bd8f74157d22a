"""Report an emulated trial's progress: its stage, and the seconds on its programs' clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from qjump_mn.backends.protocol import Progress
from qjump_mn.model.plan import Trial

MEASURING = "measuring"
"""The executor's progress line when the measurement begins; there is none before it."""
TICK_S = 1.0


class Stages:
    """Turns a trial's lines and the ticks of its clock into lines for ``progress``.

    The last stage may last longer than the trial's duration: probes may overrun it, and programs
    still have to end.
    """

    def __init__(
        self, trial: Trial, progress: Progress, *, boots: bool = False, unit: str = "s"
    ) -> None:
        self._duration_s = trial.duration_ns / 1e9
        self._progress, self._stage = progress, "boots and sets up" if boots else "sets up"
        self._measuring, self._unit = False, unit
        self._now_s = self._start_s = -1.0

    def line(self, line: str) -> None:
        """Pass on a line of the trial, or begin the stage of measuring."""
        if line != MEASURING:
            self._progress(line)
            return
        self._measuring, self._start_s = True, self._now_s
        self._report()

    def clock(self, now_s: float) -> None:
        """Report the present time on the trial's clock, which may have any origin."""
        self._now_s = now_s
        if self._start_s < 0:
            self._start_s = self._now_s
        self._report()

    def _report(self) -> None:
        elapsed_s = self._now_s - self._start_s
        if not self._measuring:
            self._progress(f"{self._stage}, {elapsed_s:.3g} {self._unit}")
        elif elapsed_s <= self._duration_s:
            self._progress(f"measures, {elapsed_s:.3g} of {self._duration_s:g} {self._unit}")
        else:
            late_s = elapsed_s - self._duration_s
            self._progress(f"measures, {late_s:.3g} {self._unit} more than {self._duration_s:g}")


@contextmanager
def ticking(stages: Stages) -> Iterator[None]:
    """Within the block, this machine's clock drives the stages."""
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
