"""Estimate how long a run takes and how much memory it needs.

Each program states its packets. Each run records by which factor its trials took longer than they
cost, in `trial-costs.json` in the cache, and the next estimate of the same arm is multiplied by
this factor. An arm that has not run here gets the median factor of its preset, or else of its
experiment. On the real clock a trial takes as long as its duration says, and nothing is recorded.
"""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from qjump_mn import cache
from qjump_mn.backends.protocol import Backend
from qjump_mn.errors import MachineError
from qjump_mn.guest import outer
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.process.files import write_atomically
from qjump_mn.programs.hooks import packets
from qjump_mn.results.manifest import TrialRecord

NAME = "trial-costs.json"

BOOT_S, HOST_S = 1.5, 0.13
"""A guest's time before and after the measurement: a constant, and a time for each host."""

QUIET, FRAME_S = 0.04, 25e-6
"""Seconds in the guest of a virtual second of an idle network, and of a packet over its links."""

REAL_S = 4.0
"""A trial's time before and after the measurement, on this machine's own kernel."""

START_S, PACKET_S = 0.4, 0.6e-6
"""A simulated trial's time to start, and its time for each packet."""

JUDGE_S, JUDGE_MB = 4.0, 170
"""Seconds and memory for figures, verdicts and report."""
HARNESS_MB = 60
"""Memory of the process that starts the trials."""
OUTER = "guest in QEMU"
"""The guest backend when each guest runs in a machine emulated by QEMU."""
TRIAL_MB = {"guest": 270, OUTER: 270 + outer.MORE_MB, "simulator": 100}
"""Memory of a trial that has not run here, by backend."""


class Measured(msgspec.Struct, frozen=True, array_like=True):
    """The cost of an arm's trials in their last run.

    ``factor`` is their time relative to :func:`by_programs`; ``memory_mb`` is the peak memory of a
    trial, None if unknown.
    """

    factor: float
    memory_mb: int | None


class Estimate(NamedTuple):
    """A run's time, and the memory of all trials that run at the same time (None if unknown)."""

    seconds: float
    memory_mb: float | None

    def __str__(self) -> str:
        """Such as "about 3 min, 0.5 GB of memory"."""
        memory = "" if self.memory_mb is None else f", {memory_in_words(self.memory_mb)} of memory"
        return f"about {time_in_words(self.seconds)}{memory}"


def run(plan: Plan, backend: Backend, trials: Sequence[Trial] | None = None) -> Estimate:
    """Estimate a run of ``trials``, by default all of the plan's, with their analysis."""
    if trials is None:
        trials = plan.trials()
    if not trials:
        return Estimate(0.0, None)
    measured = _read()
    seconds = _each_trial(measured, plan, backend, trials)
    ends = [0.0] * max(1, min(backend.parallel, len(trials)))
    for trial in sorted(trials, key=backend.cost, reverse=True):  # in the order in which they run
        heapq.heapreplace(ends, ends[0] + seconds[trial.name])
    memory_mb = _trial_memory_mb(measured, plan, backend)
    if memory_mb is not None:
        memory_mb = HARNESS_MB + max(memory_mb * len(ends), JUDGE_MB)
    return Estimate(max(ends) + JUDGE_S, memory_mb)


def each_trial(plan: Plan, backend: Backend, trials: Iterable[Trial]) -> dict[str, float]:
    """Estimate each trial's seconds, by its name."""
    return _each_trial(_read(), plan, backend, trials)


def _each_trial(
    measured: Mapping[str, Measured], plan: Plan, backend: Backend, trials: Iterable[Trial]
) -> dict[str, float]:
    usual_factor = _usual_factor(measured, plan, backend)
    seconds = {}
    for trial in trials:
        arm = measured.get(_key(plan, backend, trial.arm.name))
        factor = arm.factor if arm else usual_factor
        seconds[trial.name] = factor * by_programs(trial, backend)
    return seconds


def by_programs(trial: Trial, backend: Backend) -> float:
    """Estimate a trial's seconds by its programs' costs, on two slow cores that are both busy."""
    virtual_s = trial.length_ns / 1e9
    if backend.name == "simulator":
        return START_S + PACKET_S * backend.cost(trial)
    if backend.clock == "real":
        return REAL_S + virtual_s
    before_and_after_s = BOOT_S + HOST_S * len(trial.network.hosts)
    return before_and_after_s + QUIET * virtual_s + FRAME_S * packets(trial)


def note(plan: Plan, backend: Backend, records: Mapping[str, TrialRecord]) -> None:
    """Record the cost of these trials for the next estimate, if the cache can be written.

    The processor time is what is recorded, because other work on the machine hardly changes it. If
    two runs end at the same moment, one record may be lost.
    """
    measured, by_arm = _read(), dict[str, list[tuple[Trial, float, int]]]()
    for trial in plan.trials():
        record = records.get(trial.name)
        if record is not None and record.status == "done" and record.cpu_s is not None:
            by_arm.setdefault(trial.arm.name, []).append(
                (trial, record.cpu_s, record.memory_mb or 0)
            )
    for arm, costs in by_arm.items():
        expected_s = sum(by_programs(trial, backend) for trial, _, _ in costs)
        factor = sum(cpu_s for _, cpu_s, _ in costs) / expected_s
        memory_mb = max(memory_mb for _, _, memory_mb in costs)
        measured[_key(plan, backend, arm)] = Measured(round(factor, 3), memory_mb or None)
    if by_arm:
        with suppress(OSError, MachineError):
            write_atomically(cache.writable_root() / NAME, msgspec.json.encode(measured) + b"\n")


def time_in_words(seconds: float) -> str:
    """Return an approximate time, such as "48 s", "2 min" or "3 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def memory_in_words(megabytes: float) -> str:
    """Return an approximate size, 0.1 GB or more."""
    return f"{max(0.1, megabytes / 1024):.1f} GB".replace(".0 ", " ")


def _read() -> dict[str, Measured]:
    """Return the records of earlier runs by :func:`_key`; the user's own override root's."""
    measured: dict[str, Measured] = {}
    for root in cache.roots():
        with suppress(OSError, msgspec.DecodeError):  # ignore a file that cannot be read
            measured |= msgspec.json.decode((root / NAME).read_bytes(), type=dict[str, Measured])
    return measured


def _key(plan: Plan, backend: Backend, arm: str = "") -> str:
    return f"{_kind(backend)}/{plan.shown.experiment}/{plan.shown.preset}/{arm}"


def _kind(backend: Backend) -> str:
    return OUTER if backend.name == "guest" and outer.is_wanted() else backend.name


def _usual_factor(measured: Mapping[str, Measured], plan: Plan, backend: Backend) -> float:
    """Return the factor of an arm that has not run here: the median of similar arms."""
    kind = _kind(backend)
    for prefix in (_key(plan, backend), f"{kind}/{plan.shown.experiment}/"):
        if factors := [arm.factor for key, arm in measured.items() if key.startswith(prefix)]:
            return statistics.median(factors)
    return outer.SLOWER if kind == OUTER else 1.0


def _trial_memory_mb(measured: Mapping[str, Measured], plan: Plan, backend: Backend) -> int | None:
    """Return the peak memory of a trial of this preset, or else the backend's usual."""
    prefix = _key(plan, backend)
    recorded = (arm.memory_mb or 0 for key, arm in measured.items() if key.startswith(prefix))
    return max(recorded, default=0) or TRIAL_MB.get(_kind(backend))
