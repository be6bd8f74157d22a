"""What every program offers, and what every workload has in common: as an experiment asks for it, and as a
plan holds it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration

if TYPE_CHECKING:
    import pyarrow as pa

    from qjump_mn.model.plan import ArmPlan, Trial
    from qjump_mn.programs.launch import Launch
    from qjump_mn.results.tables import TrialFacts

Flow = tuple[str, str]
"""A source and a destination, by the names of their hosts."""


LATENCIES = {
    "sent": "requests",
    "received": "answered",
    "loss": "loss",
    "min_ms": "least, ms",
    "p50_ms": "median, ms",
    "p90_ms": "p90, ms",
    "p99_ms": "p99, ms",
    "p999_ms": "p99.9, ms",
    "max_ms": "max, ms",
    "mean_ms": "mean, ms",
}
"""The measures of everything that has a latency for each request."""


class WorkloadPlan(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="program"
):
    """A workload in plain numbers, for one arm. ``level`` is 0 where the arm uses no levels."""

    MEASURES: ClassVar[dict[str, str]] = {}
    """What claims may say of it, each with its heading in tables. Others ask the registry, which has those of
    extensions too."""
    BACKGROUND: ClassVar[bool] = False
    """Whether it is there to disturb the others: it begins before the warm-up and ends after the
    measurement."""
    SENDS: ClassVar[bool] = True
    """Whether any frame is its own; else it only looks at others'."""
    ONE_WAY: ClassVar[bool] = False
    """Whether its latencies are of messages that nobody answers; else they are there and back."""
    MULTICAST: ClassVar[bool] = False
    """Whether its frames go to all hosts."""
    LEVELS_BY_SIZE: ClassVar[bool] = False
    """Whether the scheme gives each of its flows a level by its size, where an arm uses levels."""

    WATCHES_PORTS: ClassVar[bool] = False
    """Whether it asks ports when frames came, which only their own queues know."""
    ONLY_SIMULATED: ClassVar[bool] = False
    """Whether only the simulator has it."""

    NOT_RUN: ClassVar = ("label",)
    """Fields that reach neither the network nor a process: no part of what is run."""

    name: str
    label: str
    flows: tuple[Flow, ...]
    level: int
    window_bytes: int | None
    port: int
    """The first of a hundred ports that its servers may listen on."""

    @property
    def measures(self) -> Mapping[str, str]:
        """``MEASURES``, or what this one workload has in their place."""
        return self.MEASURES

    @property
    def levels(self) -> set[int]:
        """Every level that frames of it have."""
        return {self.level}

    @property
    def echo_replies(self) -> tuple[tuple[str, int], ...]:
        """Hosts whose kernel answers echo requests for this workload, with the level of their replies:
        ("h10", 6); none without levels."""
        return ()

    @property
    def copied(self) -> bool:
        """Whether a switch may make several frames of one of it."""
        return self.MULTICAST

    @property
    def packet_bytes(self) -> int | None:
        """The length of every IP packet of it; None where they differ."""
        return None

    @property
    def conversations(self) -> tuple[Flow, ...]:
        """Who sends to whom, and is answered: the flows, and what a program has beside what is measured."""
        return self.flows

    @property
    def answer_bytes(self) -> int | None:
        """The longest IP packet that goes back on a flow while it is measured: 0 for none, None for one as
        long as what goes there."""
        return None

    def constants(self, network: Network) -> dict[str, float]:
        """What is known of it before anything runs; claims may use each behind the workload's name:
        ``ping_analytic_ms``."""
        return {}

    def arm_constants(self, arm: ArmPlan) -> dict[str, float]:
        """What is known of it in an arm before anything runs, by whole names, which begin with the arm's."""
        return {}

    def equations(self, network: Network, constants: Mapping[str, float]) -> list[tuple[str, str, str]]:
        """What the report computes of it beforehand: name, formula with its numbers, value."""
        return []

    @property
    def busy(self) -> float:
        """Seconds by which it prolongs a virtual second of 10 Mb/s in the guest, on two slow cores that are
        both at work."""
        return 0.0

    def packets(self, trial: Trial) -> float:
        """How many packets it is about for the simulator, as far as the plan says."""
        return 0.0

    def scaled(self, time_scale: int) -> Self:
        """The plan where times are so many times shorter than on links of 10 Mb/s."""
        return self

    def check_emulated(self, where: str) -> None:
        """Raise :class:`UsageError` that begins with ``where`` for what a kernel and real programs cannot do
        of it."""
        if self.ONLY_SIMULATED:
            raise UsageError(f"{where} is for the simulator: use --backend simulator")

    def check_real_time(self, where: str) -> None:
        """Likewise for what one processor cannot do of it where code takes time."""

    def sends_every(self, where: str, interval_ns: int, least_ns: int) -> None:
        """Raise :class:`UsageError` for an ``interval_ns`` shorter than ``least_ns``, which one processor
        keeps to."""
        if interval_ns < least_ns:
            raise UsageError(
                f"{where}.interval: {self.__struct_config__.tag} does not send more often than every "
                f"{Duration(least_ns)}: use that, or --backend guest"
            )

    @property
    def longest_ns(self) -> int:
        """How long its measured part may take where that is longer than the trial's duration."""
        return 0

    @property
    def phase_ns(self) -> int:
        """The seed moves the start of what is measured within this; 0 where its start is of no account."""
        return 0

    def describe(self) -> str:
        """What it does, in a line for the report."""
        raise _missing(self, "describe")


class WorkloadSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="program"
):
    """A program with its role; ``level`` is the 802.1Q priority that it has where an arm uses levels."""

    LASTING: ClassVar[bool] = True
    """Whether the trial's duration decides how long it goes on; else it ends by itself."""

    label: str
    level: int = 0

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        """Which host sends to which, each with the entry that says so; raise :class:`UsageError` where that
        makes no sense."""
        raise _missing(self, "pairs")

    def check(self, where: str, network: Network) -> None:
        """Raise :class:`UsageError` with the place of a number that is out of range."""

    def remarks(self, where: str) -> list[str]:
        """What is possible, but most likely not meant; ``where`` names the workload."""
        return []

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> WorkloadPlan:
        """The plan; ``common`` are the fields that every :class:`WorkloadPlan` has."""
        raise _missing(self, "planned")


def _missing(part: object, method: str) -> UsageError:
    return UsageError(f"{type(part).__module__}: class {type(part).__name__} needs a method {method!r}")


class FlowSpec(WorkloadSpec, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A workload between pairs of hosts: ``flows`` are "source>destination"."""

    flows: list[str]

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        return read_flows(self.flows, where)


def read_flows(flows: Sequence[str], where: str) -> list[tuple[str, Flow]]:
    """The flows of texts such as "h8>h10", or "h1..h6>h10" for one from each of six hosts, with the entry
    that says so; raise :class:`UsageError` for nonsense."""
    pairs = []
    for text in flows:
        source, arrow, destination = (part.strip() for part in text.partition(">"))
        sources = _hosts(source)
        if not arrow or not sources or destination in sources:
            raise UsageError(
                f"{where}.flows: {text!r} is no flow: write two hosts, such as 'h8>h10', or 'h1..h6>h10'"
            )
        pairs += [(f"{where}.flows", (host, destination)) for host in sources]
    if not pairs:
        raise UsageError(f"{where}.flows: no flows: give at least one, such as 'h8>h10'")
    if len({flow for _, flow in pairs}) < len(pairs):
        raise UsageError(f"{where}.flows: a flow is named twice: give each once")
    return pairs


def _hosts(text: str) -> list[str]:
    """h2, h3, h4 of "h2..h4", else the text."""
    found = re.fullmatch(r"(\D+)(\d{1,5})\.\.\1(\d{1,5})", text)
    if found is None:
        return [text]
    return [f"{found[1]}{number}" for number in range(int(found[2]), int(found[3]) + 1)]


def bounded(where: str, value: float, least: float, most: float, shown: str) -> None:
    """Raise :class:`UsageError` unless ``least`` <= ``value`` <= ``most``; ``shown`` says the range with its
    units."""
    if not least <= value <= most:
        raise UsageError(f"{where}: {value} is out of range: use {shown}")


Read = Callable[[str], str]
"""Gives the text of a raw file by its name."""


@dataclass(frozen=True)
class Measure:
    """A measure that a package adds to somebody else's program: its heading in tables, and its value, None
    for none.

    ``value`` gets the workload's table, its plan, the trial, and what the trial says of itself.
    """

    heading: str
    value: Callable[[pa.Table, Any, Trial, TrialFacts], float | None]


@dataclass(frozen=True)
class Program:
    """A program that workloads may have. Its module imports the standard library and msgspec only.

    ``columns`` are those of its table, each with its type by Arrow's name. ``launches`` are the processes of
    a workload in a trial, and ``table`` makes of the files that they leave the table's columns; it raises
    :class:`LostError` if what a program left is not whole. ``measures`` names an object
    "package.module:NAME", a :class:`~qjump_mn.programs.measures_api.Measures`; ``simulated`` likewise a
    :class:`~qjump_mn.simulation.stage.Simulated`, and is empty where the simulator does not know the program.
    """

    spec: type[WorkloadSpec]
    plan: type[WorkloadPlan]
    columns: Mapping[str, str]
    launches: Callable[[Any, Trial], Iterator[Launch]]
    table: Callable[[Any, Trial, Read], Mapping[str, Sequence[Any]]]
    measures: str
    simulated: str = ""

    @property
    def name(self) -> str:
        """As experiments have it in ``program``."""
        return str(self.plan.__struct_config__.tag)
