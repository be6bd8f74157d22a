"""What a workload's classes may have beyond their base classes.

Each is a protocol of its own, whose docstring says who asks for it. A program that has one defines
its attribute, and need not name the protocol. Where several ask, a function after the protocol says
what follows if it is absent. Those that need a trial or an arm are in
:mod:`qjump_mn.programs.hooks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from qjump_mn.errors import UsageError
from qjump_mn.model.topology import Network
from qjump_mn.model.workload import Flow, WorkloadPlan, WorkloadSpec


class _AskClass(type(Protocol)):  # type: ignore[misc]
    """Makes isinstance look at the class alone. Python 3.11 would evaluate a property, and take an
    AttributeError inside it for an absent hook."""

    def __instancecheck__(cls, instance: object) -> bool:
        names = (name for name in vars(cls) if not name.startswith("_"))
        return all(hasattr(type(instance), name) for name in names)


class Hook(Protocol, metaclass=_AskClass):
    """The base class of protocols that isinstance looks up in an object's class."""


# What it reads


@runtime_checkable
class NamesFile(Hook, Protocol):
    """A spec whose field ``FILE`` names a text file in a folder experiments/, with this suffix. The
    plan's field of the same name gets the content. Asked when a plan is resolved."""

    @property
    def FILE(self) -> str: ...


# What a workload is for


@runtime_checkable
class HasBackground(Hook, Protocol):
    """Whether it exists to disturb the others. It then starts before the warm-up and ends after the
    measurement, has the arm's TCP window, and urgent packets wait for its frames."""

    @property
    def BACKGROUND(self) -> bool: ...


def is_background(workload: WorkloadPlan) -> bool:
    """Without it, the workload is measured."""
    return isinstance(workload, HasBackground) and workload.BACKGROUND


@runtime_checkable
class HasSends(Hook, Protocol):
    """Whether it sends frames; if not, it only observes others' frames. Asked for by bounds,
    marks, checks of fidelity and the drawing of the network."""

    @property
    def SENDS(self) -> bool: ...


def sends(workload: WorkloadPlan) -> bool:
    """Without it, the workload sends."""
    return not isinstance(workload, HasSends) or workload.SENDS


@runtime_checkable
class HasLasting(Hook, Protocol):
    """Whether a spec's program runs for the trial's duration; if not, it ends by itself, and the
    experiment needs no duration."""

    @property
    def LASTING(self) -> bool: ...


def is_lasting(spec: WorkloadSpec) -> bool:
    """Without it, the program runs for the trial's duration."""
    return not isinstance(spec, HasLasting) or spec.LASTING


@runtime_checkable
class HasLongest(Hook, Protocol):
    """The maximum length of its measured part, in ns, if that may exceed the trial's duration, else
    0. Asked for the duration of the background, which lasts as long."""

    @property
    def longest_ns(self) -> int: ...


def longest_ns(workload: WorkloadPlan) -> int:
    """Without it, the measured part is no longer than the trial."""
    return workload.longest_ns if isinstance(workload, HasLongest) else 0


@runtime_checkable
class HasPhase(Hook, Protocol):
    """The range in ns within which the seed moves the start of its measured part; 0 if the start
    does not matter. Asked for when a trial's steps, or its simulation, are made."""

    @property
    def phase_ns(self) -> int: ...


def phase_ns(workload: WorkloadPlan) -> int:
    """Without it, the seed does not move the start."""
    return workload.phase_ns if isinstance(workload, HasPhase) else 0


# Its frames


@runtime_checkable
class HasOneWay(Hook, Protocol):
    """Whether its latencies are one-way times of unanswered messages. Bounds then have no way
    back."""

    @property
    def ONE_WAY(self) -> bool: ...


def is_one_way(workload: WorkloadPlan) -> bool:
    """Without it, latencies are round trips."""
    return isinstance(workload, HasOneWay) and workload.ONE_WAY


@runtime_checkable
class HasMulticast(Hook, Protocol):
    """Whether its frames go to all hosts, which bounds then count at each port."""

    @property
    def MULTICAST(self) -> bool: ...


def is_multicast(workload: WorkloadPlan) -> bool:
    """Without it, frames go to the flow's other host."""
    return isinstance(workload, HasMulticast) and workload.MULTICAST


@runtime_checkable
class HasCopied(Hook, Protocol):
    """Whether a switch may turn one of its frames into several. Bookkeeping then does not compare
    frames into a switch with frames out of it."""

    @property
    def copied(self) -> bool: ...


def is_copied(workload: WorkloadPlan) -> bool:
    """Without it, switches copy what goes to all hosts."""
    return workload.copied if isinstance(workload, HasCopied) else is_multicast(workload)


@runtime_checkable
class HasPacketBytes(Hook, Protocol):
    """The length of each of its IP packets, in bytes; None if they differ. Bounds, budgets and the
    bookkeeping of frames ask for it."""

    @property
    def packet_bytes(self) -> int | None: ...


def packet_bytes(workload: WorkloadPlan) -> int | None:
    """Without it, packets may have any length."""
    return workload.packet_bytes if isinstance(workload, HasPacketBytes) else None


@runtime_checkable
class HasAnswerBytes(Hook, Protocol):
    """The length of the longest IP packet that goes back on a flow during the measurement, in
    bytes: 0 if there is none, None if it may be as long as those that go there. Bounds ask for
    it."""

    @property
    def answer_bytes(self) -> int | None: ...


def answer_bytes(workload: WorkloadPlan) -> int | None:
    """Without it, packets back may be as long as those that go there."""
    return workload.answer_bytes if isinstance(workload, HasAnswerBytes) else None


