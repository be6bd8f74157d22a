"""A workload as plain data: in an experiment (spec) and in a plan."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration

Flow = tuple[str, str]
"""Source and destination, as host names."""


class WorkloadPlan(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="program"
):
    """A workload of one arm in plain numbers. ``level`` is 0 if the arm uses no levels."""

    MEASURES: ClassVar[dict[str, str]] = {}
    """The program's measures, which claims may use, and their headings in tables. Ask the registry
    to include those of extensions."""
    BACKGROUND: ClassVar[bool] = False
    """Whether it exists to disturb the others: it starts before the warm-up and ends after the
    measurement."""
    SENDS: ClassVar[bool] = True
    """Whether it sends frames; if not, it only observes others' frames."""
    ONE_WAY: ClassVar[bool] = False
    """Whether its latencies are one-way times of unanswered messages; if not, they are round trips.
    """
    MULTICAST: ClassVar[bool] = False
    """Whether its frames go to all hosts."""
    LEVELS_BY_SIZE: ClassVar[bool] = False
    """Whether, in arms that use levels, the scheme gives each of its flows a level by size."""

    WATCHES_PORTS: ClassVar[bool] = False
    """Whether it needs each frame's arrival time at a port, which only the ports' own queues know.
    """
    ONLY_SIMULATED: ClassVar[bool] = False
    """Whether only the simulator can run it."""

    NOT_RUN: ClassVar = ("label",)
    """Fields that reach neither the network nor a process, and so are not part of the plan's hash.
    """

    name: str
    label: str
    flows: tuple[Flow, ...]
    level: int
    window_bytes: int | None
    port: int
    """First of the hundred ports on which its servers may listen."""

    @property
    def measures(self) -> Mapping[str, str]:
        """``MEASURES``, or the measures of this one workload if they depend on its settings."""
        return self.MEASURES

    @property
    def levels(self) -> set[int]:
        """All levels of its frames."""
        return {self.level}

    @property
    def echo_replies(self) -> tuple[tuple[str, int], ...]:
        """Hosts whose kernel answers echo requests for this workload, with the level of their
        replies, such as ("h10", 6); empty without levels."""
        return ()

    @property
    def copied(self) -> bool:
        """Whether a switch may turn one of its frames into several."""
        return self.MULTICAST

    @property
    def packet_bytes(self) -> int | None:
        """Length of each of its IP packets; None if they differ."""
        return None

    @property
    def conversations(self) -> tuple[Flow, ...]:
        """All pairs that exchange packets: the flows, and pairs that are not measured."""
        return self.flows

    @property
    def answer_bytes(self) -> int | None:
        """Length of the longest IP packet that goes back on a flow during the measurement: 0 if
        there is none, None if it may be as long as those that go there."""
        return None

    def constants(self, network: Network) -> dict[str, float]:
        """Values that are known before anything runs. Claims use them with the workload's name as
        prefix: ``ping_analytic_ms``."""
        return {}

    def arm_constants(self, arm: Any) -> dict[str, float]:
        """Values of one arm that are known before anything runs, by their full names, which begin
        with the arm's name."""
        return {}

    def equations(
        self, network: Network, constants: Mapping[str, float]
    ) -> list[tuple[str, str, str]]:
        """Calculations that the report shows: name, formula with its numbers, value."""
        return []

    @property
    def busy(self) -> float:
        """Seconds that it adds to a virtual second of 10 Mb/s in the guest, on two slow cores that
        are both busy."""
        return 0.0

    def packets(self, trial: Any) -> float:
        """Estimated number of packets in the simulator, as far as the plan determines it."""
        return 0.0

    def scaled(self, time_scale: int) -> Self:
        """The plan for times that are ``time_scale`` times shorter than on links of 10 Mb/s."""
        return self

    def check_emulated(self, where: str) -> None:
        """Raise :class:`UsageError`, beginning with ``where``, for settings that a kernel and real
        programs cannot carry out."""
        if self.ONLY_SIMULATED:
            raise UsageError(f"{where} runs only in the simulator: use --backend simulator")

    def check_real_time(self, where: str) -> None:
        """Raise :class:`UsageError`, beginning with ``where``, for settings that one processor
        cannot keep up with if code takes time."""

    def sends_every(self, where: str, interval_ns: int, least_ns: int) -> None:
        """Raise :class:`UsageError` if ``interval_ns`` is below ``least_ns``, the shortest interval
        that one processor keeps."""
        if interval_ns < least_ns:
            raise UsageError(
                f"{where}.interval: {self.__struct_config__.tag} cannot send more often than every "
                f"{Duration(least_ns)} in real time: use that or more, or --backend guest"
            )

    @property
    def longest_ns(self) -> int:
        """Maximum length of its measured part, in ns, if that may exceed the trial's duration; else
        0."""
        return 0

    @property
    def phase_ns(self) -> int:
        """Range in ns within which the seed moves the start of its measured part; 0 if the start
        does not matter."""
        return 0

    def describe(self) -> str:
        """One line for the report that says what the workload does."""
        raise _missing(self, "describe")


class WorkloadSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="program"
):
    """A workload as an experiment file describes it. ``level`` is its 802.1Q priority in arms that
    use levels."""

    LASTING: ClassVar[bool] = True
    """Whether it runs for the trial's duration; if not, it ends by itself."""

    label: str
    level: int = 0

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        """The flows, each with the setting that it comes from; raise :class:`UsageError` if they
        make no sense."""
        raise _missing(self, "pairs")

    def check(self, where: str, network: Network) -> None:
        """Raise :class:`UsageError`, with the setting's name, if a value is out of range."""

    def remarks(self, where: str) -> list[str]:
        """Remarks on settings that are valid but probably not intended; ``where`` names the
        workload."""
        return []

    def planned(
        self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int
    ) -> WorkloadPlan:
        """The workload's plan. ``common`` has the fields that every :class:`WorkloadPlan` has."""
        raise _missing(self, "planned")


def _missing(part: object, method: str) -> UsageError:
    return UsageError(
        f"{type(part).__module__}: class {type(part).__name__} needs a method {method!r}"
    )


if TYPE_CHECKING:
    AnySpec = WorkloadSpec
    AnyPlan = WorkloadPlan
else:

    class AnySpec(abc.ABC):  # noqa: B024 - for isinstance alone
        """A workload of any program, as an experiment file has it. The registry of programs
        decodes it."""

    class AnyPlan(abc.ABC):  # noqa: B024 - for isinstance alone
        """A workload of any program, as a plan has it. The registry of programs decodes it."""

    AnySpec.register(WorkloadSpec)
    AnyPlan.register(WorkloadPlan)
