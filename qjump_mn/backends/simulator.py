"""The simulator backend: each trial runs in a process of its own, as many at a time as there are
cores."""

from __future__ import annotations

import os
import platform
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from qjump_mn.backends.protocol import SIMULATED, Ended, Progress
from qjump_mn.errors import LostError, QJumpError, UsageError
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.process.die_with_parent import wrap_module
from qjump_mn.process.processes import Used, wait
from qjump_mn.programs.hooks import packets
from qjump_mn.results.reference import LOCKED_IMAGE
from qjump_mn.toolbox import machines
from qjump_mn.toolbox.simulator import installed


class Said(msgspec.Struct, frozen=True):
    """How the simulator's process ended: exit code and last output."""

    exit_code: int
    message: str


class SimulatorBackend:
    """Runs trials in the simulator."""

    name = "simulator"
    clock = "virtual"
    repeats_anywhere = True

    def __init__(self) -> None:
        self.parallel = len(os.sched_getaffinity(0))
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def check(self, plan: Plan, progress: Progress) -> None:
        """Compile the simulator if necessary. Raises :class:`UsageError` for a trial that it cannot
        run."""
        self.package = machines.simulator_package(progress)
        said, _ = self.process(msgspec.json.encode(plan), progress)
        if said.exit_code == UsageError.exit_code:
            raise UsageError(f"experiment {plan.shown.experiment!r}: {said.message}")
        if said.exit_code:
            raise LostError(f"the simulator ended with exit code {said.exit_code}: {said.message}")

    def prepare(self, plan: Plan, progress: Progress) -> dict[str, str]:
        """Return what identifies the simulator: the hash of its sources, without their prose."""
        identities = {
            "image": machines.simulator_identity(),
            LOCKED_IMAGE: machines.locked_simulator(),
        }
        return {
            **identities,
            "simulator": "wheel" if self.package == installed() else self.package.parent.name,
            "processor": platform.machine(),
        }

    def cost(self, trial: Trial) -> float:
        """Return the trial's packets as far as the plan tells; a run's time is proportional to
        them."""
        return packets(trial) * (1 + trial.arm.uses_levels)

    def run(self, trial: Trial, out: Path, progress: Progress) -> Ended:
        """Run one trial."""
        progress("simulates")
        began = time.monotonic()
        said, used = self.process(msgspec.json.encode(trial), progress, out)
        took = time.monotonic() - began
        code, message = said.exit_code, said.message
        if not code:
            virtual_s = msgspec.json.decode((out / "trial.json").read_bytes())["window_s"][1]
            return Ended(0, "", virtual_s, took, 0.0, *(used or ()))
        is_ours = code in {error.exit_code for error in QJumpError.__subclasses__()}
        return Ended(
            LostError.exit_code,
            message if is_ours else f"the simulator ended with exit code {code}: {message}",
            None,
            took,
        )

    def stop(self) -> None:
        """End the processes of this backend."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            process.kill()

    def process(
        self, text: bytes, progress: Progress, out: Path | None = None
    ) -> tuple[Said, Used | None]:
        """Run the trial that ``text`` encodes in a process of its own, whose files come into
        ``out``; without ``out``, check a plan. Return how the process ended and, unless it was not
        started, what it used."""
        arguments = [] if out is None else [str(out)]
        argv, environment = wrap_module(
            "qjump_mn.simulation", *arguments, before=[str(self.package)]
        )
        environment |= {"PYTHONDONTWRITEBYTECODE": "1"}
        with self._lock:
            if self._stopped:
                return Said(LostError.exit_code, "it was not started"), None
            process = subprocess.Popen(
                argv, env=environment,
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                start_new_session=True,  # so that Ctrl-C reaches the harness alone
            )  # fmt: skip
            self._running.add(process)
        try:
            assert process.stdin is not None and process.stderr is not None
            with process.stderr:
                with suppress(BrokenPipeError), process.stdin:  # it was ended
                    process.stdin.write(text)
                message = "it said nothing"
                for line in process.stderr:
                    words = line.decode(errors="replace").strip()
                    if words.startswith(SIMULATED):
                        progress(words)
                    else:
                        message = words or message
            used = wait(process)
        finally:
            with self._lock:
                self._running.discard(process)
        return Said(process.returncode, message), used
