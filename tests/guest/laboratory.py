"""Trials of Figure 3a's plan, and of others, in the guest."""

from __future__ import annotations

from pathlib import Path

import msgspec

from qjump_mn.backends.guest import GuestBackend
from qjump_mn.guest import Image, Job, Result, Setup, run
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.resolve import plan


class Laboratory:
    """Runs trials of plans; what they leave lies in a folder each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ready: dict[str, GuestBackend] = {}

    def run(self, resolved: Plan, arm: str, *, seed: int = 1, name: str = "") -> tuple[Trial, Path]:
        """Run the arm called ``arm``; fail the test unless it ends well."""
        trial = next(trial for trial in resolved.trials() if trial.arm.name == arm)
        trial = msgspec.structs.replace(trial, seed=seed)
        out = self.folder / (name or f"{resolved.hash[:8]}-{arm}-{seed}")
        ended = self.backend(resolved).run(trial, out, print)
        assert ended.exit_code == 0, ended.message
        return trial, out

    def backend(self, resolved: Plan) -> GuestBackend:
        """A backend that is ready for the plan."""
        if resolved.hash not in self.ready:
            self.ready[resolved.hash] = GuestBackend()
            self.ready[resolved.hash].prepare(resolved, print)
        return self.ready[resolved.hash]


def run_well(image: Image, setup: Setup, job: Job, out: Path) -> Result:
    """Run a job in a guest; fail the test unless it ends well."""
    result = run(image, setup, job, out, progress=print)
    assert result.exit_code == 0, (out / "stderr").read_text()
    return result


def fig3a(*settings: str) -> Plan:
    return plan("fig3a", "smoke", ["duration=1s", "warmup=1s", *settings])
