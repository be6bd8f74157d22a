"""The contract of a program's ``measures`` module: numbers, checks and drawings computed from its
table.

It is imported where tables are read, never to plan.
"""

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
from qjump_mn.model import hooks
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.programs.base import Flow, Read
from qjump_mn.programs.facts import Check, TrialFacts, TrialTables
from qjump_mn.programs.tracks import Track

Floats = npt.NDArray[np.float64]


class Whole(NamedTuple):
    """A line that gets its own figure with all arms: its ``name`` in file names, title, axis and
    source."""

    name: str
    title: str
    axis: str
    source: str


class Timeline(NamedTuple):
    """A workload over time: ``x`` in s since the measurement began, ``y`` in ms, nan for a bin
    without a value, which ``gap`` describes.

    ``measure`` is shown with it, as ``words``, in which {} stands for the value.
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
    """Latencies in us, and the minimum that the wire takes for each; shapes (rows,)."""

    measured_us: Floats
    least_us: Floats


class Moved(NamedTuple):
    """What a program reports about its traffic from one host to another, one way; 0 and None if it
    does not report it.

    At least ``arrived_frames``, with ``arrived_bytes`` of link time (preamble to gap), have crossed
    the whole path. At most ``sent_frames``, with at most ``sent_payload`` bytes beyond the longest
    TCP headers (:data:`HEADERS_BYTES`), have crossed any link. At most ``last_frames`` have crossed
    the last link, and ``last_payload`` bytes in the same way, not counting what still waited on the
    path when the receiver was stopped.
    """

    flow: Flow
    level: int
    arrived_frames: int = 0
    arrived_bytes: int = 0
    sent_frames: int | None = None
    sent_payload: int | None = None
    last_frames: int | None = None
    last_payload: int | None = None

    @classmethod
    def datagrams(
        cls, flow: Flow, level: int, ip_bytes: int, arrived: int, sent: int | None
    ) -> Moved:
        """Packets of one length. The receiver waits for all that are on their way, unless ``sent``
        is None."""
        size = arrived * theory.wire_bytes(ip_bytes)
        last = None if sent is None else arrived
        return cls(flow, level, arrived, size, sent_frames=sent, last_frames=last)

    @classmethod
    def stream(cls, flow: Flow, level: int, payload: int, mtu_bytes: int) -> Moved:
        """TCP payload that arrived, in as few segments as possible; the number of retransmissions
        is not known."""
        frames = -(-payload // (mtu_bytes - theory.TCP_HEADERS_BYTES))
        size = payload + frames * theory.wire_bytes(theory.TCP_HEADERS_BYTES)
        return cls(flow, level, frames, size)


HEADERS_BYTES = theory.wire_bytes(theory.IP_HEADER_BYTES + theory.TCP_LONGEST_HEADER_BYTES)
"""The most link time, in bytes, that a frame takes beyond its payload; no acknowledgement is
longer."""


class Said(NamedTuple):
    """What one workload left in one trial: its ``plan``, its ``table``, the trial and its facts,
    and a function that reads other raw files."""

    plan: Any
    table: pa.Table
    trial: Trial
    facts: TrialFacts
    read: Read


Crossed = tuple[tuple[Flow, int], ...]
"""Ports, (from, to), each with the 802.1Q priority of the message there."""

Checks = Callable[[str, Sequence[TrialTables]], Iterator[Check]]


@dataclass(frozen=True)
class Measures:
    """Functions that compute results from a program's table.

    ``values`` gives the measures of one trial; a measure without a value (the median of no echo) is
    left out. ``checks`` says whether a run may be believed; it gets the run's clock ("virtual" or
    "real") and all trials, whatever programs ran in them. ``wire`` gives each request's latency,
    the longest that its printed text may stand for, and the minimum that the wire takes. ``moved``
    gives the traffic that it reports. ``crossed`` gives, by flow, the ports that a message and its
    answer cross, if each is one frame that is never sent again, so that its latency is the time
    that it waited. ``flow_goodput`` is in Mb/s for each flow, "h7>h10". ``timeline`` is what a
    figure draws of a trial, ``tracks`` everything that has a time. ``requests`` selects the rows
    that are requests.
    """

    values: Callable[[pa.Table, Any, Trial, TrialFacts], dict[str, float]]
    checks: Checks = lambda clock, data: iter(())
    wire: Callable[[pa.Table, Any, Trial], OnTheWire | None] | None = None
    moved: Callable[[Said], Iterator[Moved]] | None = None
    crossed: Callable[[Any, Trial], dict[str, Crossed]] | None = None
    flow_goodput: Callable[[pa.Table, TrialFacts], dict[str, float]] | None = None
    timeline: Callable[[pa.Table, Any, Trial, TrialFacts], Timeline] | None = None
    tracks: Callable[[pa.Table, Any, Trial, TrialFacts], Iterator[Track]] = lambda *_: iter(())
    requests: Callable[[pa.Table], pa.Table] = lambda table: table

    def checked(self, owner: str) -> Measures:
        """A copy whose ``values`` raises :class:`LostError`, beginning with ``owner``, unless it
        returns finite numbers under names in the plan's MEASURES; others would reach no table and
        no claim."""

        def values(table: pa.Table, plan: Any, trial: Trial, facts: TrialFacts) -> dict[str, float]:
            computed = self.values(table, plan, trial, facts)
            _check_values(computed, plan, owner)
            return computed

        return replace(self, values=values)


def _check_values(values: object, plan: Any, owner: str) -> None:
    if not isinstance(values, Mapping):
        raise LostError(
            f"{owner}: values returned {type(values).__name__}: return a dict of measures"
        )
    if unknown := [name for name in values if name not in hooks.measures(plan)]:
        known = ", ".join(hooks.measures(plan)) or "nothing"
        raise LostError(
            f"{owner}: values returned {unknown[0]!r}, but MEASURES of the plan has {known}: add "
            "it there"
        )
    for name, value in values.items():
        if not _is_number(value):
            raise LostError(
                f"{owner}: values returned {value!r} for {name!r}: return a number, or leave it out"
            )


def _is_number(value: Any) -> bool:
    try:
        number = float(value)  # also accepts numpy's numbers
    except (TypeError, ValueError):
        return False
    return math.isfinite(number) and not isinstance(value, str | bool)


def hundredth_us(network: Network) -> float:
    """A hundredth of the time of a full-size frame on the slowest link, in us.

    A latency differs from arithmetic by at most this if code takes no time (measured: 8 ns for an
    idle round trip over eight links of 10 Gb/s).
    """
    return theory.occupancy_ns(theory.frame_bytes(network.mtu_bytes), network.slowest_bps) / 1e5


def by_flow(table: pa.Table, least_us: dict[str, float]) -> Floats:
    """The value of each row's flow; shape (rows,)."""
    return np.array([least_us[flow] for flow in table["flow"].to_pylist()], dtype=np.float64)
