"""Applications: traffic that reacts to what the network delivers.

Each names the QJump level of its packets. Messages of TCP use the connections that a pair of hosts keeps open (`Transport.connections`), and open
others. Sizes are bytes on the wire, headers included; hosts are numbers; times are ps. What has not ended by the end of a run is -1 in an array.

    from qjump_sim import FIG9, MS, Scenario, run
    from qjump_sim.apps import Bulk, Ping

    outcome = run(Scenario(FIG9, "tcp", apps=[Ping(3, 4, bytes=100, gap=MS, count=50), Bulk(5, 4, until=50 * MS, interval=MS)]))
    pings, bulk = outcome.apps
    print(pings.ended.max(), "ps;", bulk.rate.mean(), "bit/s")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qjump_sim import _native
from qjump_sim.arrays import ReadOnly
from qjump_sim.traffic import Source
from qjump_sim.units import Bytes


@dataclass(frozen=True)
class Ping:
    """`count` echo requests from `src`, `gap` apart or, with `poisson`, exponential with that mean;
    `dst` answers each after `turnaround`.

    Requests do not wait for answers. A round trip begins when the request is handed over, to a limiter if there is one.

    >>> app = Ping(src=3, dst=4, bytes=100, gap=us(100), count=400)
    """

    src: int
    dst: int
    bytes: int | Bytes
    gap: int
    count: int
    first: int = 0
    level: int = 0
    poisson: bool = False
    turnaround: int = 0


@dataclass(frozen=True)
class Datagrams:
    """`count` datagrams from `src` to `dst` without answers, `gap` apart or, with `poisson`,
    exponential with that mean.

    Each takes from when it is handed over, to a limiter if there is one, to when it arrives. A `Source` costs less, and tells of all together.

    >>> app = Datagrams(src=3, dst=4, bytes=100, gap=us(100), count=400, poisson=True)
    """

    src: int
    dst: int
    bytes: int | Bytes
    gap: int
    count: int
    first: int = 0
    level: int = 0
    poisson: bool = False


@dataclass(frozen=True)
class Bulk:
    """An endless flow, as iperf's, from `start` to `until`. `window`: its largest, in packets;
    None: the transport's. Delivered bytes are sampled every `interval`.

    >>> app = Bulk(src=5, dst=4, until=ms(50), interval=ms(1))
    """

    src: int
    dst: int
    until: int
    interval: int
    start: int = 0
    level: int = 0
    window: int | None = None


@dataclass(frozen=True)
class Exponential:
    """An exponential time with this mean.

    >>> app = MapReduce(nodes=range(4), maps=8, map_bytes=10**6, reducers=2, map_time=Exponential(ms(1)))
    """

    mean: int


@dataclass(frozen=True)
class Exchange:
    """A kind of request, such as GET or SET; its share is its weight over the sum of all weights.

    >>> get, set_ = Exchange(request=100, response=1100, weight=9), Exchange(request=1100, response=100)
    """

    request: int | Bytes
    response: int | Bytes
    weight: int = 1


@dataclass(frozen=True)
class Open:
    """Open loop: requests `gap` apart or, with `poisson`, exponential with that mean, without
    waiting for others; each to a random server, over an idle connection or a new one.

    >>> app = Requests(0, [1, 2], [Exchange(100, 1100)], Open(gap=us(50), poisson=True), count=100)
    """

    gap: int
    poisson: bool = False


@dataclass(frozen=True)
class Closed:
    """Closed loop: connections, assigned to servers in turn, with one request at a time; the next
    follows a response after `think`.

    >>> app = Requests(0, [1, 2], [Exchange(100, 1100)], Closed(connections=4), count=100)
    """

    connections: int
    think: int = 0


@dataclass(frozen=True)
class Requests:
    """A client with `count` requests over TCP, which servers answer after `service`, all in
    parallel. From `until` on it makes no more requests.

    >>> app = Requests(0, [1, 2], [Exchange(100, 1100)], Closed(4), count=100, service=us(10))
    """

    client: int
    servers: Sequence[int]
    exchanges: Sequence[Exchange]
    arrival: Open | Closed
    count: int
    service: int | Exponential = 0
    first: int = 0
    level: int = 0
    until: int | None = None


@dataclass(frozen=True)
class Barrier:
    """In each iteration, hosts send a message to each other over TCP, and start the next one
    `pause` after they have a message from each.

    >>> app = Barrier(hosts=range(8), bytes=1_500, iterations=100)
    """

    hosts: Sequence[int]
    bytes: int | Bytes
    iterations: int
    pause: int = 0
    first: int = 0
    level: int = 0


@dataclass(frozen=True)
class Ptp:
    """A master and slaves with perfect clocks: IEEE 1588's delay request-response mechanism in two steps, `count` times for each slave.

    Messages are stamped when the host's limiter lets them go and when they arrive. Slave i begins i/n of an `interval` after `first`.

    >>> app = Ptp(master=0, slaves=[1, 2], bytes=90, interval=ms(1), count=10)
    """

    master: int
    slaves: Sequence[int]
    bytes: int | Bytes
    interval: int
    count: int
    first: int = 0
    level: int = 0


@dataclass(frozen=True)
class MapReduce:
    """Maps run in the nodes' slots; each reducer fetches its share of every finished map, in random
    order and `parallel_copies` at a time, and reduces once it has all.

    `map_bytes`: output of one map. Reducers are on the nodes in turn, and so are the first maps. A fetch is one flow; what asks for it is not
    simulated. What is on the reducer's node already takes no time.

    >>> app = MapReduce(nodes=range(4), maps=8, map_bytes=10**6, reducers=2)
    """

    nodes: Sequence[int]
    maps: int
    map_bytes: int | Bytes
    reducers: int
    map_time: int | Exponential = 0
    reduce_time: int | Exponential = 0
    map_slots: int = 1
    parallel_copies: int = 5
    first: int = 0
    level: int = 7


@dataclass(frozen=True)
class RingAllReduce:
    """All-reduce by reduce-scatter and all-gather in a ring: 2 (n - 1) steps, each of an n-th of `bytes`.

    >>> job = Collective([0, 1, 2, 3], RingAllReduce(1_000_000), iterations=10)
    """

    bytes: int | Bytes


@dataclass(frozen=True)
class TreeAllReduce:
    """All-reduce by a reduction to the first host and a broadcast, both along a binomial tree, of `bytes` each time.

    >>> job = Collective([0, 1, 2, 3], TreeAllReduce(1_000_000), iterations=10)
    """

    bytes: int | Bytes


@dataclass(frozen=True)
class AllToAll:
    """All-to-all by pairwise exchange: in step k a host sends `bytes` to the k-th after it, once it has the message of step k - 1.

    >>> job = Collective([0, 1, 2, 3], AllToAll(10_000), iterations=10)
    """

    bytes: int | Bytes


@dataclass(frozen=True)
class Send:
    """A message from `rank` to `to`. It starts when the operations `after`, by their places in the list, have ended.

    A message has ended for its sender when all of it is acknowledged, for its receiver when all of it has arrived.

    >>> there_and_back = Goal([Send(0, to=1, bytes=1500), Calc(1, us(5), after=[0]), Send(1, to=0, bytes=1500, after=[1])])
    """

    rank: int
    to: int
    bytes: int | Bytes
    after: Sequence[int] = ()


@dataclass(frozen=True)
class Calc:
    """A computing time of `rank`, after operations as for `Send`. Those of one `cpu` of a rank take place one after another.

    >>> compute_then_send = Goal([Calc(0, us(50)), Send(0, to=1, bytes=1500, after=[0])])
    """

    rank: int
    time: int
    after: Sequence[int] = ()
    cpu: int = 0


@dataclass(frozen=True)
class Goal:
    """Any operations, each of which waits for operations of its own rank and for messages to it.

    >>> job = Collective([0, 1], Goal([Send(0, to=1, bytes=1500), Send(1, to=0, bytes=1500)]))
    """

    operations: Sequence[Send | Calc]

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Goal:
        """The operations of a text file in GOAL, as LogGOPSim and ATLAHS read it; a receive is a `Calc` of 0. Sizes are bytes on the wire.

        Raises OSError, and ValueError with file and line for what is not GOAL.
        """
        return cls.parse(str(path), Path(path).read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, place: str, text: str) -> Goal:
        """The operations of a text in GOAL, which errors call `place`.

        Raises ValueError with place and line for what is not GOAL.
        """
        operations: list[Send | Calc] = []
        for rank, to, amount, cpu, after in _native.read_goal(place, text):
            operations.append(Calc(rank, amount, after, cpu) if to is None else Send(rank, to, amount, after))
        return cls(operations)


@dataclass(frozen=True)
class Collective:
    """Hosts, which are the ranks of a `pattern` in this order, carry it out over TCP, `iterations` times: the next one `pause` after the last operation
    has ended. Several are competing jobs. From `until` on no iteration starts.

    >>> outcome = run(Scenario(FIG9, "tcp", apps=[Collective([0, 1, 2], RingAllReduce(9_000), iterations=2)]))
    >>> len(outcome.apps[0].latency)
    2
    """

    hosts: Sequence[int]
    pattern: RingAllReduce | TreeAllReduce | AllToAll | Goal
    iterations: int = 1
    pause: int = 0
    first: int = 0
    level: int = 7
    until: int | None = None


App = Ping | Datagrams | Bulk | Requests | Barrier | Ptp | MapReduce | Collective


def fan_in(senders: Sequence[int], dst: int, bytes: int | Bytes, epoch: int, count: int, level: int = 0, seed: int = 1) -> tuple[Source, ...]:
    """Sources with which each sender sends `count` datagrams to `dst`, one an `epoch`, each from a
    random phase of the first epoch on.

    Raises ValueError for an epoch of 0 or above 1,000 s, and for a seed that is none.

    >>> len(fan_in(range(1, 5), dst=0, bytes=1_500, epoch=us(100), count=10))
    4
    """
    phases = _native.phases(len(senders), epoch, seed)
    return tuple(Source(src, dst, epoch, bytes, count, first, level) for src, first in zip(senders, phases, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class Latencies(ReadOnly):
    """Latencies in the order of their start: int64, shape (n,), read-only.

    >>> pings = run(Scenario(FIG9, "tcp", apps=[Ping(3, 4, bytes=100, gap=ms(1), count=2)])).apps[0]
    >>> pings.ended.tolist()
    [11120000, 11120000]
    """

    start: NDArray[np.int64]
    """When each began."""
    latency: NDArray[np.int64]
    """How long it took; -1: it has not ended."""

    @property
    def ended(self) -> NDArray[np.int64]:
        """The times of those that ended."""
        return self.latency[self.latency >= 0]


@dataclass(frozen=True, eq=False, repr=False)
class PingResult(Latencies):
    """Round trips. `lost`: unfinished ones of which a packet was dropped; the others were under
    way.

    >>> pings = run(Scenario(FIG9, "tcp", apps=[Ping(3, 4, bytes=100, gap=ms(1), count=2)])).apps[0]
    >>> pings
    PingResult(<2 values>, lost=0)
    """

    lost: int


@dataclass(frozen=True, eq=False, repr=False)
class DatagramsResult(Latencies):
    """One-way latencies. `lost`: datagrams that were dropped; other unfinished ones were under way.

    >>> sent = run(Scenario(FIG9, "tcp", apps=[Datagrams(3, 4, bytes=100, gap=ms(1), count=2)])).apps[0]
    >>> sent.latency.tolist(), sent.lost
    ([5560000, 5560000], 0)
    """

    lost: int


@dataclass(frozen=True, eq=False, repr=False)
class RequestsResult(Latencies):
    """Latencies from handing over a request to having all of its response.

    >>> app = Requests(0, [1], [Exchange(100, 1100)], Closed(1), count=3)
    >>> run(Scenario(FIG9, "tcp", apps=[app])).apps[0].kind.tolist()
    [0, 0, 0]
    """

    kind: NDArray[np.int64]
    """The exchange's index in the list."""


