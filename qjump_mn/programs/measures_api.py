"""What a program's ``measures`` module offers: numbers from its table. It is imported where tables are read,
never to plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qjump_mn import theory
from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.programs.base import Flow, Read
from qjump_mn.programs.tracks import Track
from qjump_mn.results.outcome import Check
from qjump_mn.results.tables import TrialFacts, TrialTables

Floats = npt.NDArray[np.float64]


class Whole(NamedTuple):
    """A line that a figure of its own shows for all arms together: its ``name`` in file names, title, axis
    and source."""

    name: str
    title: str
    axis: str
    source: str


class Timeline(NamedTuple):
    """A workload as time goes by: s since the measurement began, and ms; nan is a bin that has no value, a
    ``gap``.

    ``measure`` is the one that is given with it, in ``words``, in which {} stands for the value.
    """

    label: str
    measure: str
    words: str
    colour: str
    x: Floats
    y: Floats
    gap: str = ""
    whole: Whole | None = None


class OnTheWire(NamedTuple):
    """Latencies in us, each with the least that the wire takes for it, shapes (rows,)."""

    measured_us: Floats
    least_us: Floats


class Moved(NamedTuple):
    """What a program says of what went from one host to another, one way, while it ran; 0 and None where it
    says nothing.

    At least ``arrived_frames``, ``arrived_bytes`` of link time (preamble to gap), have crossed the whole way.
    At most ``sent_frames``, and at most ``sent_payload`` bytes behind the longest headers of TCP
    (:data:`HEADERS_BYTES`), have crossed any of its links. ``last_frames`` is the most that has crossed its
    last one, and ``last_payload`` too, beside what still waited on the way when the receiver was ended."""

    flow: Flow
    level: int
    arrived_frames: int = 0
    arrived_bytes: int = 0
    sent_frames: int | None = None
    sent_payload: int | None = None
    last_frames: int | None = None
    last_payload: int | None = None

    @classmethod
    def datagrams(cls, flow: Flow, level: int, ip_bytes: int, arrived: int, sent: int | None) -> Moved:
        """Packets of one length; the receiver waits for all that are under way, unless ``sent`` is None."""
        size = arrived * theory.wire_bytes(ip_bytes)
        last = None if sent is None else arrived
        return cls(flow, level, arrived, size, sent_frames=sent, last_frames=last)

    @classmethod
    def stream(cls, flow: Flow, level: int, payload: int, mtu_bytes: int) -> Moved:
        """What TCP brought in as few segments as there may be; how often it sent again is not known."""
        frames = -(-payload // (mtu_bytes - theory.TCP_HEADERS_BYTES))
        size = payload + frames * theory.wire_bytes(theory.TCP_HEADERS_BYTES)
        return cls(flow, level, frames, size)


HEADERS_BYTES = theory.wire_bytes(theory.IP_HEADER_BYTES + theory.TCP_LONGEST_HEADER_BYTES)
"""The most that a frame keeps a link for beside its payload; an acknowledgement is never longer."""


class Said(NamedTuple):
    """What one workload left in one trial, for those who ask whether it agrees with itself: its ``plan`` and
    its ``table``, what the trial says of itself, how to read another raw file, and whether the trial ran on
    the virtual clock, on which a processor that is free takes no more time than it needs."""

    plan: Any
    table: pa.Table
    trial: Trial
    facts: TrialFacts
    read: Read
    virtual: bool


Crossed = tuple[tuple[Flow, int], ...]
"""Ports, (from, to), with the 802.1Q priority that a message has there."""

Checks = Callable[[str, Sequence[TrialTables]], Iterator[Check]]


@dataclass(frozen=True)
class Measures:
    """What is computed of the tables of a program.

    ``values`` are its measures in one trial; one that has no value (the median of no echo) is absent.
    ``checks`` are those that its tables let say whether a run may be believed; they get the run's clock
    ("virtual" or "real") and all of its trials, whatever ran in them. ``wire`` is for what has a latency a
    request and a least one, which no wire falls short of; a latency is the most that its text may stand for.
    ``agrees`` yields a sentence for each thing in which what a program left contradicts itself or the trial's
    own times; ``moved`` what it says to have moved. ``crossed`` are the ports that a message and its answer
    cross, by flow, where each is one frame that nobody sends again, so that its latency is what it waited.
    ``flow_goodput`` is what each flow got, in Mb/s, by "h7>h10"; ``timeline`` is what a
    figure draws of a trial, ``tracks`` all that has a time in it.
    """

    values: Callable[[pa.Table, Any, Trial, TrialFacts], dict[str, float]]
    checks: Checks = lambda clock, data: iter(())
    wire: Callable[[pa.Table, Any, Trial], OnTheWire | None] | None = None
    agrees: Callable[[Said], Iterator[str]] | None = None
    moved: Callable[[Said], Iterator[Moved]] | None = None
    crossed: Callable[[Any, Trial], dict[str, Crossed]] | None = None
    flow_goodput: Callable[[pa.Table, TrialFacts], dict[str, float]] | None = None
    timeline: Callable[[pa.Table, Any, Trial, TrialFacts], Timeline] | None = None
    tracks: Callable[[pa.Table, Any, Trial, TrialFacts], Iterator[Track]] = lambda *_: iter(())
    requests: Callable[[pa.Table], pa.Table] = lambda table: table

    def checked(self, owner: str) -> Measures:
        """The same, where ``values`` raises :class:`LostError`, which begins with the ``owner``, unless it
        returns numbers by names that the plan's MEASURES has: others would reach no table and no claim."""

        def values(table: pa.Table, plan: Any, trial: Trial, facts: TrialFacts) -> dict[str, float]:
            found = self.values(table, plan, trial, facts)
            _check_values(found, plan, owner)
            return found

        return replace(self, values=values)


def _check_values(values: object, plan: Any, owner: str) -> None:
    if not isinstance(values, Mapping):
        raise LostError(f"{owner}: values gave {type(values).__name__}: return a dict of measures")
    if unknown := [name for name in values if name not in plan.measures]:
        has = ", ".join(plan.measures) or "nothing"
        raise LostError(
            f"{owner}: values gave {unknown[0]!r}, and MEASURES of the plan has {has}: add it there"
        )
    for name, value in values.items():
        if not _is_number(value):
            raise LostError(f"{owner}: values gave {value!r} for {name!r}: give a number, or leave it out")


def _is_number(value: Any) -> bool:
    try:
        number = float(value)  # numpy's are as good, whatever they are called
    except (TypeError, ValueError):
        return False
    return math.isfinite(number) and not isinstance(value, str | bool)


def by_flow(table: pa.Table, least_us: dict[str, float]) -> Floats:
    """The value of each row's flow, shape (rows,)."""
    return np.array([least_us[flow] for flow in table["flow"].to_pylist()], dtype=np.float64)
