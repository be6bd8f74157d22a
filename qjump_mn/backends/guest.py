"""The guest backend: every trial is a fork of one machine state, on a clock that counts instructions."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Self

import msgspec

from qjump_mn import guest
from qjump_mn.backends import emulated
from qjump_mn.backends.protocol import Ended, Progress
from qjump_mn.backends.stages import Stages
from qjump_mn.errors import InvalidRunError, LostError
from qjump_mn.executor.trial import MESSAGE
from qjump_mn.guest.advice import advised
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.model.topology import Network
from qjump_mn.steps import openvswitch
from qjump_mn.steps.compile import trial_steps
from qjump_mn.steps.network import bring_up

BRING_UP = "executor.trial:bring_up"
RUN_TRIAL = "executor.trial:run"

VIRTUAL_MARGIN_S = 180
"""Setting up an arm takes about three virtual seconds; the rest is room for programs that end late."""

WALL_PER_VIRTUAL = 30
"""No machine that is of any use needs more wall seconds for a virtual one at 10 Mb/s (measured here: 0.3), or
for 1/dilation of one on a dilated clock."""


class GuestBackend:
    """Runs trials in QEMU guests, as many at a time as there are cores. ``cold``: boot for each trial instead
    of forking. ``kernel``: another one, of :data:`qjump_mn.toolbox.OTHER_KERNELS`."""

    name = "guest"
    clock = "virtual"
    takes_cold = True
    takes_kernel = True
    repeats_anywhere = True

    def __init__(self, *, cold: bool = False, kernel: str = "") -> None:
        self.parallel = len(os.sched_getaffinity(0))
        self._cold, self._kernel, self._stop = cold, kernel, guest.Stop()
        self._snapshots: dict[Network, guest.Snapshot] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def check(self, plan: Plan, progress: Progress) -> None:
        """Raise :class:`UsageError` for what the emulation cannot do."""
        emulated.check(plan)

    def cost(self, trial: Trial) -> float:
        """0: arm by arm within each seed, so that an interrupted run holds complete replicates."""
        return 0.0

    def prepare(self, plan: Plan, progress: Progress) -> dict[str, str]:
        """Build or find image and snapshots, one for each network that trials cannot make by shaping
        links."""
        self._image = guest.prepare(progress, other_kernel=self._kernel or None)
        facts = {
            **{f"{key}_sha256": value for key, value in self._image.sha256.items()},
            "qemu": self._image.qemu_version,
            "kernel": self._image.release,
        }
        facts["packages_sha256"] = self._image.packages_sha256
        facts |= {"image": self._image.identity, "processor": platform.machine()}
        if self._image.differences:
            facts["differences"] = "; ".join(self._image.differences)
        if not self._cold:
            for network in dict.fromkeys(trial.network.skeleton() for trial in plan.trials()):
                with advised():
                    state = guest.snapshot(
                        self._image,
                        setup(network),
                        progress,
                        wall_deadline_s=VIRTUAL_MARGIN_S * WALL_PER_VIRTUAL,
                        stop=self._stop,
                    )
                self._snapshots[network] = state
                # The first is that of the experiment; other topologies and perturbed runs have their own.
                facts.setdefault(f"snapshot_{network.model}_sha256", state.sha256)
        return facts

    def run(self, trial: Trial, out: Path, progress: Progress) -> Ended:
        """Run one trial in a fork, or in a machine of its own if cold."""
        network = trial.network.skeleton()
        virtual_s = trial.background_ns / 1e9 + VIRTUAL_MARGIN_S
        args = {"steps": msgspec.to_builtins(trial_steps(trial))}
        job = guest.Job(entry=RUN_TRIAL, args=args, seed=trial.seed, virtual_deadline_s=virtual_s)
        stages, began = Stages(trial, progress, boots=self._cold, unit="virtual s"), time.monotonic()
        try:
            with advised():
                result = guest.run(
                    self._image,
                    job,
                    out,
                    snapshot=self._snapshots.get(network),
                    setup=setup(network) if self._cold else None,
                    wall_deadline_s=_wall_deadline_s(trial),
                    progress=stages.line,
                    clock=stages.clock,
                    stop=self._stop,
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


def _wall_deadline_s(trial: Trial) -> float:
    """After so long a trial is given up."""
    return (trial.background_ns / 1e9 * trial.arm.dilation + VIRTUAL_MARGIN_S) * WALL_PER_VIRTUAL


def setup(network: Network) -> guest.Setup:
    """What brings up the guest's Open vSwitch and a network, before the point at which its machine state is
    kept."""
    steps = (*openvswitch.start(), *bring_up(network))
    return guest.Setup(entry=BRING_UP, args={"steps": msgspec.to_builtins(steps)})
