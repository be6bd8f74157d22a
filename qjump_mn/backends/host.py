"""The host backend: carry out the steps on this machine's own kernel."""

from __future__ import annotations

import platform
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from qjump_mn.backends import emulated, host_needs
from qjump_mn.backends.host_claim import Claim
from qjump_mn.backends.protocol import Ended, Progress
from qjump_mn.backends.trial_stages import Stages, ticking
from qjump_mn.errors import MachineError, QJumpError
from qjump_mn.executor.shell import Shell
from qjump_mn.executor.steps import MACHINE, Run, Steps, Topology
from qjump_mn.executor.trial import Network as Built
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.model.topology import Network
from qjump_mn.process import temp_dirs
from qjump_mn.steps.compile import trial_steps
from qjump_mn.steps.network import bring_up


class NotingShell(Shell):
    """A shell that records in the claim what a command changes, before it does."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._undos: dict[tuple[str, ...], tuple[str, ...]] = {}

    def expect(self, steps: Steps) -> None:
        """Prepare for steps that are about to be carried out.

        Interfaces that they create on the machine are recorded now; a setting is recorded when its
        value is read.
        """
        devices: dict[str, str] = {}
        for step in steps:
            if isinstance(step, Topology):
                devices |= {end.device: end.mac for cable in step.cables for end in cable.ends}
            elif isinstance(step, Run) and step.saves and step.undo and step.node == MACHINE:
                self._undos[step.saves] = step.undo.argv
        if devices:
            self._claim.note_devices(devices)

    def note_namespace(self, name: str, inode: int) -> None:
        """Record a namespace that is about to get this name."""
        self._claim.note_namespace(name, inode)

    def run(
        self,
        node: str,
        argv: Sequence[str],
        *,
        stdin: str = "",
        folder: Path | None = None,
        deadline_s: float,
    ) -> subprocess.CompletedProcess[str]:
        done = super().run(node, argv, stdin=stdin, folder=folder, deadline_s=deadline_s)
        undo = self._undos.get(tuple(argv)) if node == MACHINE else None
        if undo and not done.returncode:
            self._claim.note_setting(tuple(argv), undo, done.stdout)
        return done


class HostBackend:
    """Runs trials one by one on this host; needs root, Mininet, Open vSwitch and our modules."""

    name = "host"
    clock = "real"
    repeats_anywhere = False
    parallel = 1

    def __init__(self) -> None:
        self._exits = ExitStack()
        self._network_exits = ExitStack()
        self._current: tuple[Network, Built] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._exits:  # restores settings and releases the claim, even if the next line fails
            self._network_exits.close()

    def check(self, plan: Plan, progress: Progress) -> None:
        """Raise :class:`UsageError` for what cannot be emulated.

        Raises :class:`MachineError` for what this machine lacks.
        """
        emulated.check(plan)
        host_needs.check(plan)

    def cost(self, trial: Trial) -> float:
        """Return 0, which keeps the order: trials run one by one."""
        return 0.0

    def prepare(self, plan: Plan, progress: Progress) -> dict[str, str]:
        """Claim this machine's network, and return what identifies the machine.

        Raises MachineError if another run has claimed it.
        """
        self._shell = NotingShell(self._exits.enter_context(Claim(progress)))
        self._progress = progress
        return {"kernel": platform.release(), "machine": platform.machine()}

    def run(self, trial: Trial, out: Path, progress: Progress) -> Ended:
        """Run one trial; see the protocol."""
        start = time.monotonic()
        try:
            built, stages = self._network(trial.network), Stages(trial, progress)
            steps = trial_steps(trial)
            self._shell.expect(steps)
            with ticking(stages):
                built.trial(steps, out, stages.line)
            emulated.check_built(out, trial)
        except QJumpError as error:
            return Ended(error.exit_code, str(error), None, time.monotonic() - start)
        return Ended(0, "", None, time.monotonic() - start)

    def stop(self) -> None:
        """End the running trial, and undo its steps."""
        if self._current is not None:
            self._current[1].stop()

    def _network(self, network: Network) -> Built:
        """Return the current network, or replace it if the trial needs another skeleton."""
        skeleton = network.skeleton()
        if self._current is None or self._current[0] != skeleton:
            self._network_exits.close()
            self._current = None
            links = f"links of model {network.model}"
            self._progress(f"bringing up {network.topology}, {links}, on this host")
            steps = bring_up(skeleton)
            _check_names(skeleton)
            self._shell.expect(steps)
            built = self._network_exits.enter_context(Built(self._shell))
            with temp_dirs.folder() as folder:
                built.build(steps, Path(folder))
            self._current = (skeleton, built)
        return self._current[1]


def _check_names(network: Network) -> None:
    """Raise :class:`MachineError` if another network has a name; Mininet would delete it."""
    for folder, names in (
        ("/run/netns", network.hosts),
        ("/sys/class/net", (*network.switches, *network.switch_ports())),
    ):
        for name in names:
            if Path(folder, name).exists():
                raise MachineError(
                    f"{folder}/{name} belongs to another network on this machine: take that down "
                    "first (mn -c), or use --backend guest"
                )
    argv = ("ovs-vsctl", "--timeout=5", "list-br")
    bridges = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.split()
    for name in sorted({*bridges} & {*network.switches}):
        raise MachineError(
            f"Open vSwitch has a bridge {name} of another network: remove it with `ovs-vsctl "
            f"del-br {name}`, or use --backend guest"
        )
