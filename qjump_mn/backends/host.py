"""The host backend: the steps are carried out on the kernel that we run on."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from qjump_mn import scratch
from qjump_mn.backends import emulated
from qjump_mn.backends.protocol import Ended, Progress
from qjump_mn.backends.stages import Stages, ticking
from qjump_mn.errors import MachineError, QJumpError
from qjump_mn.executor.trial import Network as Built
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.model.topology import Network
from qjump_mn.steps.compile import trial_steps
from qjump_mn.steps.network import bring_up

DEBIAN_PACKAGES = "/usr/lib/python3/dist-packages"
"""Where apt puts Mininet, which no index of Python packages has."""


class HostBackend:
    """Runs trials one after another on this host; needs root, Mininet, Open vSwitch and our modules."""

    name = "host"
    clock = "real"
    takes_cold = False
    repeats_anywhere = False
    parallel = 1

    def __init__(self) -> None:
        self._exits = ExitStack()
        self._up: tuple[Network, Built] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def check(self, plan: Plan, progress: Progress) -> None:
        """Raise :class:`UsageError` for what the emulation cannot do."""
        emulated.check(plan)

    def cost(self, trial: Trial) -> float:
        """0: they run one after another."""
        return 0.0

    def prepare(self, plan: Plan, progress: Progress) -> dict[str, str]:
        """Check that a network can be brought up; what identifies this machine is returned."""
        if os.geteuid():
            raise MachineError(
                "the host backend makes namespaces and loads modules: run it with sudo, or use --backend "
                "guest"
            )
        _find_mininet()
        self._progress = progress
        return {"kernel": platform.release(), "machine": platform.machine()}

    def run(self, trial: Trial, out: Path, progress: Progress) -> Ended:
        """Run one trial; see the protocol."""
        began = time.monotonic()
        try:
            built, stages = self._network(trial.network), Stages(trial, progress)
            with ticking(stages):
                built.trial(trial_steps(trial), out, stages.line)
            emulated.check_built(out, trial)
        except QJumpError as error:
            return Ended(error.exit_code, str(error), None, time.monotonic() - began)
        return Ended(0, "", None, time.monotonic() - began)

    def stop(self) -> None:
        """End the one trial that runs; what it did to the network is taken back."""
        if self._up is not None:
            self._up[1].stop()

    def _network(self, network: Network) -> Built:
        """The network that is up, or another in its place for one of another skeleton."""
        skeleton = network.skeleton()
        if self._up is None or self._up[0] != skeleton:
            self._exits.close()
            self._progress(f"bringing up {network.topology}, links of model {network.model}, on this host")
            built = self._exits.enter_context(Built())
            with scratch.folder() as folder:
                built.build(bring_up(skeleton), Path(folder))
            self._up = (skeleton, built)
        return self._up[1]


def _find_mininet() -> None:
    """Make apt's Mininet, which is pure Python, importable in an environment that does not see the system's
    packages."""
    if importlib.util.find_spec("mininet") is None:
        sys.path.append(DEBIAN_PACKAGES)
    try:
        importlib.import_module("mininet.net")
    except ImportError as error:
        raise MachineError(
            f"Mininet cannot be used here ({error}): apt-get install mininet, or use --backend guest"
        ) from None
