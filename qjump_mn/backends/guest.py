"""The guest backend: each trial boots its own Linux, whose time stands still while code runs."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Self

import msgspec

from qjump_mn import guest
from qjump_mn.backends import emulated, estimate, modules
from qjump_mn.backends.protocol import Ended, Progress
from qjump_mn.backends.trial_stages import Stages
from qjump_mn.errors import InvalidRunError, LostError
from qjump_mn.executor.trial import MESSAGE
from qjump_mn.guest.job import sha256_of
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
"""Time for setting up an arm, about three virtual seconds, and for programs that end late."""

WALL_S = 3600.0
WALL_PER_VIRTUAL = 3600.0
"""A trial's deadline in seconds, and what each virtual second of it adds.

A virtual second of bulk flows at 10 Gb/s takes about 40 s.
"""

SHORT_S = 20.0
"""A trial that is expected to take longer lets shorter ones have a core first."""

_TICKS = 100
"""How many times a trial reports its progress."""


class GuestBackend:
    """Runs trials in guests, as many at a time as there are cores."""

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
        """Raise :class:`UsageError` for what cannot be emulated.

        Raises :class:`MachineError` if guests cannot run on this processor. Compiles the plan's
        kernel modules, so that their errors come first.
        """
        emulated.check(plan)
        guest.check_processor()
        modules.check(plan, progress)

    def cost(self, trial: Trial) -> float:
        """Return 0, which keeps the order: arm by arm within each seed.

        So an interrupted run has complete replicates.
        """
        return 0.0

    def prepare(self, plan: Plan, progress: Progress) -> dict[str, str]:
        """Build or find the image, and return what identifies it."""
        self._image = guest.prepare(progress)
        self._images = modules.prepare(plan, self._image, progress)
        facts = {f"{key}_sha256": value for key, value in self._image.sha256.items()}
        facts |= {"kernel": self._image.release, "packages_sha256": self._image.packages_sha256}
        facts |= {"image": self._image.identity, LOCKED_IMAGE: machines.read().image}
        facts["processor"] = platform.machine()
        if self._image.differences:
            facts["differences"] = "; ".join(self._image.differences)
        return facts

    def run(self, trial: Trial, out: Path, progress: Progress) -> Ended:
        """Run one trial in its own guest."""
        virtual_s = trial.background_ns / 1e9
        module = trial.arm.scheme.module
        stages, start = Stages(trial, progress, boots=True, unit="virtual s"), time.monotonic()
        try:
            result = guest.run(
                self._images[module] if module else self._image,
                setup(trial.network.skeleton()),
                _job(trial),
                out,
                wall_deadline_s=WALL_S + virtual_s * WALL_PER_VIRTUAL,
                progress=stages.line,
                clock=stages.clock,
                stop=self._stop,
                long=estimate.by_programs(trial, self) > SHORT_S,
            )
        except LostError as error:
            wall_s = time.monotonic() - start - error.waited_s
            return Ended(error.exit_code, str(error), None, wall_s, error.waited_s)
        times = (result.virtual_s, result.wall_s, result.waited_s, *(result.used or ()))
        if result.exit_code:
            return Ended(result.exit_code, _message(out, result), *times)
        try:
            emulated.check_built(out, trial)
        except InvalidRunError as error:
            return Ended(error.exit_code, str(error), *times)
        return Ended(0, "", *times)

    def stop(self) -> None:
        """End this backend's guests, and start no more."""
        self._stop.now()


def job_sha256(trial: Trial) -> str:
    """Return the SHA-256 of a trial's setup and job, which its guest's agent writes too."""
    return sha256_of(setup(trial.network.skeleton()), _job(trial))


def _job(trial: Trial) -> guest.Job:
    """Return the job that carries out a trial's steps."""
    return guest.Job(
        entry=RUN_TRIAL,
        args={"steps": msgspec.to_builtins(trial_steps(trial))},
        seed=trial.seed,
        virtual_deadline_s=trial.background_ns / 1e9 + VIRTUAL_MARGIN_S,
        tick_s=trial.duration_ns / 1e9 / _TICKS,
    )


def _message(out: Path, result: guest.Result) -> str:
    """Return the sentence that a failed trial left in ``out``, or one that names its console."""
    path = out / MESSAGE
    sentence = path.read_text().strip() if path.exists() else ""
    return sentence or f"the trial ended with exit code {result.exit_code}: see {result.console}"


def setup(network: Network) -> guest.Setup:
    """Return the setup that starts the guest's Open vSwitch and brings up a network."""
    steps = (*openvswitch.start(), *bring_up(network))
    return guest.Setup(entry=BRING_UP, args={"steps": msgspec.to_builtins(steps)})