@runtime_checkable
class HasConversations(Hook, Protocol):
    """All pairs that exchange packets: the flows, and pairs that are not measured. Bounds and the
    drawing of the network ask for them."""

    @property
    def conversations(self) -> tuple[Flow, ...]: ...


def conversations(workload: WorkloadPlan) -> tuple[Flow, ...]:
    """Without it, these are the flows."""
    return workload.conversations if isinstance(workload, HasConversations) else workload.flows


@runtime_checkable
class HasLevels(Hook, Protocol):
    """All levels of its frames, if answers have another one. Limits, bounds and bookkeeping ask for
    them."""

    @property
    def levels(self) -> set[int]: ...


def levels(workload: WorkloadPlan) -> set[int]:
    """Without it, all frames have the workload's level."""
    return workload.levels if isinstance(workload, HasLevels) else {workload.level}


@runtime_checkable
class HasLevelsBySize(Hook, Protocol):
    """Whether, in arms that use levels, the scheme gives each of its flows a level by size. The
    drawing of the network says so."""

    @property
    def LEVELS_BY_SIZE(self) -> bool: ...


def has_levels_by_size(workload: WorkloadPlan) -> bool:
    """Without it, flows have the workload's level."""
    return isinstance(workload, HasLevelsBySize) and workload.LEVELS_BY_SIZE


@runtime_checkable
class HasEchoReplies(Hook, Protocol):
    """Hosts whose kernel answers echo requests for this workload, with the level of their replies,
    such as ("h10", 6); empty without levels. Steps set that level."""

    @property
    def echo_replies(self) -> tuple[tuple[str, int], ...]: ...


def echo_replies(workload: WorkloadPlan) -> tuple[tuple[str, int], ...]:
    """Without it, kernels answer with level 0."""
    return workload.echo_replies if isinstance(workload, HasEchoReplies) else ()


# Where it can run


@runtime_checkable
class HasOnlySimulated(Hook, Protocol):
    """Whether only the simulator can run it. Asked before host and guest run a plan, and where raw
    output is read, which is then the simulator's."""

    @property
    def ONLY_SIMULATED(self) -> bool: ...


def is_only_simulated(workload: WorkloadPlan) -> bool:
    """Without it, kernels can run it too."""
    return isinstance(workload, HasOnlySimulated) and workload.ONLY_SIMULATED


@runtime_checkable
class HasWatchesPorts(Hook, Protocol):
    """Whether it needs each frame's arrival time at a port, which only the ports' own queues know.
    It is left out of arms whose scheme has others."""

    @property
    def WATCHES_PORTS(self) -> bool: ...


def watches_ports(workload: WorkloadPlan) -> bool:
    """Without it, the workload runs whatever queues ports have."""
    return isinstance(workload, HasWatchesPorts) and workload.WATCHES_PORTS


@runtime_checkable
class ChecksEmulated(Hook, Protocol):
    """Raises :class:`UsageError`, beginning with ``where``, for settings that a kernel and real
    programs cannot carry out. Asked before host and guest run a plan."""

    def check_emulated(self, where: str) -> None: ...


def check_emulated(workload: WorkloadPlan, where: str) -> None:
    """Raise :class:`UsageError` if only the simulator can run it; without a check of its own, all
    other settings can be carried out."""
    if is_only_simulated(workload):
        raise UsageError(f"{where} runs only in the simulator: use --backend simulator")
    if isinstance(workload, ChecksEmulated):
        workload.check_emulated(where)


@runtime_checkable
class ChecksRealTime(Hook, Protocol):
    """Raises :class:`UsageError`, beginning with ``where``, for settings that one processor cannot
    keep up with if code takes time. Asked before the host runs a plan."""

    def check_real_time(self, where: str) -> None: ...


def check_real_time(workload: WorkloadPlan, where: str) -> None:
    """Without it, one processor keeps up with all settings."""
    if isinstance(workload, ChecksRealTime):
        workload.check_real_time(where)


@runtime_checkable
class Scales(Hook, Protocol):
    """Returns the plan for times that are ``time_scale`` times shorter than on links of 10 Mb/s.
    Asked when an arm is resolved; without it, the plan stays as it is."""

    def scaled(self, time_scale: int) -> WorkloadPlan: ...


# Its numbers


@runtime_checkable
class HasMeasures(Hook, Protocol):
    """The measures and headings of this one workload, if they depend on its settings. The registry
    asks, for tables, claims and figures."""

    @property
    def measures(self) -> Mapping[str, str]: ...


def measures(workload: WorkloadPlan) -> Mapping[str, str]:
    """Without it, these are MEASURES."""
    return workload.measures if isinstance(workload, HasMeasures) else workload.MEASURES


@runtime_checkable
class HasConstants(Hook, Protocol):
    """Values that are known before anything runs. Claims use them with the workload's name as
    prefix: ``ping_analytic_ms``. Asked when a plan is resolved; without it, there are none."""

    def constants(self, network: Network) -> dict[str, float]: ...


@runtime_checkable
class HasEquations(Hook, Protocol):
    """Calculations that the report shows: name, formula with its numbers, value; without it,
    none."""

    def equations(
        self, network: Network, constants: Mapping[str, float]
    ) -> list[tuple[str, str, str]]: ...


@runtime_checkable
class HasRemarks(Hook, Protocol):
    """A spec's remarks on settings that are valid but probably not intended; ``where`` names the
    workload. The plan shows them; without it, there are none."""

    def remarks(self, where: str) -> list[str]: ...
