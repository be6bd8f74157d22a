"""The outcome of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from qjump_sim import _native
from qjump_sim.apps import AppResult
from qjump_sim.arrays import ReadOnly, to_json
from qjump_sim.network import LeafSpine
from qjump_sim.trace import Trace
from qjump_sim.watch import FlowCounts, Series


class ByKind(NamedTuple):
    """Packet counts by kind: data of flows, ACKs, pFabric's probes, datagrams, SYNs and SYN-ACKs.
    `sum(...)` is all of them.

    >>> sum(outcome.counters["sent"]) > outcome.counters["sent"].data >= int(outcome.packets.sum())
    True
    """

    data: int
    acks: int
    probes: int
    datagrams: int
    syns: int
    syn_acks: int


class Latency(NamedTuple):
    """Latencies of delivered packets in ps, from leaving the host's limiter to the receiving host:
    number of packets, sum and maximum.

    >>> us(6) < outcome.counters["latency"].mean < ms(1)
    True
    """

    packets: int
    sum: int
    max: int

    @property
    def mean(self) -> float:
        """In ps; NaN without packets."""
        return self.sum / self.packets if self.packets else float("nan")


class Counters(TypedDict):
    """Counters of a run. Packets: `sent` = `delivered` + `full` + `pushed_out` + `early` + `failed`
    + `limited` + `in_flight`, at every stop.

    >>> outcome.counters["in_flight"], outcome.counters["pauses"]
    (0, 0)
    """

    sent: ByKind
    """Sent by the hosts' transports; each retransmission counts."""
    delivered: ByKind
    """Delivered to the destination host."""
    full: ByKind
    """Dropped because a queue was full."""
    pushed_out: ByKind
    """Evicted from a queue by more urgent packets."""
    early: ByKind
    """Dropped early, by active queue management."""
    failed: ByKind
    """Lost on a failed link, before one, for lack of a route, or on a cable that loses packets."""
    limited: ByKind
    """Dropped by a limiter."""
    in_flight: int
    """In limiters, queues, links and hosts' jitter when the run stopped."""
    pauses: int
    """Pauses requested by switch ports."""
    hops: int
    """Packets that finished crossing a link."""
    events: int
    marked: int
    """Data packets delivered with a mark."""
    retransmitted: int
    """Data packets retransmitted."""
    timeouts: int
    """Timeouts, those of SYNs included."""
    latency: Latency
    """Latency of first transmissions of data."""
    latency_again: Latency
    """Latency of retransmissions."""


@dataclass(frozen=True)
class SourceResult:
    """The result of a source: datagrams delivered, their bytes, and sum and maximum of their delays
    in ps, from the limiter's release to delivery.

    >>> sources = [Source(0, 1, gap=us(10), bytes=1_500, count=5)]
    >>> run(Scenario(FIG9, "tcp", sources=sources)).sources[0]
    SourceResult(delivered=5, bytes=7500, delay_sum=39000000, delay_max=7800000)
    """

    delivered: int
    bytes: int
    delay_sum: int
    delay_max: int


@dataclass(frozen=True)
class Port:
    """Statistics of one direction of a cable and the queue before it. An end is `("host", 3)` or
    `("switch", 0)`: switches of racks before spines, a tree's switches in the order of their
    names.

    >>> busiest = max(outcome.ports, key=lambda port: port.longest)
    >>> outcome.ports[3].begin, outcome.ports[3].end
    (('host', 3), ('switch', 0))
    """

    begin: tuple[Literal["host", "switch"], int]
    """The node with the queue."""
    end: tuple[Literal["host", "switch"], int]
    """The node that the cable leads to."""
    longest: int
    """Most bytes accepted and not sent."""
    waiting: int
    """Bytes times ps of waiting until the run's end; divided by `Outcome.end`, the mean number of
    waiting bytes."""
    marked: int
    """Packets marked here."""
    early: int
    """Packets dropped early."""
    full: int
    """Packets dropped because the queue, or the switch's buffer for the incoming port, was full;
    and packets evicted for others."""
    paused: int
    """Time paused, in ps."""


@dataclass(frozen=True)
class Region:
    """Slowdowns of the flows of a region: completion time over the one in an empty network.

    `flows` that finished; `mean`; `p99`: the value at position ceil(0.99 (n - 1)) of the sorted ones, as the published script takes it. NaN
    without flows.

    >>> outcome.regions(FIG9).short.mean >= 1
    True
    """

    flows: int
    mean: float
    p99: float


@dataclass(frozen=True)
class Regions:
    """Figure 9's regions by bytes on the wire: `short` at most 10 kB, `medium` at most 10 MB,
    `long` more, `all`; and the flows that did not finish.

    >>> outcome.regions(FIG9).unfinished
    0
    """

    short: Region
    medium: Region
    long: Region
    all: Region
    unfinished: int


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(ReadOnly):
    """The outcome of a run: flows, counters, sources and applications.

    The arrays have one value a flow, in the order of start, source, destination and packets: int64, shape (n,), read-only. Outcomes can be
    pickled and copied. Two runs of one scenario have equal outcomes, with the same hash and JSON: how long the computer took is in no outcome
    (`Progress.elapsed` and `time.perf_counter` have it).

    >>> outcome.fct.size, bool(outcome.late.any())
    (100, False)
    """

    _ROWS = "flows"

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
    """When the run stopped, in ps: the time of its last event, or the requested one."""
    apps: tuple[AppResult, ...] = ()
    """Results of applications, in the scenario's order."""
    ports: tuple[Port, ...] = ()
    """Port statistics, if requested: hosts' own ports, those to hosts, both directions of every
    cable between switches."""
    level: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Level on which it ran: that of its size, its own, or the lowest if it was not admitted."""
    transport: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Transport number."""
    deadline: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Deadline, in ps; -1: none."""
    bytes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Bytes of its data packets on the wire, each once."""
    data_bytes: int = 0
    """Bytes of a full data packet."""
    ack_bytes: tuple[int, ...] = ()
    """Bytes of an ACK, by transport number."""
    series: Series | None = None
    """Samples of queues, windows and counters, if requested."""
    flows: FlowCounts | None = None
    """Counts of each flow's packets, if requested."""
    trace: Trace | None = None
    """Traced packets, if requested."""

    @property
    def late(self) -> NDArray[np.bool_]:
        """Which flows missed their deadline, shape (n,): those that finished after it, and those
        that had not finished by then. A flow that has not finished and whose deadline lies after
        `end` is not late."""
        ended = np.where(self.finished, self.finish > self.deadline, self.deadline <= self.end)
        return (self.deadline >= 0) & ended

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which flows finished, shape (n,)."""
        return self.finish >= 0

    @property
    def fct(self) -> NDArray[np.int64]:
        """Completion times of finished flows, in ps, shape (number finished,)."""
        return (self.finish - self.start)[self.finished]

    def to_json(self) -> str:
        """All fields as JSON; arrays are lists, and times are ps."""
        return "".join(to_json(self))

    def regions(self, fabric: LeafSpine) -> Regions:
        """Slowdowns in Figure 9's regions: completion times over those in an empty `fabric`, where
        all packets take one path at the slowest link's rate and each is acknowledged at once.
        Handshakes, delayed ACKs and jitter are not included; a short last packet that overtakes
        by another uplink may arrive some ns earlier. Raises ValueError for an invalid fabric,
        one without the outcome's hosts, and one with several uplinks slower than its edges,
        where the ideal time depends on the routing."""
        return _native.regions(self, fabric)
