"""The guest backend: every trial boots an instance of Linux of its own, whose time stands still while code
runs."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Self

import msgspec

from qjump_mn import guest
from qjump_mn.backends import emulated, estimate
from qjump_mn.backends.protocol import Ended, Progress
from qjump_mn.backends.stages import Stages
from qjump_mn.errors import InvalidRunError, LostError
from qjump_mn.executor.trial import MESSAGE
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.model.topology import Network
from qjump_mn.results.reference import LOCKED_IMAGE
from qjump_mn.steps import openvswitch
from qjump_mn.steps.compile import trial_steps
from qjump_mn.steps.network import bring_up
from qjump_mn.toolbox import machines

BRING_UP = "executor.trial:bring_up"
RUN_TRIAL = "executor.trial:run"

VIRTUAL_MARGIN_S = 180
"""Setting up an arm takes about three virtual seconds; the rest is room for programs that end late."""

WALL_S = 3600.0
WALL_PER_VIRTUAL = 3600.0
"""A trial is given up after so many seconds, and so many more for each that it measures: a virtual second of
bulk flows at 10 Gb/s takes 40 here."""

SHORT_S = 20.0
"""A trial that is expected to take longer waits for shorter ones where cores are taken."""

_TICKS = 100
"""So often a trial tells how far it is."""


class GuestBackend:
    """Runs trials in instances, as many at a time as there are cores."""

    name = "guest"
    clock = "virtual"
    repeats_anywhere = True

    def __init__(self) -> None:
        self.parallel = len(os.sched_getaffinity(0))
        self._stop = guest.Stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def check(self, plan: Plan, progress: Progress) -> None:
        """Raise :class:`UsageError` for what the emulation cannot do, and :class:`MachineError` where there
        is no guest for this processor."""
        emulated.check(plan)
        guest.check_processor()

    def cost(self, trial: Trial) -> float:
        """0: arm by arm within each seed, so that an interrupted run holds complete replicates."""
        return 0.0

    def prepare(self, plan: Plan, progress: Progress) -> dict[str, str]:
        """Build or find the image."""
        self._image = guest.prepare(progress)
        facts = {f"{key}_sha256": value for key, value in self._image.sha256.items()}
        facts |= {"kernel": self._image.release, "packages_sha256": self._image.packages_sha256}
        facts |= {"image": self._image.identity, LOCKED_IMAGE: machines.read().image}
        facts["processor"] = platform.machine()
        if self._image.differences:
            facts["differences"] = "; ".join(self._image.differences)
        return facts

    def run(self, trial: Trial, out: Path, progress: Progress) -> Ended:
        """Run one trial in an instance of its own."""
        virtual_s = trial.background_ns / 1e9
        job = guest.Job(
            entry=RUN_TRIAL,
            args={"steps": msgspec.to_builtins(trial_steps(trial))},
            seed=trial.seed,
            virtual_deadline_s=virtual_s + VIRTUAL_MARGIN_S,
            tick_s=trial.duration_ns / 1e9 / _TICKS,
        )
        stages, began = Stages(trial, progress, boots=True, unit="virtual s"), time.monotonic()
        try:
            result = guest.run(
                self._image,
                setup(trial.network.skeleton()),
                job,
                out,
                wall_deadline_s=WALL_S + virtual_s * WALL_PER_VIRTUAL,
                progress=stages.line,
                clock=stages.clock,
                stop=self._stop,
                long=estimate.by_programs(trial, self) > SHORT_S,
            )
        except LostError as error:
            took = time.monotonic() - began - error.waited_s
            return Ended(error.exit_code, str(error), None, took, error.waited_s)
        message = out / MESSAGE
        sentence = message.read_text().strip() if message.exists() else ""
        if result.exit_code and not sentence:
            sentence = f"the trial ended with exit code {result.exit_code}: see {result.console}"
        times = (result.virtual_s, result.wall_s, result.waited_s, *(result.used or ()))
        if not result.exit_code:
            try:
                emulated.check_built(out, trial)
            except InvalidRunError as error:
                return Ended(error.exit_code, str(error), *times)
        return Ended(result.exit_code, sentence, *times)

    def stop(self) -> None:
        """End the guests of this backend; none starts any more."""
        self._stop.now()


def setup(network: Network) -> guest.Setup:
    """What brings up the guest's Open vSwitch and a network."""
    steps = (*openvswitch.start(), *bring_up(network))
    return guest.Setup(entry=BRING_UP, args={"steps": msgspec.to_builtins(steps)})
