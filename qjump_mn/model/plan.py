"""A plan: an experiment with everything resolved to plain numbers, hashable, and all that a backend needs."""

from __future__ import annotations

import hashlib

import msgspec

from qjump_mn.model.experiment import BackendName, ClaimSpec, EpochMode, FigureSpec
from qjump_mn.model.scheme import Limiter, Presented, SchemePlan
from qjump_mn.model.topology import Network
from qjump_mn.programs.registry import AnyPlan

TAIL_S = 1
"""Bulk traffic goes on for at least this long after the last request is due."""


class QJumpPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The limiter that every host runs: sch_qjump in one of its modes, or in mode "tbf" prio and tbf with the same rates.

    ``budget_bytes`` is indexed by 802.1Q priority; 0 is unlimited, in mode "2015" nothing.
    """

    epoch_ns: int
    budget_bytes: tuple[int, ...]
    mode: Limiter
    epochs: EpochMode
    limit_packets: int

    def blocks(self, level: int) -> bool:
        """Whether nothing of a level may ever pass."""
        return self.mode == "2015" and not self.budget_bytes[level]


class ArmPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One treatment, resolved; ``uses_levels`` tells whether the workloads are marked with their levels.

    An arm of a ``series`` has the value ``x`` of its sweep.
    """

    name: str
    label: str
    network: Network
    scheme: SchemePlan
    uses_levels: bool
    qjump: QJumpPlan | None
    workloads: tuple[AnyPlan, ...]
    series: str = ""
    x: float | None = None


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One arm with one seed: what a backend runs at a time, and what travels into the guest."""

    arm: ArmPlan
    seed: int
    warmup_ns: int
    duration_ns: int

    @property
    def network(self) -> Network:
        """The network of the arm."""
        return self.arm.network

    @property
    def name(self) -> str:
        """Where the trial lies below ``trials/`` in the run directory."""
        return f"{self.arm.name}/{self.seed}"

    @property
    def background_s(self) -> int:
        """How long what disturbs goes on: warm-up, the time of the slowest measurement, and a tail, so that every request meets it."""
        return -(-(self.warmup_ns + max([self.duration_ns, *(workload.longest_ns for workload in self.arm.workloads)])) // 10**9) + TAIL_S


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that decides what a run does; two plans with one hash ask for the same run."""

    experiment: str
    preset: str
    title: str
    reproduces: str
    question: str
    network: Network
    warmup_ns: int
    duration_ns: int
    seeds: tuple[int, ...]
    arms: tuple[ArmPlan, ...]
    claims: dict[str, ClaimSpec]
    figure: FigureSpec
    constants: dict[str, float]
    remarks: tuple[str, ...]
    axes: dict[str, str] = {}
    """What each sweep varies, with its unit."""
    schemes: dict[str, Presented] = {}
    """How each scheme of an arm is presented, by its name."""
    backends: tuple[BackendName, ...] = ("guest", "host")
    """Those that can run it, the usual one first."""
    only: tuple[str, ...] = ()
    """The arms that are run; all, if none is named. The others' claims are not judged."""

    @property
    def hash(self) -> str:
        """SHA-256 of the plan's canonical JSON, in hexadecimal."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    @property
    def arms_run(self) -> tuple[ArmPlan, ...]:
        """The arms that are run, in the experiment's order."""
        return tuple(arm for arm in self.arms if not self.only or arm.name in self.only)

    def trials(self) -> tuple[Trial, ...]:
        """Every trial, arm by arm within each seed, so that an interrupted run holds complete replicates."""
        return tuple(
            Trial(arm=arm, seed=seed, warmup_ns=self.warmup_ns, duration_ns=self.duration_ns)
            for seed in self.seeds
            for arm in self.arms_run
        )
