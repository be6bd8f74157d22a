"""The contract of a program, and what an author imports: the base classes of its two structs, and
the record that registers it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.units import Duration
from qjump_mn.model.workload import Flow as Flow
from qjump_mn.model.workload import WorkloadPlan as WorkloadPlan
from qjump_mn.model.workload import WorkloadSpec as WorkloadSpec
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.launch import Launch

if TYPE_CHECKING:
    import pyarrow as pa

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
"""Measures of every program that has a latency for each request."""


class FlowSpec(WorkloadSpec, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A workload between pairs of hosts. Each of ``flows`` is "source>destination"."""

    flows: list[str]

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        return read_flows(self.flows, where)


def read_flows(flows: Sequence[str], where: str) -> list[tuple[str, Flow]]:
    """Parse flows such as "h8>h10", or "h1..h6>h10" for one from each of six hosts.

    Return each with the setting that it comes from. Raise :class:`UsageError` if one is not valid.
    """
    pairs = []
    for text in flows:
        source, arrow, destination = (part.strip() for part in text.partition(">"))
        sources = _hosts(source)
        if not arrow or not sources or destination in sources:
            raise UsageError(
                f"{where}.flows: {text!r} is not a flow: write two hosts, such as 'h8>h10' or "
                "'h1..h6>h10'"
            )
        pairs += [(f"{where}.flows", (host, destination)) for host in sources]
    if not pairs:
        raise UsageError(f"{where}.flows: there are no flows: give at least one, such as 'h8>h10'")
    if len({flow for _, flow in pairs}) < len(pairs):
        raise UsageError(f"{where}.flows: a flow is listed twice: list each once")
    return pairs


def _hosts(text: str) -> list[str]:
    """Expand a range: h2, h3, h4 for "h2..h4"; any other text stays as it is."""
    match = re.fullmatch(r"(\D+)(\d{1,5})\.\.\1(\d{1,5})", text)
    if match is None:
        return [text]
    prefix, first, last = match.groups()
    return [f"{prefix}{number}" for number in range(int(first), int(last) + 1)]


def all_pairs(
    place: str, hosts: Sequence[str], *, required: bool = False
) -> list[tuple[str, Flow]]:
    """Return all ordered pairs of the hosts that are listed at ``place``, with that place.

    Raises :class:`UsageError` for one host, or one that is listed twice; if ``required``, also for
    none.
    """
    if len(hosts) == 1 or len(set(hosts)) < len(hosts) or (required and not hosts):
        raise UsageError(
            f"{place}: list two or more hosts, each once (got {', '.join(hosts) or 'none'})"
        )
    return [(place, pair) for pair in itertools.permutations(hosts, 2)]


def bounded(where: str, value: float, least: float, most: float, shown: str) -> None:
    """Raise :class:`UsageError` unless ``least`` <= ``value`` <= ``most``; ``shown`` is the range
    with units."""
    if not least <= value <= most:
        raise UsageError(f"{where}: {value} is out of range: use {shown}")


def check_interval(plan: WorkloadPlan, where: str, interval_ns: int, least_ns: int) -> None:
    """Raise :class:`UsageError` if ``interval_ns`` is below ``least_ns``, the shortest interval
    that one processor keeps."""
    if interval_ns < least_ns:
        raise UsageError(
            f"{where}.interval: {plan.__struct_config__.tag} cannot send more often than every "
            f"{Duration(least_ns)} in real time: use that or more, or --backend guest"
        )


Read = Callable[[str], str]
"""Returns the text of a raw file, by the file's name."""


@dataclass(frozen=True)
class Measure:
    """A measure that a package adds to an existing program: its heading in tables, and a function
    that computes it (None if it has no value).

    The function gets the workload's table, its plan, the trial, and the trial's facts.
    """

    heading: str
    value: Callable[[pa.Table, Any, Trial, TrialFacts], float | None]


@dataclass(frozen=True)
class Program:
    """A program that workloads can use. Its module imports only the standard library and msgspec.

    ``columns`` are the columns of its table, with Arrow's names of their types. ``launches`` yields
    the processes of a workload in a trial, and ``table`` turns the files that they leave into the
    table's columns; it raises :class:`LostError` if their output is incomplete. ``measures`` names
    an object "package.module:NAME", a :class:`~qjump_mn.programs.measures_api.Measures`.
    ``simulated`` names a :class:`~qjump_mn.programs.simulated_api.Simulated` in the same way; it is
    empty if the simulator does not support the program.
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
        """Its name, as experiments give it in ``program``."""
        return str(self.plan.__struct_config__.tag)
