"""What a run takes, said before it begins: time and memory.

What a trial takes is first what its programs say of themselves: ``busy`` in the guest, ``packets`` in the
simulator. ``costs.json`` has what the trials of the presets that come with the project really took on one
machine (``bench/costs.py``): such a trial is expected to take that again, one with other settings as many
times more or less as its programs say, and one that nobody has measured as much beside its programs' words as
others of its experiment. All of it is multiplied by how many times longer this machine needs than that one
for a fixed piece of work."""

from __future__ import annotations

import bz2
import functools
import heapq
import random
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from qjump_mn.backends.protocol import Backend
from qjump_mn.errors import UsageError
from qjump_mn.guest import outer
from qjump_mn.model import resolve
from qjump_mn.model.plan import Plan, Trial

FILE = Path(__file__).with_suffix(".json")

BOOT_S, HOST_S = 1.5, 0.13
"""Seconds of a guest until it measures and after: of itself, and of each host in its network, which is made,
read back and read again."""

QUIET, BUSY, FASTER = 0.04, 0.15, 0.8
"""Seconds of a quiet second at 10 Mb/s, and of one with a program that is ``busy``, and how these grow with
the links' rate: by less than it, for the kernel's own timers and programs' waits stay what they are."""

REAL_S = 4.0
"""Seconds of a network on this machine's kernel, until it measures and after."""

START_S, PACKET_S = 0.4, 0.6e-6
"""Of a simulated trial: until it begins, and of each packet on its way."""

JUDGED_S, JUDGED_MB = 4.0, 170
"""Figures, verdicts and report at the end of a run."""
HARNESS_MB = 60
"""What runs the trials and waits for them."""

TRIED = 3
"""The fixed work is done so many times, and the shortest counts."""


class ArmCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a trial of an arm took: ``run`` begins the hash of the one with seed 1, so that nobody takes it
    for another."""

    run: str
    seconds: float


class PresetCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the trials of a preset took on ``backend``, by arm, and the most memory that one of them had.

    ``by`` is "processor" where the time is that of processors, which other work on the machine does not
    change much, and "clock" where it is how long they took, as of runs that are older than that record.
    """

    backend: str
    by: Literal["processor", "clock"]
    memory_mb: int | None
    arms: dict[str, ArmCost]


class Costs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``costs.json``: what the fixed work took, and each preset, as "fig3a/smoke"."""

    work_s: float
    presets: dict[str, PresetCost]


class Expected(NamedTuple):
    """What a run will take: ``memory_mb`` is of the trials that run at a time, None where nobody has measured
    it."""

    seconds: float
    memory_mb: float | None


@functools.cache
def measured() -> Costs:
    """What is in the file."""
    return msgspec.json.decode(FILE.read_bytes(), type=Costs)


def work_s() -> float:
    """How long this machine takes for a fixed piece of work: bzip2, which is the same everywhere and, as an
    emulator, takes its time for integers, branches and memory. Other work on the machine does not count."""
    text = random.Random(1).randbytes(300_000)
    took = []
    for _ in range(TRIED):
        began = time.thread_time()
        bz2.compress(text)
        took.append(time.thread_time() - began)
    return min(took)


@functools.cache
def slowness() -> float:
    """How many times longer this machine takes than the one that has measured."""
    return work_s() / measured().work_s


def arm_key(trial: Trial) -> str:
    """The same for all trials of an arm that differ in nothing but their seed."""
    return msgspec.structs.replace(trial, seed=1).hash[:12]


def expected(plan: Plan, backend: Backend, trials: Sequence[Trial] | None = None) -> Expected:
    """What a run of the plan takes on this machine, or of those of its trials that are left."""
    if trials is None:
        trials = plan.trials()
    if not trials:
        return Expected(0.0, None)
    alone_s = seconds(plan, backend, trials)
    ends = [0.0] * max(1, min(backend.parallel, len(trials)))
    for trial in sorted(trials, key=backend.cost, reverse=True):  # as they are run
        heapq.heapreplace(ends, ends[0] + alone_s[trial.name])
    memory_mb = _memory_mb(plan, backend)
    if memory_mb is not None:
        memory_mb += outer.MORE_MB if _is_around(backend) else 0
        memory_mb = HARNESS_MB + max(memory_mb * len(ends), JUDGED_MB)
    return Expected(max(ends) + JUDGED_S * slowness(), memory_mb)


def _is_around(backend: Backend) -> bool:
    """Whether each trial has a machine around it."""
    return backend.name == "guest" and outer.is_wanted()


def _memory_mb(plan: Plan, backend: Backend) -> float | None:
    """The most memory of a trial: of its preset, else of its experiment, else as on its backend usually; None
    where nobody has measured it."""
    known = {
        name: preset.memory_mb
        for name, preset in measured().presets.items()
        if preset.memory_mb and preset.backend == backend.name
    }
    for begin in (f"{plan.experiment}/{plan.preset}/", f"{plan.experiment}/"):
        if alike := [memory for name, memory in known.items() if f"{name}/".startswith(begin)]:
            return max(alike)
    return statistics.median(known.values()) if known else None


def seconds(plan: Plan, backend: Backend, trials: Iterable[Trial]) -> dict[str, float]:
    """What each of the trials takes by itself on this machine, by name."""
    factors = Factors(plan, backend, measured())
    pace = 1.0 if backend.clock == "real" else slowness()
    pace *= outer.SLOWER if _is_around(backend) else 1
    return {trial.name: pace * factors.of(trial) * said_s(trial, backend) for trial in trials}


def said_s(trial: Trial, backend: Backend) -> float:
    """What a trial takes as its programs say, on the machine that has measured, whose cores are all at
    work."""
    virtual_s = (trial.warmup_ns + trial.duration_ns) / 1e9
    if backend.name == "simulator":
        return START_S + PACKET_S * backend.cost(trial)
    if backend.clock == "real":
        return REAL_S + virtual_s
    faster: float = (trial.network.link.rate_bps / 1e7) ** FASTER
    busy = sum(workload.busy for workload in trial.arm.workloads)
    return BOOT_S + HOST_S * len(trial.network.hosts) + virtual_s * faster * (QUIET + BUSY * busy)


def told(expected: Expected) -> str:
    """In words, as nobody knows it exactly: "about 3 min, 0.5 GB of memory"."""
    memory = "" if expected.memory_mb is None else f", {told_memory(expected.memory_mb)} of memory"
    return f"about {told_time(expected.seconds)}{memory}"


def told_time(seconds: float) -> str:
    """A time that nobody knows exactly."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def told_memory(megabytes: float) -> str:
    """Memory likewise: a tenth of a GB and more."""
    return f"{max(0.1, megabytes / 1024):.1f} GB".replace(".0 ", " ")


