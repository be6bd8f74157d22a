"""Check what an experiment and its user ask for: numbers in range, and names that exist."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from qjump_mn.errors import UsageError
from qjump_mn.links import registry
from qjump_mn.model import hooks, suggestions, words
from qjump_mn.model.experiment import ExperimentSpec, FigureSpec
from qjump_mn.model.plan import ArmPlan
from qjump_mn.model.tcp import Tcp
from qjump_mn.model.topology import Network
from qjump_mn.resolve import constants, perturbation

MAX_REPLICATES = 1000
MAX_RTO_US = 1_000_000
STUDENTS = (1_000_000, 2_000_000_000)
"""Students' seeds are from here to there, apart from those that people type."""


def student_seed(student: str) -> int:
    """Return the first seed of a student, by a name or number that the course gave them.

    Raises :class:`UsageError` for an empty one.
    """
    name = " ".join(student.split()).casefold()
    if not name:
        raise UsageError("--student needs a name or number that the course gave you")
    digest = hashlib.sha256(name.encode()).digest()
    return STUDENTS[0] + int.from_bytes(digest[:8], "big") % (STUDENTS[1] - STUDENTS[0])


def seeds(first: int, replicates: int, perturb: int) -> tuple[int, ...]:
    """The seed of each replicate. Raises :class:`UsageError` for a number that is out of range."""
    if not 1 <= replicates <= MAX_REPLICATES:
        raise UsageError(f"replicates must be 1 to {MAX_REPLICATES} (got {replicates})")
    perturbation.check(perturb)
    if first < 0 or first + replicates + perturb > 2**31:
        raise UsageError(f"seed {first} is out of range: use 0 to {2**31 - replicates - perturb}")
    return tuple(range(first, first + replicates))


def times(where: str, spec: ExperimentSpec) -> None:
    """Raise :class:`UsageError` for a duration, a warmup or a clock that is out of range."""
    lasting = any(
        hooks.is_lasting(spec.workloads[key])
        for arm in spec.arms.values()
        for key in arm.workloads
        if key in spec.workloads
    )
    if lasting and not spec.duration:
        raise UsageError(
            f"{where}: its workloads need a duration, because they do not end by themselves: write "
            "duration = '10s'"
        )
    if (lasting or spec.duration) and not 10**3 <= spec.duration <= 3600 * 10**9:
        raise UsageError(
            f"{where}: a duration of {spec.duration} is out of range: use 1us to 3600s"
        )
    if spec.warmup > 600 * 10**9:
        raise UsageError(f"{where}: a warmup of {spec.warmup} is out of range: use at most 600s")
    spec.clock.check(where)


def tcp(where: str, options: Tcp, network: Network) -> None:
    """Raise :class:`UsageError` that begins with ``where`` if ``network`` cannot do it."""
    if options.segmentation_offload and not registry.of(network.model).cuts_segments:
        raise UsageError(
            f"{where}: tcp.segmentation_offload: only links of model wire cut TCP's packets "
            f"into frames, not those of model {network.model}: leave it out, or choose that "
            "model"
        )
    if options.min_rto_us is not None and not 1 <= options.min_rto_us <= MAX_RTO_US:
        raise UsageError(
            f"{where}: tcp.min_rto_us = {options.min_rto_us} is out of range: use 1 to {MAX_RTO_US}"
        )


def names(where: str, spec: ExperimentSpec, arms: Sequence[ArmPlan]) -> None:
    """Raise :class:`UsageError` for two arms of one name, and for names that nothing has."""
    words.check_distinct(f"{where}: arms", (arm.name for arm in arms))
    for arm in [spec.compare] if isinstance(spec.compare, str) else spec.compare:
        if arm:
            suggestions.require(f"{where}: compare: there is no arm", arm, spec.arms)
    _figure(f"{where}: figure", spec, arms)
    if "links" in spec.workloads:
        raise UsageError(
            f"{where}: workloads.links: this name is taken by a trial's table of link loads: "
            "rename the workload"
        )


def asked(
    where: str, spec: ExperimentSpec, arms: Sequence[ArmPlan], only: Sequence[str]
) -> list[bool]:
    """Whether each arm is run: those that ``only`` names, or all. Raises :class:`UsageError` for an
    arm that does not exist."""
    existing = {name for arm in arms for name in (arm.name, arm.series)}
    # The arm of scheme fq-codel is fq_codel.
    only = [arm if arm in existing else arm.replace("-", "_") for arm in only]
    for arm in only:
        if arm not in existing:
            raise UsageError(
                f"{where}: there is no arm {arm!r}: {suggestions.nearest(arm, list(spec.arms))}"
            )
    return [not only or arm.name in only or arm.series in only for arm in arms]


def _figure(where: str, spec: ExperimentSpec, arms: Sequence[ArmPlan]) -> None:
    figure = spec.figure
    suggestions.require(f"{where}.workload: there is no workload", figure.workload, spec.workloads)
    for arm in _arms_of(figure):
        suggestions.require(f"{where}: there is no arm", arm, spec.arms)
    for panel in figure.panels:
        for workload in panel.relative_to:
            suggestions.require(
                f"{where}.panels: relative_to: there is no workload", workload, spec.workloads
            )
        for arm in panel.arms:
            if figure.arms and arm not in figure.arms:
                raise UsageError(
                    f"{where}.panels: {arm!r} is not one of the figure's arms: add it to "
                    f"figure.arms, or name one of {', '.join(figure.arms)}"
                )
    measures = sorted(constants.entries(arms))
    for entry in (*figure.table, *(entry for panel in figure.panels for entry in panel.measures)):
        suggestions.require(f"{where}: no arm has", entry, measures)


def _arms_of(figure: FigureSpec) -> Iterator[str]:
    """Every arm that the figure names."""
    yield from (*figure.arms, *figure.detail)
    for panel in figure.panels:
        yield from (*panel.arms, *panel.relative_to.values())