@dataclass(frozen=True, eq=False, repr=False)
class BarrierResult(Latencies):
    """Durations from when the first host began an iteration to when the last one had all messages.

    >>> app = Barrier(hosts=[0, 1, 2], bytes=1_500, iterations=4)
    >>> run(Scenario(FIG9, "tcp", apps=[app])).apps[0].ended.size
    4
    """


@dataclass(frozen=True, eq=False, repr=False)
class BulkResult(ReadOnly):
    """Delivered bytes on the wire, of packets that arrived in order.

    >>> bulk = run(Scenario(FIG9, "tcp", apps=[Bulk(5, 4, until=ms(3), interval=ms(1))])).apps[0]
    >>> bulk.rate.size, bulk.bytes >= int(bulk.delivered[-1])
    (2, True)
    """

    interval: int
    delivered: NDArray[np.int64]
    """Bytes by the end of each interval."""
    bytes: int
    """Bytes in total."""

    @property
    def rate(self) -> NDArray[np.float64]:
        """In each interval but the first, in bit/s, shape (number of intervals - 1,)."""
        return np.diff(self.delivered) * 8e12 / self.interval


@dataclass(frozen=True, eq=False, repr=False)
class PtpResult(ReadOnly):
    """What slaves computed, one value an exchange in the order of their Syncs: int64, shape (n,),
    read-only.

    >>> app = Ptp(master=0, slaves=[1], bytes=90, interval=ms(1), count=2)
    >>> run(Scenario(FIG9, "tcp", apps=[app])).apps[0].offset.tolist()
    [0, 0]
    """

    start: NDArray[np.int64]
    slave: NDArray[np.int64]
    """Its index in the list."""
    offset: NDArray[np.int64]
    """From the master, ((t2 - t1) - (t4 - t3)) / 2; 0 where `delay` is -1."""
    delay: NDArray[np.int64]
    """The mean of both ways; -1: the exchange was not completed."""
    lost: int
    """Exchanges of which a message was dropped."""