class _Took(NamedTuple):
    """A trial that was measured, what identifies its arm, and what it took."""

    trial: Trial
    run: str
    seconds: float


class Factors:
    """How many times longer trials took than their programs say: one of the same arm of the preset as it
    comes; else the very same one of another preset; else all of the preset together; else all of its
    experiment on links as fast; else nobody knows, and it is once."""

    def __init__(self, plan: Plan, backend: Backend, found: Costs) -> None:
        self._plan, self._backend, self._found = plan, backend, found
        self._own = {one.trial.arm.name: one for one in self._took([plan.preset])}
        self._like: dict[str, _Took | None] = {}

    @functools.cached_property
    def _others(self) -> list[_Took]:
        """Of the experiment's other presets, which need not be resolved where its own says all."""
        every = (name.partition("/") for name in self._found.presets)
        presets = (
            preset
            for experiment, _, preset in every
            if experiment == self._plan.experiment and preset != self._plan.preset
        )
        return list(self._took(presets))

    def _took(self, presets: Iterable[str]) -> Iterator[_Took]:
        """Trials of the experiment's presets as they come; none of what is another by now."""
        for preset in presets:
            entry = self._found.presets.get(f"{self._plan.experiment}/{preset}")
            if entry is None or entry.backend != self._backend.name:
                continue
            for trial in _usual(self._plan.experiment, preset):
                cost = entry.arms.get(trial.arm.name)
                if cost and cost.run == arm_key(trial):
                    yield _Took(trial, cost.run, cost.seconds)

    def knows(self, trial: Trial) -> bool:
        """Whether something like the trial was measured."""
        return bool(self._alike(trial))

    def measured(self, trial: Trial) -> bool:
        """Whether a trial like this one, but for its seed, was measured."""
        like = self._of_arm(trial)
        return like is not None and like.run == arm_key(trial)

    def of(self, trial: Trial) -> float:
        """The factor of a trial of the plan."""
        alike = self._alike(trial)
        if not alike:
            return 1.0
        return sum(one.seconds for one in alike) / sum(said_s(one.trial, self._backend) for one in alike)

    def _of_arm(self, trial: Trial) -> _Took | None:
        """What is known of a trial's arm, which is the same for all of its seeds."""
        name = trial.arm.name
        if name not in self._like:
            self._like[name] = self._own.get(name) or self._same(name, arm_key(trial))
        return self._like[name]

    def _same(self, name: str, key: str) -> _Took | None:
        """The very same arm of another preset; the last of several."""
        same = (one for one in reversed(self._others) if (one.trial.arm.name, one.run) == (name, key))
        return next(same, None)

    def _alike(self, trial: Trial) -> list[_Took]:
        if like := self._of_arm(trial):
            return [like]
        fast = trial.arm.time_scale > 1
        every = list(self._own.values()) or self._others
        return [one for one in every if (one.trial.arm.time_scale > 1) == fast]


@functools.lru_cache(maxsize=64)
def _usual(experiment: str, preset: str) -> tuple[Trial, ...]:
    """A trial of each arm of a preset as it comes; none of one that a file of the user's has not."""
    try:
        plan = resolve.plan(experiment, preset, [])
    except UsageError:
        return ()
    return plan.trials()[: len(plan.arms_run)]
