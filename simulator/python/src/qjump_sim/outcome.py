"""What a run yields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from qjump_sim import _native
from qjump_sim.apps import AppResult
from qjump_sim.arrays import ReadOnly
from qjump_sim.network import LeafSpine
from qjump_sim.trace import Trace
from qjump_sim.watch import FlowCounts, Series


class ByKind(NamedTuple):
    """Packets by what they are: data of flows, ACKs, pFabric's probes, datagrams of sources, requests for connections and their answers. `sum(...)`
    of it is all of them."""

    data: int
    acks: int
    probes: int
    datagrams: int
    syns: int
    syn_acks: int


class Latency(NamedTuple):
    """Times that delivered packets took, in ps, from leaving the host's limiter to the receiving host: how many packets, sum and largest."""

    packets: int
    sum: int
    max: int

    @property
    def mean(self) -> float:
        """In ps; NaN without packets."""
        return self.sum / self.packets if self.packets else float("nan")


class Counters(TypedDict):
    """What was counted. Packets: `sent` = `delivered` + `full` + `pushed_out` + `early` + `failed` + `limited` + `in_flight`, at every stop."""

    sent: ByKind
    """Handed over by the hosts' transports, every retransmission anew."""
    delivered: ByKind
    """Arrived at the host they were for."""
    full: ByKind
    """Dropped because a queue was full."""
    pushed_out: ByKind
    """Pushed out of a queue by what mattered more."""
    early: ByKind
    """Dropped early, by active queue management."""
    failed: ByKind
    """Lost on a link that failed, before one, or because no other led to the host it was for."""
    limited: ByKind
    """Dropped by a limiter."""
    in_flight: int
    """In limiters, queues, on links and in hosts that take them in when the run stopped."""
    pauses: int
    """How often a switch's port asked the other end of its cable to pause."""
    hops: int
    """Packets that finished crossing a link."""
    events: int
    marked: int
    """Data packets delivered with a mark."""
    retransmitted: int
    """Data packets sent again."""
    timeouts: int
    """Expired retransmission timers, those of SYNs included."""
    latency: Latency
    """Of data sent for the first time."""
    latency_again: Latency
    """Of data sent again."""


@dataclass(frozen=True)
class SourceResult:
    """One source's datagrams: how many were delivered, their bytes, sum and largest of their delays in ps from the limiter's release to delivery."""

    delivered: int
    bytes: int
    delay_sum: int
    delay_max: int


@dataclass(frozen=True)
class Port:
    """One direction of a cable, with the queue before it. An end is `("host", 3)` or `("switch", 0)`: racks' switches before spines, a tree's
    switches in the order of their names."""

    begin: tuple[Literal["host", "switch"], int]
    """Whose queue it is."""
    end: tuple[Literal["host", "switch"], int]
    """Where the cable leads."""
    longest: int
    """Most bytes that had been taken and not been sent."""
    waiting: int
    """Bytes times ps of waiting until the run's end, without being sent: over `Outcome.end`, the mean number of bytes that wait."""
    marked: int
    """Packets marked here."""
    early: int
    """Packets dropped early."""
    full: int
    """Packets dropped because the queue, or what the switch holds of the port they came by, was full; also those that it gave up for others."""
    paused: int
    """For how long it was paused, in ps."""


@dataclass(frozen=True)
class Region:
    """Completion times of the flows of a size, each over the one in an empty network.

    `flows` that finished; `mean`; `p99`: the value at position ceil(0.99 (n - 1)) of the sorted ones, as the published script takes it. NaN
    without flows.
    """

    flows: int
    mean: float
    p99: float


@dataclass(frozen=True)
class Regions:
    """Figure 9's sizes, by bytes on the wire: `short` at most 10 kB, `medium` at most 10 MB, `long` more; `all`; flows that did not finish."""

    short: Region
    medium: Region
    long: Region
    all: Region
    unfinished: int


@dataclass(frozen=True, eq=False)
class Outcome(ReadOnly):
    """Flows, counters, sources and applications.

    The arrays have one value a flow, in the order of start, source, destination and packets: int64, shape (n,), read-only. Outcomes can be
    pickled and copied.
    """

    start: NDArray[np.int64]
    """When its first byte was handed over, in ps."""
    finish: NDArray[np.int64]
    """When the sender got the last ACK, in ps; -1: the run stopped before."""
    src: NDArray[np.int64]
    """Number of the sending host."""
    dst: NDArray[np.int64]
    """Number of the receiving host."""
    packets: NDArray[np.int64]
    """Data packets."""
    counters: Counters
    sources: tuple[SourceResult, ...]
    """In the order of source, destination, level, first, gap, bytes and count; periodic before Poisson, fixed before exponential."""
    end: int
    """When the run stopped, in ps: the time of its last event, or the one asked for."""
    apps: tuple[AppResult, ...] = ()
    """In the order of the scenario's."""
    ports: tuple[Port, ...] = ()
    """If they were asked for: those of hosts, those to hosts, both directions of every cable between switches."""
    level: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """On which it ran: that of its size, its own, or the lowest if it was not admitted."""
    transport: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Number of its transport."""
    deadline: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """When it should have ended, in ps; -1: there is no such time."""
    bytes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of its data packets on the wire, each once."""
    data_bytes: int = 0
    """Of a full data packet."""
    ack_bytes: tuple[int, ...] = ()
    """Of an ACK, by the number of the flow's transport."""
    series: Series | None = None
    """Samples of queues, windows and counters, if they were asked for."""
    flows: FlowCounts | None = None
    """What became of each flow's packets, if that was asked for."""
    trace: Trace | None = None
    """Packets, if they were asked for."""

    @property
    def late(self) -> NDArray[np.bool_]:
        """Which flows have missed their deadline, shape (n,): those that finished after it, and those that had not finished by `end` though it was then,
        or before. Of a flow whose deadline lies after `end` nobody knows: it is not late."""
        ended = np.where(self.finished, self.finish > self.deadline, self.deadline <= self.end)
        return (self.deadline >= 0) & ended

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which flows finished, shape (n,)."""
        return self.finish >= 0

    @property
    def fct(self) -> NDArray[np.int64]:
        """Completion times of those, in ps, shape (number finished,)."""
        return (self.finish - self.start)[self.finished]

    def regions(self, fabric: LeafSpine) -> Regions:
        """Figure 9's statistics: completion times over those in an empty `fabric`, by size of the flow: of all its packets on one path, as fast as
        the slowest link lets them, each acknowledged at once. Connections' setup, delayed ACKs and jitter are no part of those; a short last packet that
        overtakes by another uplink may come some ns before. Raises ValueError for a fabric that cannot be, or has not the outcome's hosts, and for
        one with several uplinks that are slower than its edges: what is best there depends on the routing."""
        return _native.regions(self, fabric)
