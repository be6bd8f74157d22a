"""Estimate how long a run takes and how much memory it needs.

Each program says what it costs: ``busy`` in the guest, ``packets`` in the simulator. Each run notes by which
factor its trials took longer than that, in `durations.json` in the cache; the next estimate of the same arm
is multiplied by it. An arm that has not run here takes the median factor of its preset, else of its
experiment. On the real clock a trial takes as long as it is, and nothing is noted.
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
from qjump_mn.results.manifest import TrialRecord, write_atomically

NAME = "durations.json"

BOOT_S, HOST_S = 1.5, 0.13
"""Seconds that a guest needs before and after it measures: fixed, and for each host of its network."""

QUIET, BUSY, RATE_EXPONENT = 0.04, 0.15, 0.8
"""Seconds that a virtual second takes at 10 Mb/s: of an idle network, and for each ``busy`` program; and how
they grow with the links' rate. They grow by less than the rate, because timers and waits stay the same."""

REAL_S = 4.0
"""Seconds that a trial on this machine's kernel needs before and after it measures."""

START_S, PACKET_S = 0.4, 0.6e-6
"""Seconds that a simulated trial takes until it begins, and for each packet."""

JUDGE_S, JUDGE_MB = 4.0, 170
"""Seconds and memory for figures, verdicts and report."""
HARNESS_MB = 60
"""Memory of the process that starts the trials."""
OUTER = "guest in QEMU"
"""The guest backend where each guest runs in a machine of its own."""
TRIAL_MB = {"guest": 270, OUTER: 270 + outer.MORE_MB, "simulator": 100}
"""Memory of a trial that has not run here, by backend."""


class Measured(msgspec.Struct, frozen=True, array_like=True):
    """What the trials of an arm took in their last run: how many times the seconds that their programs say,
    and the most memory of one, None where it is not known."""

    factor: float
    memory_mb: int | None


class Estimate(NamedTuple):
    """What a run takes: ``memory_mb`` is for all trials that run at the same time, None if unknown."""

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
    seconds = each_trial(plan, backend, trials)
    ends = [0.0] * max(1, min(backend.parallel, len(trials)))
    for trial in sorted(trials, key=backend.cost, reverse=True):  # in the order in which they run
        heapq.heapreplace(ends, ends[0] + seconds[trial.name])
    memory_mb = _trial_memory_mb(plan, backend)
    if memory_mb is not None:
        memory_mb = HARNESS_MB + max(memory_mb * len(ends), JUDGE_MB)
    return Estimate(max(ends) + JUDGE_S, memory_mb)


def each_trial(plan: Plan, backend: Backend, trials: Iterable[Trial]) -> dict[str, float]:
    """Seconds that each trial takes, by its name."""
    measured = _read()
    usual = _usual_factor(measured, plan, backend)
    seconds = {}
    for trial in trials:
        own = measured.get(_key(plan, backend, trial.arm.name))
        seconds[trial.name] = (own.factor if own else usual) * by_programs(trial, backend)
    return seconds


def by_programs(trial: Trial, backend: Backend) -> float:
    """Seconds that a trial takes according to its programs, on two slow cores that are both at work."""
    virtual_s = (trial.warmup_ns + trial.duration_ns) / 1e9
    if backend.name == "simulator":
        return START_S + PACKET_S * backend.cost(trial)
    if backend.clock == "real":
        return REAL_S + virtual_s
    faster: float = (trial.network.link.rate_bps / 1e7) ** RATE_EXPONENT
    busy = sum(workload.busy for workload in trial.arm.workloads)
    return BOOT_S + HOST_S * len(trial.network.hosts) + virtual_s * faster * (QUIET + BUSY * busy)


def note(plan: Plan, backend: Backend, records: Mapping[str, TrialRecord]) -> None:
    """Keep what these trials of the plan took, for the next estimate; where nothing can be written, nothing
    is kept.

    Processor time counts, because other work on the machine does not change it much. Of two runs that end at
    the same moment, one may be lost.
    """
    measured, by_arm = _read(), dict[str, list[tuple[Trial, float, int]]]()
    for trial in plan.trials():
        record = records.get(trial.name)
        if record is not None and record.status == "done" and record.cpu_s is not None:
            by_arm.setdefault(trial.arm.name, []).append((trial, record.cpu_s, record.memory_mb or 0))
    for arm, done in by_arm.items():
        factor = sum(each[1] for each in done) / sum(by_programs(each[0], backend) for each in done)
        memory_mb = max(each[2] for each in done)
        measured[_key(plan, backend, arm)] = Measured(round(factor, 3), memory_mb or None)
    if by_arm:
        with suppress(OSError, MachineError):
            write_atomically(cache.writable_root() / NAME, msgspec.json.encode(measured) + b"\n")


def time_in_words(seconds: float) -> str:
    """A rough time: "48 s", "2 min", "3 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def memory_in_words(megabytes: float) -> str:
    """Rough memory: 0.1 GB or more."""
    return f"{max(0.1, megabytes / 1024):.1f} GB".replace(".0 ", " ")


def _read() -> dict[str, Measured]:
    """What earlier runs noted, by :func:`_key`: those of root, then the user's own."""
    measured: dict[str, Measured] = {}
    for root in cache.roots():
        with suppress(OSError, msgspec.DecodeError):  # an unreadable file is as good as none
            measured |= msgspec.json.decode((root / NAME).read_bytes(), type=dict[str, Measured])
    return measured


def _key(plan: Plan, backend: Backend, arm: str = "") -> str:
    return f"{_kind(backend)}/{plan.experiment}/{plan.preset}/{arm}"


def _kind(backend: Backend) -> str:
    return OUTER if backend.name == "guest" and outer.is_wanted() else backend.name


def _usual_factor(measured: Mapping[str, Measured], plan: Plan, backend: Backend) -> float:
    """For an arm that has not run here: the median of its preset or its experiment."""
    kind = _kind(backend)
    for prefix in (_key(plan, backend), f"{kind}/{plan.experiment}/"):
        if similar := [each.factor for key, each in measured.items() if key.startswith(prefix)]:
            return statistics.median(similar)
    return outer.SLOWER if kind == OUTER else 1.0


def _trial_memory_mb(plan: Plan, backend: Backend) -> int | None:
    """The most memory of a trial of this preset, else as usual on the backend."""
    prefix = _key(plan, backend)
    known = (each.memory_mb or 0 for key, each in _read().items() if key.startswith(prefix))
    return max(known, default=0) or TRIAL_MB.get(_kind(backend))
