"""The types of a plan: an experiment resolved to plain numbers, in the parts run, shown and
judged."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model import hooks, identity
from qjump_mn.model.clock import ClockPlan
from qjump_mn.model.experiment import ClaimSpec, EpochMode, FigureSpec, Published
from qjump_mn.model.scheme import KEEP_BUDGETS, Limiter, Presented, SchemePlan
from qjump_mn.model.tcp import Tcp
from qjump_mn.model.topology import Network
from qjump_mn.model.watch import Watch
from qjump_mn.model.workload import AnyPlan

MAX_TRIALS = 100_000
"""The most trials of a plan; our largest has 3,000."""

TAIL_NS = 10**9
"""Background traffic continues for at least this time after the last request is due. Its duration
is a multiple of this time, at 10 Mb/s.
"""


class QJumpPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The limiter that every host runs: sch_qjump in mode "delay"; sch_qjump2015 in the modes
    "drop" and "2015"; tc's prio and tbf with the same rates in mode "tbf"; tc's prio and fq with
    the departure times of qjump-edt in mode "edt".

    ``budget_bytes`` is indexed by 802.1Q priority. 0 means unlimited, but in mode "2015" it means
    that nothing may pass. An IP packet costs :meth:`cost_bytes`.
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
        """The kind of our qdisc that hosts have, as tc prints it; empty in the modes "tbf" and
        "edt".
        """
        return {"delay": "qjump", "tbf": "", "edt": ""}.get(self.mode, "qjump2015")

    @property
    def keeps_budgets(self) -> bool:
        """Whether the mode is one of :data:`~qjump_mn.model.scheme.KEEP_BUDGETS`."""
        return self.mode in KEEP_BUDGETS

    def cost_bytes(self, ip_bytes: int) -> int:
        """Return the bytes that are charged for an IP packet of ``ip_bytes``."""
        return max(theory.ETHERNET_HEADER_BYTES + ip_bytes + self.overhead, self.mpu)

    def blocks(self, level: int) -> bool:
        """Return whether nothing of a level may ever pass."""
        return self.mode == "2015" and not self.budget_bytes[level]


class ArmPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One treatment, resolved. ``uses_levels``: workloads are marked with their levels.
    ``real_time``: code takes time, as on the host, so that times which depend on code are not
    scaled on fast links. ``clock`` is the declared time that hosts take.

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
        """The limiter if it sets packets' departure times (mode "edt"), else None."""
        return self.qjump if self.qjump is not None and self.qjump.mode == "edt" else None

    @property
    def time_scale(self) -> int:
        """The factor by which times are shorter than on links of 10 Mb/s."""
        return 1 if self.real_time else self.network.time_scale


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One arm with one seed, whose links have their drawn rates. A backend runs one trial at a
    time; the guest gets it as a whole. ``perturbation`` is the number of its perturbed run, from 1,
    or 0. It decides the trial's folder, and nothing else. ``watch`` does not change results.
    """

    NOT_RUN: ClassVar = ("perturbation", "watch")

    arm: ArmPlan
    seed: int
    warmup_ns: int
    duration_ns: int
    perturbation: int = 0
    watch: Watch | None = None

    @property
    def network(self) -> Network:
        """The network of the arm."""
        return self.arm.network

    @property
    def name(self) -> str:
        """The trial's folder below ``trials/`` in the run directory."""
        folder = f"perturbed{self.perturbation}" if self.perturbation else f"{self.seed}"
        return f"{self.arm.name}/{folder}"

    @property
    def hash(self) -> str:
        """The SHA-256, in hexadecimal, of everything that decides what the trial does."""
        return identity.sha256(self)

    @property
    def length_ns(self) -> int:
        """The duration of warm-up and measurement in ns."""
        return self.warmup_ns + self.duration_ns

    @property
    def background_ns(self) -> int:
        """The duration of background traffic in ns: warm-up, the slowest measurement, and a tail,
        so that every request meets it.
        """
        tail_ns = TAIL_NS // self.arm.time_scale
        slowest_ns = max(
            [self.duration_ns, *(hooks.longest_ns(workload) for workload in self.arm.workloads)]
        )
        return -(-(self.warmup_ns + slowest_ns) // tail_ns) * tail_ns + tail_ns


class Perturbation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A further run of every arm with one change that should not matter: ``what`` names it.
    ``seed`` is the seed of the run.
    """

    what: str
    seed: int


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is run: everything that decides results. The plan's hash covers this part only. Times
    are in ns. What ``watch`` records is for looking at, and changes no result.
    """

    NOT_RUN: ClassVar = ("watch",)

    warmup_ns: int
    duration_ns: int
    seeds: tuple[int, ...]
    arms: tuple[ArmPlan, ...]
    """The arms to run, in the experiment's order."""
    perturbations: tuple[Perturbation, ...] = ()
    """The perturbed runs. Only verdicts use them."""
    varied: dict[str, tuple[ArmPlan, ...]] = {}
    """The arms of perturbed runs, sorted by name, by the change. A change that is not here is of
    the seed alone.
    """
    watch: Watch | None = None
    """The part of the first seed's trials in which every frame is recorded."""


class Shown(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a run is called and how it is shown. Nothing of this affects the network or a
    process."""

    experiment: str
    preset: str
    title: str
    reproduces: str
    question: str
    network: Network
    """The experiment's own network, for reports and constants. Each arm has the network that it
    runs on.
    """
    tcp: Tcp = Tcp()
    """The experiment's own settings; each arm has those that it runs with."""
    figure: FigureSpec
    remarks: tuple[str, ...]
    axes: dict[str, str] = {}
    """The label of each sweep's parameter, with its unit."""
    schemes: dict[str, Presented] = {}
    """How to present each scheme, by its name."""
    backends: tuple[str, ...] = ("guest", "host")
    """The backends that a user may choose; the first is the default. The manifest has the chosen
    one.
    """


class Judged(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How results are judged: claims, the constants that they may use, the published numbers, and
    the settings that were ``calibrated``, each on a published measure."""

    claims: dict[str, ClaimSpec]
    constants: dict[str, float]
    published: Published = {}
    calibrated: dict[str, str] = {}
    not_run: tuple[ArmPlan, ...] = ()
    """The arms that the user left out. Claims that need one of them are not judged."""
    varied: dict[str, dict[str, float]] = {}
    """The constants of perturbed runs, by the change, if the change affects the arms."""


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An experiment resolved. Two plans with the same hash describe the same run, however it is
    shown and judged.
    """

    run: Run
    shown: Shown
    judged: Judged

    @property
    def hash(self) -> str:
        """The SHA-256, in hexadecimal, of the canonical JSON of ``run``, for any order of its
        arms."""
        arms = tuple(sorted(self.run.arms, key=lambda arm: arm.name))
        return identity.sha256(msgspec.structs.replace(self.run, arms=arms))

    def check_size(self, where: str) -> None:
        """Raise :class:`UsageError` for more than :data:`MAX_TRIALS`, before they are listed."""
        arms = (self.run.varied.get(each.what, self.run.arms) for each in self.run.perturbations)
        count = len(self.run.seeds) * len(self.run.arms) + sum(map(len, arms))
        if count > MAX_TRIALS:
            raise UsageError(f"{where}: the plan has {count} trials: use {MAX_TRIALS} at most")

    def trials(self) -> tuple[Trial, ...]:
        """Return every trial, seed by seed and arm by arm, so that an interrupted run has complete
        replicates; perturbed runs come last."""
        replicates = (self._trial(arm, seed) for seed in self.run.seeds for arm in self.run.arms)
        numbers = range(1, len(self.run.perturbations) + 1)
        return (*replicates, *(trial for number in numbers for trial in self.perturbed(number)))

    def perturbed(self, number: int) -> tuple[Trial, ...]:
        """Return the trials of a perturbed run; runs are numbered from 1."""
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
            watch=self.run.watch if not perturbation and seed == self.run.seeds[0] else None,
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
        """All arms of the experiment; those to run come first."""
        return (*self.run.arms, *self.judged.not_run)