@dataclass(frozen=True, eq=False, repr=False)
class MapReduceResult(ReadOnly):
    """The result of a job: int64, read-only; -1: it has not happened.

    >>> app = MapReduce(nodes=range(4), maps=8, map_bytes=10**6, reducers=2)
    >>> run(Scenario(FIG9, "tcp", apps=[app])).apps[0].local > 0
    True
    """

    first: int
    """When the first maps began."""
    mapped: NDArray[np.int64]
    """When each map ended."""
    shuffled: NDArray[np.int64]
    """When each reducer had all its input."""
    reduced: NDArray[np.int64]
    """When each reducer ended."""
    fetched: NDArray[np.int64]
    """Bytes that each node fetched over the network."""
    local: int
    """Bytes that were on the reducer's node already."""
    fetch_start: NDArray[np.int64]
    """Fetches over the network are in the order of their start."""
    fetch_finish: NDArray[np.int64]
    """When the sender got the last ACK."""
    fetch_src: NDArray[np.int64]
    fetch_dst: NDArray[np.int64]
    fetch_packets: NDArray[np.int64]

    @property
    def runtime(self) -> int | None:
        """From the first map's start to the last reducer's end; None: the job has not ended."""
        return None if (self.reduced < 0).any() else int(self.reduced.max()) - self.first

    @property
    def throughput(self) -> float | None:
        """Mean bit/s of a node from the first fetch's start to when the last reducer had all its
        input; None: it has not happened, or nothing was fetched."""
        if (self.shuffled < 0).any() or not self.fetch_start.size:
            return None
        return float(self.fetched.mean()) * 8e12 / (int(self.shuffled.max()) - int(self.fetch_start[0]))


