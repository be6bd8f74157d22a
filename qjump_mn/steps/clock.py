"""The step that slows the clock down."""

from __future__ import annotations

from collections.abc import Iterator

from qjump_mn.executor.steps import Run
from qjump_mn.model.plan import ArmPlan


def dilated(arm: ArmPlan) -> Iterator[Run]:
    """First of all, before any time is taken. There is no way back: for a machine that ends with the trial.

    Timers may end late by their slack, 50 us by default, which is 40 frames at 10 Gb/s. Whoever carries
    out the steps, and so all that it starts, gets the least.
    """
    if arm.dilated is not None:
        command = f"modprobe dilate factor={arm.dilated} && echo 1 > /proc/$PPID/timerslack_ns"
        yield Run(argv=("sh", "-c", command), refusal="this kernel's clock cannot be dilated")
