"""A plan: an experiment resolved to plain numbers, in three parts: what is run, shown and judged."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from qjump_mn import theory
from qjump_mn.model import identity
from qjump_mn.model.clock import ClockPlan
from qjump_mn.model.experiment import ClaimSpec, EpochMode, FigureSpec, Published
from qjump_mn.model.scheme import KEEP_BUDGETS, Limiter, Presented, SchemePlan
from qjump_mn.model.tcp import Tcp
from qjump_mn.model.topology import Network
from qjump_mn.programs.registry import AnyPlan

TAIL_NS = 10**9
"""What disturbs goes on for at least this long after the last request is due, and for a whole number of
these, at 10 Mb/s."""


class QJumpPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The limiter that every host runs: sch_qjump, sch_qjump2015 in the modes "drop" and "2015", or of tc's
    own parts in mode "tbf" prio and tbf with the same rates, in mode "edt" prio and fq with the departure
    times of qjump-edt.

    ``budget_bytes`` is indexed by 802.1Q priority; 0 is unlimited, in mode "2015" nothing. An IP packet costs
    :meth:`cost_bytes` of it.
    """

    epoch_ns: int
    budget_bytes: tuple[int, ...]
    mode: Limiter
    epochs: EpochMode
    limit_packets: int
    slack_ns: int = 0
    overhead: int = 0
    mpu: int = 0
    priomap: tuple[int, ...] = theory.PRIOMAP

    @property
    def qdisc(self) -> str:
        """Which of our qdiscs hosts have, as tc writes its kind; none in the modes "tbf" and "edt"."""
        return {"delay": "qjump", "tbf": "", "edt": ""}.get(self.mode, "qjump2015")

    @property
    def keeps_budgets(self) -> bool:
        """Whether it is one of :data:`~qjump_mn.model.scheme.KEEP_BUDGETS`."""
        return self.mode in KEEP_BUDGETS

    def cost_bytes(self, ip_bytes: int) -> int:
        """What an IP packet of ``ip_bytes`` is charged."""
        return max(theory.ETHERNET_HEADER_BYTES + ip_bytes + self.overhead, self.mpu)

    def blocks(self, level: int) -> bool:
        """Whether nothing of a level may ever pass."""
        return self.mode == "2015" and not self.budget_bytes[level]


class ArmPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One treatment, resolved; ``uses_levels`` tells whether the workloads are marked with their levels,
    ``real_time`` whether code takes time, as on the host: what waits for it is then no shorter on fast links.
    ``clock`` is what hosts are declared to take.

    An arm of a ``series`` has the value ``x`` of its sweep.
    """

    NOT_RUN: ClassVar = ("label", "series", "x")

    name: str
    label: str
    network: Network
    scheme: SchemePlan
    uses_levels: bool
    qjump: QJumpPlan | None
    workloads: tuple[AnyPlan, ...]
    tcp: Tcp = Tcp()
    real_time: bool | None = None
    clock: ClockPlan | None = None
    series: str = ""
    x: float | None = None

    @property
    def departure_times(self) -> QJumpPlan | None:
        """The limiter, where it gives packets the times at which they may depart."""
        return self.qjump if self.qjump is not None and self.qjump.mode == "edt" else None

    @property
    def time_scale(self) -> int:
        """How many times shorter times are than on links of 10 Mb/s."""
        return 1 if self.real_time else self.network.time_scale


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One arm with one seed, which decides the rates of its links: what a backend runs at a time, and what
    travels into the guest. ``perturbation`` is its number where it is of a perturbed run, from 1; it decides
    where the trial lies, and nothing of what it does."""

    NOT_RUN: ClassVar = ("perturbation",)

    arm: ArmPlan
    seed: int
    warmup_ns: int
    duration_ns: int
    perturbation: int = 0

    @property
    def network(self) -> Network:
        """The network of the arm."""
        return self.arm.network

    @property
    def name(self) -> str:
        """Where the trial lies below ``trials/`` in the run directory."""
        which = f"perturbed{self.perturbation}" if self.perturbation else f"{self.seed}"
        return f"{self.arm.name}/{which}"

    @property
    def hash(self) -> str:
        """SHA-256 of all that decides what the trial does, in hexadecimal."""
        return identity.sha256(self)

    @property
    def background_ns(self) -> int:
        """How long what disturbs goes on: warm-up, the time of the slowest measurement, and a tail, so that
        every request meets it."""
        tail_ns = TAIL_NS // self.arm.time_scale
        slowest_ns = max([self.duration_ns, *(workload.longest_ns for workload in self.arm.workloads)])
        return -(-(self.warmup_ns + slowest_ns) // tail_ns) * tail_ns + tail_ns


class Perturbation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A further run of every arm, with one thing otherwise that should not matter: ``what`` in words, and the
    seed that it has."""

    what: str
    seed: int


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is run: all that decides results, and all that a plan's hash is made of. Times are in ns."""

    warmup_ns: int
    duration_ns: int
    seeds: tuple[int, ...]
    arms: tuple[ArmPlan, ...]
    """Those that are run, in the experiment's order."""
    perturbations: tuple[Perturbation, ...] = ()
    """The perturbed runs, of which nothing but verdicts says anything."""
    varied: dict[str, tuple[ArmPlan, ...]] = {}
    """The arms of perturbed runs, in the order of their names, by what is varied; where nothing stands here,
    the seed alone is another."""


class Shown(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a run is called and how it is shown; nothing of it reaches the network or a process."""

    experiment: str
    preset: str
    title: str
    reproduces: str
    question: str
    network: Network
    """The experiment's own, of which reports and constants are; every arm has the one that it runs on."""
    tcp: Tcp = Tcp()
    """The experiment's own likewise."""
    figure: FigureSpec
    remarks: tuple[str, ...]
    axes: dict[str, str] = {}
    """What each sweep varies, with its unit."""
    schemes: dict[str, Presented] = {}
    """How each scheme of an arm is presented, by its name."""
    backends: tuple[str, ...] = ("guest", "host")
    """Those that a user may choose, the usual one first; the manifest has the one that was."""


class Judged(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is said of the results: claims, the constants that they may use, and the published numbers."""

    claims: dict[str, ClaimSpec]
    constants: dict[str, float]
    published: Published = {}
    not_run: tuple[ArmPlan, ...] = ()
    """The experiment's other arms, which nobody asked for: claims that need one are not judged."""
    varied: dict[str, dict[str, float]] = {}
    """The constants of perturbed runs whose arms are varied, by what is varied."""


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An experiment resolved. Two plans with one hash ask for the same run, however it is shown and
    judged."""

    run: Run
    shown: Shown
    judged: Judged

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON of ``run``, in hexadecimal, whatever the order of its arms."""
        arms = tuple(sorted(self.run.arms, key=lambda arm: arm.name))
        return identity.sha256(msgspec.structs.replace(self.run, arms=arms))

    def trials(self) -> tuple[Trial, ...]:
        """Every trial, arm by arm within each seed, so that an interrupted run holds complete replicates;
        last those of the perturbed runs."""
        replicates = (self._trial(arm, seed) for seed in self.run.seeds for arm in self.run.arms)
        numbers = range(1, len(self.run.perturbations) + 1)
        return (*replicates, *(trial for number in numbers for trial in self.perturbed(number)))

    def perturbed(self, number: int) -> tuple[Trial, ...]:
        """The trials of a perturbed run, numbered from 1."""
        perturbation = self.run.perturbations[number - 1]
        arms = self.run.varied.get(perturbation.what, self.run.arms)
        return tuple(self._trial(arm, perturbation.seed, number) for arm in arms)

    def _trial(self, arm: ArmPlan, seed: int, perturbation: int = 0) -> Trial:
        return Trial(
            arm=msgspec.structs.replace(arm, network=arm.network.drawn(seed)),
            seed=seed,
            warmup_ns=self.run.warmup_ns,
            duration_ns=self.run.duration_ns,
            perturbation=perturbation,
        )

    @property
    def unperturbed(self) -> Plan:
        """The plan without perturbed runs."""
        return Plan(
            run=msgspec.structs.replace(self.run, perturbations=(), varied={}),
            shown=self.shown,
            judged=msgspec.structs.replace(self.judged, varied={}),
        )

    @property
    def arms(self) -> tuple[ArmPlan, ...]:
        """All arms of the experiment, those that are run first."""
        return (*self.run.arms, *self.judged.not_run)