@dataclass(frozen=True, eq=False)
class CollectiveResult(Latencies):
    """Durations of the iterations, from their start to the end of their last operation.

    >>> (result,) = run(Scenario(FIG9, "tcp", apps=[Collective([0, 1], AllToAll(1500))])).apps
    >>> int((result.latency >= 0).sum())
    1
    """


AppResult = PingResult | DatagramsResult | BulkResult | RequestsResult | BarrierResult | PtpResult | MapReduceResult | CollectiveResult


def result(app: App, columns: Sequence[bytes], numbers: Sequence[int]) -> AppResult:
    """The result of an application, from the simulator's columns."""
    arrays = [np.frombuffer(column, np.int64) for column in columns]
    match app:
        case Ping():
            start, latency = arrays
            return PingResult(start, latency, numbers[0])
        case Datagrams():
            start, latency = arrays
            return DatagramsResult(start, latency, numbers[0])
        case Bulk():
            return BulkResult(app.interval, arrays[0], numbers[0])
        case Requests():
            return RequestsResult(*arrays)
        case Barrier():
            return BarrierResult(*arrays)
        case Ptp():
            start, slave, offset, delay = arrays
            return PtpResult(start, slave, offset, delay, numbers[0])
        case MapReduce():
            mapped, shuffled, reduced, fetched, *fetches = arrays
            return MapReduceResult(app.first, mapped, shuffled, reduced, fetched, numbers[0], *fetches)
        case Collective():
            return CollectiveResult(*arrays)
