"""The host backend: Mininet on the kernel that we run on. Inside a guest this is that guest's kernel; there is no other code path."""

from __future__ import annotations

import os
import platform
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from qjump_mn.backends import trial as trials
from qjump_mn.backends.protocol import Ended, Progress
from qjump_mn.errors import MachineError, QJumpError
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.model.topology import Network

if TYPE_CHECKING:
    from qjump_mn.network.testbed import Testbed

GUEST_PREFIX = "qjump-mn: "
"""A line that begins so reaches the progress of whoever runs the guest."""

MESSAGE = "message.txt"
"""Where a trial that failed leaves its sentence."""


class HostBackend:
    """Runs trials one after another on this host; needs root, Mininet, Open vSwitch and our modules."""

    name = "host"
    clock = "real"
    takes_cold = False
    repeats_anywhere = False
    parallel = 1

    def __init__(self) -> None:
        self._exits = ExitStack()
        self._testbed: Testbed | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def check(self, plan: Plan, progress: Progress) -> None:
        """Raise :class:`UsageError` for what the emulation cannot do."""
        from qjump_mn.backends import emulated  # this module travels into the guest, where nothing is checked any more

        emulated.check(plan)

    def cost(self, trial: Trial) -> float:
        """0: they run one after another."""
        return 0.0

    def prepare(self, plan: Plan, progress: Progress) -> dict[str, str]:
        """Bring the network up; what identifies this machine is returned."""
        if os.geteuid():
            raise MachineError("the host backend builds namespaces and loads modules: run it with sudo, or use --backend guest")
        try:
            from qjump_mn.network.testbed import Testbed
        except ImportError:
            raise MachineError("Mininet is not installed: install the package mininet, or use --backend guest") from None
        self._progress, self._testbed_class = progress, Testbed
        return {"kernel": platform.release(), "machine": platform.machine()}

    def run(self, trial: Trial, out: Path, progress: Progress) -> Ended:
        """Run one trial; see the protocol."""
        began = time.monotonic()
        try:
            trials.run(self._network(trial.network), trial, out, progress)
        except QJumpError as error:
            return Ended(error.exit_code, str(error), None, time.monotonic() - began)
        return Ended(0, "", None, time.monotonic() - began)


    def stop(self) -> None:
        """Nothing to do: the one trial runs programs that are killed with it, and the interrupt has reached it."""

    def _network(self, network: Network) -> Testbed:
        """The testbed that is up, or another in its place for a network of another skeleton."""
        if self._testbed is None or self._testbed.network.skeleton() != network.skeleton():
            self._exits.close()
            self._progress(f"bringing up {network.topology}, links of model {network.model}, on this host")
            self._testbed = self._exits.enter_context(self._testbed_class(network))
        return self._testbed


def bring_up(args: dict[str, Any]) -> object:
    """Entry point of a guest's setup: start Open vSwitch and the network ``args["network"]``. The guest's end takes it down."""
    from qjump_mn.network import openvswitch
    from qjump_mn.network.testbed import Testbed

    openvswitch.load_and_start()
    return Testbed(msgspec.convert(args["network"], Network)).__enter__()


def run_trial(testbed: Any, args: dict[str, Any], out: Path) -> int:
    """Entry point of a guest's job: run ``args["trial"]`` on the network that is up; an error leaves its sentence and its exit code."""
    try:
        trials.run(testbed, msgspec.convert(args["trial"], Trial), out, lambda line: print(f"{GUEST_PREFIX}{line}", flush=True))
    except QJumpError as error:
        (out / MESSAGE).write_text(f"{error}\n")
        return error.exit_code
    return 0
