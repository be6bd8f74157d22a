"""Applications of the Python package, where their times can be worked out by hand."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qjump_sim import FIG9, MS, US, DropTail, Scenario, Scheme, Source, run
from qjump_sim.apps import (
    AllToAll,
    App,
    AppResult,
    Barrier,
    BarrierResult,
    Bulk,
    BulkResult,
    Calc,
    Closed,
    Collective,
    CollectiveResult,
    Datagrams,
    DatagramsResult,
    Exchange,
    Exponential,
    Goal,
    MapReduce,
    MapReduceResult,
    Open,
    Ping,
    PingResult,
    Ptp,
    PtpResult,
    Requests,
    RequestsResult,
    RingAllReduce,
    Send,
    TreeAllReduce,
    fan_in,
)

BYTE, CABLE = 800, 2_700_000
# The digests that the simulator's tests/apps/contract.rs pins, of the same applications.
PINNED = Path(__file__).resolve().parents[2] / "tests" / "apps" / "contract.rs"


def one(app: App, scheme: Scheme | str = "tcp", stop: int | None = None, sources: tuple[Source, ...] = ()) -> AppResult:
    (result,) = run(Scenario(FIG9, scheme, sources=sources, apps=[app], stop=stop)).apps
    return result


def test_pings() -> None:
    result = one(Ping(3, 4, bytes=100, gap=50 * US, count=3, first=US, turnaround=7 * US))
    assert isinstance(result, PingResult)
    assert result.start.tolist() == [US, 51 * US, 101 * US]
    assert result.latency.tolist() == [4 * (100 * BYTE + CABLE) + 7 * US] * 3
    assert result.start.dtype == np.int64 and not result.latency.flags.writeable
    short = replace(Scheme.named("tcp", FIG9), queue=DropTail(packets=2))
    burst = one(Ping(3, 4, bytes=100, gap=0, count=5), short, stop=5 * US)
    assert isinstance(burst, PingResult)
    assert (burst.latency.tolist(), burst.ended.size, burst.lost) == ([-1] * 5, 0, 3)


def test_datagrams() -> None:
    result = one(Datagrams(3, 4, bytes=100, gap=50 * US, count=3, first=US))
    assert isinstance(result, DatagramsResult)
    assert (result.start.tolist(), result.latency.tolist(), result.lost) == ([US, 51 * US, 101 * US], [2 * (100 * BYTE + CABLE)] * 3, 0)
    short = replace(Scheme.named("tcp", FIG9), queue=DropTail(packets=2))
    burst = one(Datagrams(3, 4, bytes=100, gap=0, count=5), short)
    assert isinstance(burst, DatagramsResult)
    assert ((burst.latency < 0).tolist(), burst.lost) == ([False, False, True, True, True], 3)


def test_endless_flows() -> None:
    result = one(Bulk(0, 1, until=MS, interval=100 * US, window=1))
    assert isinstance(result, BulkResult)
    packets = [1 + (i * 100 * US - 7_800_000) // 13_264_000 for i in range(1, 11)]
    assert result.delivered.tolist() == [1500 * n for n in packets]
    assert result.bytes == 1500 * (1 + MS // 13_264_000)
    full = one(Bulk(0, 1, until=2 * MS, interval=120 * US, level=3), "dctcp")
    assert isinstance(full, BulkResult)
    assert full.rate[1:].tolist() == [1e10] * (2 * MS // (120 * US) - 2)


def test_requests() -> None:
    asked = Requests(0, [1], [Exchange(100, 1000)], Closed(1, think=2 * US), count=20, service=5 * US)
    latency = 2 * (1100 * BYTE + 2 * CABLE) + 5 * US
    result = one(asked)
    assert isinstance(result, RequestsResult)
    assert result.latency.tolist() == [latency] * 20
    assert np.diff(result.start).tolist() == [latency + 2 * US] * 19
    ended = one(replace(asked, count=1000, until=10 * latency))
    assert isinstance(ended, RequestsResult)
    assert (ended.latency.tolist(), ended.start.max() < 10 * latency) == ([latency] * 9, True)
    mixed = replace(asked, arrival=Open(20 * US, poisson=True), exchanges=[Exchange(100, 1000, 9), Exchange(1000, 100)], count=5000)
    drawn = one(replace(mixed, service=Exponential(50 * US)))
    assert isinstance(drawn, RequestsResult)
    # Five standard deviations.
    assert abs(drawn.latency.mean() - (latency - 5 * US + 50 * US)) < 5 * 50 * US / 5000**0.5
    assert abs((drawn.kind == 1).mean() - 0.1) < 5 * (0.09 / 5000) ** 0.5


def test_barriers() -> None:
    result = one(Barrier(range(8), bytes=1000, iterations=5, pause=20 * US))
    assert isinstance(result, BarrierResult)
    assert result.latency.tolist() == [8 * 1000 * BYTE + 2 * CABLE] * 5


def test_clocks() -> None:
    result = one(Ptp(0, [1, 2], bytes=90, interval=MS, count=3, first=10 * US))
    assert isinstance(result, PtpResult)
    assert (result.slave.tolist(), result.offset.tolist()) == ([0, 1] * 3, [0] * 6)
    assert (result.delay.tolist(), result.lost) == ([2 * (90 * BYTE + CABLE)] * 6, 0)
    burst = [Source(src, 0, gap=0, bytes=1500, count=10, first=10 * US) for src in (2, 3)]
    late = one(Ptp(0, [1], bytes=90, interval=MS, count=1, first=10 * US), sources=tuple(burst))
    assert isinstance(late, PtpResult)
    assert late.offset[0] < 0 and late.delay[0] == 2 * (90 * BYTE + CABLE) - late.offset[0]


def test_jobs() -> None:
    job = MapReduce([0, 1], maps=8, map_bytes=40 * 1500, reducers=1, map_time=MS, reduce_time=3 * MS, map_slots=4, parallel_copies=4)
    result = one(job)
    assert isinstance(result, MapReduceResult)
    shuffle = 4 * 40 * 1500 * BYTE + 1500 * BYTE + 2 * CABLE
    assert (result.runtime, result.shuffled.tolist()) == (MS + shuffle + 3 * MS, [MS + shuffle])
    assert (result.fetched.tolist(), result.local) == ([4 * 60_000, 0], 4 * 60_000)
    assert result.throughput == 120_000 * 8e12 / shuffle
    assert (result.fetch_packets.tolist(), set(result.fetch_src.tolist())) == ([40] * 4, {1})
    stopped = one(job, stop=MS + shuffle // 2)
    assert isinstance(stopped, MapReduceResult)
    assert (stopped.runtime, stopped.throughput, stopped.reduced.tolist()) == (None, None, [-1])


def test_a_fan_in_has_phases_of_its_own() -> None:
    sources = fan_in(range(9), 12, bytes=1500, epoch=30 * US, count=4, level=2)
    assert sources == fan_in(range(9), 12, bytes=1500, epoch=30 * US, count=4, level=2)
    assert sources != fan_in(range(9), 12, bytes=1500, epoch=30 * US, count=4, level=2, seed=2)
    assert {(source.dst, source.gap, source.level) for source in sources} == {(12, 30 * US, 2)}
    assert len({source.first for source in sources}) == 9 and max(source.first for source in sources) < 30 * US
    outcome = run(Scenario(FIG9, "tcp", sources=sources))
    assert [source.delivered for source in outcome.sources] == [4] * 9
    with pytest.raises(ValueError, match=r"^fan-in: its epoch must be above 0$"):
        fan_in([1], 2, bytes=1, epoch=0, count=1)
    with pytest.raises(ValueError, match=r"^epoch: -1 is not a whole number of ps from 0 to"):
        fan_in([0, 1], 2, 100, -1, 5)
    with pytest.raises(ValueError, match=r"^seed: -1 is not a whole number from 0 to"):
        fan_in([0, 1], 2, 100, US, 5, seed=-1)


def test_iterators_of_applications_and_sources_last() -> None:
    given = Scenario(FIG9, "tcp", sources=iter([Source(0, 1, US, 100, 1)]), apps=(Ping(3, 4, bytes=100, gap=US, count=n) for n in (1, 2)))  # type: ignore[arg-type]
    for _ in range(2):
        outcome = run(given)
        assert [len(app.start) for app in outcome.apps if isinstance(app, PingResult)] == [1, 2] and len(outcome.sources) == 1


def every() -> list[App]:
    """The same as in tests/apps/contract.rs."""
    return [
        Ping(3, 4, bytes=100, gap=20 * US, count=300, first=US, poisson=True),
        Bulk(2, 4, until=10 * MS, interval=MS, level=7),
        Requests(0, [4, 5], [Exchange(100, 1000)], Closed(8), count=1000, service=Exponential(20 * US), first=US),
        Barrier(range(6), bytes=1000, iterations=100, first=US),
        Ptp(0, [3, 17], bytes=90, interval=MS, count=10, first=10 * US),
        MapReduce(range(20), maps=25, map_bytes=2_000_000, reducers=20, map_time=Exponential(MS), reduce_time=3 * MS, parallel_copies=4, first=US),
    ]


def digest(result: AppResult) -> int:
    """FNV-1a as contract.rs has it."""
    match result:
        case PingResult():
            words = [*result.start.tolist(), *result.latency.tolist(), result.lost]
        case BulkResult():
            words = [*result.delivered.tolist(), result.bytes]
        case RequestsResult():
            words = [*result.start.tolist(), *result.latency.tolist(), 0, *result.kind.tolist()]
        case BarrierResult():
            words = [*result.start.tolist(), *result.latency.tolist(), 0]
        case PtpResult():
            words = np.stack([result.offset, result.delay], 1)[result.delay >= 0].ravel().tolist()
        case MapReduceResult():
            ends = (result.mapped, result.shuffled, result.reduced, result.fetched, result.fetch_finish)
            words = [word for column in ends for word in column.tolist()]
    total = 0xCBF29CE484222325
    for word in words:
        total = (total ^ word % (1 << 64)) * 0x100000001B3 % (1 << 64)
    return total


def test_results_are_those_that_are_pinned_in_rust() -> None:
    text = PINNED.read_text().split("const PINNED: [u64; 6] = [")[1].split("]")[0]
    outcome = run(Scenario(FIG9, "dctcp", apps=every()))
    assert [digest(result) for result in outcome.apps] == [int(word.replace("_", "")) for word in text.split(",") if word.strip()]
    again = pickle.loads(pickle.dumps(outcome))
    assert [digest(result) for result in again.apps] == [digest(result) for result in outcome.apps]


PING = Ping(3, 4, bytes=100, gap=US, count=1)
ASKED = Requests(0, [1], [Exchange(100, 1000)], Closed(1), count=20)


@pytest.mark.parametrize(
    ("app", "sentence"),
    [
        (replace(PING, dst=144), "ping from 3 to 144: there is no host 144 among 144"),
        (replace(PING, level=8), "ping from 3 to 4: its level 8 must be 0 to 7"),
        (replace(PING, bytes=99_999), "apps[0].bytes: 99999 is not a whole number from 0 to 65535"),
        (replace(PING, gap=-1), "apps[0].gap: -1 is not a whole number of ps from 0 to"),
        (replace(ASKED, servers=[0]), "requests from 0: host 0 is in it twice"),
        (replace(ASKED, servers=1), "apps[0].servers: 1 is not a sequence"),  # type: ignore[arg-type]
        (replace(ASKED, exchanges=[(1, 2)]), "apps[0].exchanges[0]: (1, 2) is not an Exchange"),  # type: ignore[list-item]
        (replace(ASKED, arrival=3), "apps[0].arrival: 3 is not an Open or Closed"),  # type: ignore[arg-type]
        (replace(ASKED, service="long"), "apps[0].service: 'long' is not a whole number of ps"),  # type: ignore[arg-type]
        (Barrier([1], bytes=1, iterations=1), "barrier of 1 and others: it has 1 hosts, and needs 2"),
        (Bulk(0, 1, until=0, interval=1), "bulk from 0 to 1: its end at 0 ps must be after its start at 0 ps"),
        (replace(PING, count=2**29), "ping from 3 to 4: 536870912 requests must be between 1 and 2^29 - 1"),
        (MapReduce([0], maps=0, map_bytes=1, reducers=1), "MapReduce: 0 maps must be between 1 and 2^29 - 1"),
        (MapReduce([0], 1, 1, 1, map_time=None), "apps[0].map_time: None is not a whole number of ps from 0 to"),  # type: ignore[arg-type]
        ("ping", "apps[0]: 'ping' is not a Ping, Datagrams, Bulk, Requests, Barrier, Ptp, MapReduce or Collective"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_wrong_applications_are_told_in_one_sentence(app: App, sentence: str) -> None:
    with pytest.raises(ValueError) as raised:
        one(app)
    assert str(raised.value).startswith(sentence)
    assert "\n" not in str(raised.value)


def test_collectives(tmp_path: Path) -> None:
    """Messages of one packet under one switch, each but the first behind an ACK of 40 bytes: Thakur et al.'s formulas exactly."""
    step, ack = 2 * (1000 * BYTE + CABLE), 40 * BYTE
    ring = one(Collective(range(8), RingAllReduce(8000), iterations=3, pause=US))
    assert isinstance(ring, CollectiveResult)
    assert ring.latency.tolist() == [14 * step + 13 * ack] * 3
    everybody = one(Collective(range(8), AllToAll(1000)))
    assert isinstance(everybody, CollectiveResult) and everybody.latency.tolist() == [7 * step + 6 * ack]
    tree = one(Collective(range(2), TreeAllReduce(1000)))
    assert isinstance(tree, CollectiveResult) and tree.latency.tolist() == [2 * step + ack]
    path = tmp_path / "a.goal"
    path.write_text("num_ranks 2\nrank 0 {\nl1: calc 100\nl2: send 1000b to 1\nl2 requires l1\n}\nrank 1 {\nl1: recv 1000b from 0\n}\n")
    goal = Goal.read(path)
    assert goal == Goal([Calc(0, 100_000, []), Send(0, 1, 1000, [0]), Calc(1, 0, [1])])
    read = one(Collective([3, 4], goal))
    assert isinstance(read, CollectiveResult) and read.latency.tolist() == [100_000 + step]
    path.write_text("num_ranks 2\nrank 0 {\nl1: send 8 to 1\n}\n")
    with pytest.raises(ValueError, match=rf"^{path}:3: a size must be a number of bytes, as 8b \(got 8\)$"):
        Goal.read(path)
    with pytest.raises(ValueError, match=r"^collective of 0 and others: operation 0: it waits for itself"):
        one(Collective([0, 1], Goal([Send(0, 1, 100, [0])])))
