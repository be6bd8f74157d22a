"""The Python package against the simulator's own numbers."""

from __future__ import annotations

import copy
import math
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import ArrayLike

from qjump_sim import (
    FIG9,
    MS,
    US,
    Aequitas,
    Bytes,
    Cable,
    CoDel,
    Congestion,
    Cubic,
    Dctcp,
    DropTail,
    DualPi2,
    Ecn,
    Failure,
    Flows,
    Graph,
    Homa,
    LeafSpine,
    LevelRed,
    Limit,
    Marking,
    Outcome,
    Packets,
    Pause,
    PerFlow,
    PerHost,
    Pfc,
    Pie,
    Poisson,
    Priority,
    Profile,
    Published,
    Quantiles,
    Queue,
    Red,
    Reno,
    RoundRobin,
    S,
    Scenario,
    Scheme,
    Sizes,
    Source,
    Swift,
    Threshold,
    Time,
    TimeAware,
    Transport,
    Tree,
    Watch,
    Wfq,
    ms,
    ns,
    run,
    us,
)
from qjump_sim.apps import App, Bulk, MapReduce, Ping, PingResult, Ptp

NAMES = ("tcp", "dctcp", "pfabric", "qjump-script", "qjump-paper")
# The digests that the simulator's tests/contract.rs pins: one seed, one result, in Rust and in Python.
CONTRACT = Path(__file__).resolve().parents[2] / "tests" / "contract.rs"


def one(packets: int, dst: int = 1, scheme: Scheme | str = "dctcp") -> Outcome:
    return run(Scenario(FIG9, scheme, Flows([0], [0], [dst], [packets])))


def digest(outcome: Outcome) -> int:
    """FNV-1a over completion times and counts, as contract.rs has it."""
    c = outcome.counters
    full, pushed_out = sum(c["full"]), sum(c["pushed_out"])
    words = [*outcome.finish.tolist(), c["hops"], c["events"], c["sent"].data, full, pushed_out, c["marked"], c["timeouts"]]
    total = 0xCBF29CE484222325
    for word in words:
        total = (total ^ word) * 0x100000001B3 % (1 << 64)
    return total


@pytest.mark.parametrize("scheme", NAMES)
@pytest.mark.parametrize(("packets", "dst", "time"), [(1, 1, 13_264_000), (1, 16, 14_680_000), (6, 1, 19_264_000), (6, 143, 20_680_000)])
def test_uncontended_flows_take_the_closed_form(scheme: str, packets: int, dst: int, time: int) -> None:
    assert one(packets, dst, scheme).fct.tolist() == [time]


@pytest.mark.parametrize("scheme", NAMES)
def test_outcomes_are_those_that_are_pinned_in_rust(scheme: str) -> None:
    pinned = next(line for line in CONTRACT.read_text().splitlines() if line.strip().startswith(f'("{scheme}", '))
    outcome = run(Scenario(FIG9, scheme, Poisson("search", 0.8, 200), seed=1))
    assert f"{digest(outcome):_}" == pinned.split()[1].rstrip("),")


RIVALS = ("swift", "bbr", "dcqcn", "dcqcn-pfc", "homa", "aequitas", "ndp", "roce", "irn", "eqds", "nscc", "hpcc", "powertcp", "bbr3")


@pytest.mark.parametrize("scheme", RIVALS)
def test_what_came_after_has_names_and_says_what_it_is(scheme: str) -> None:
    named = Scheme.named(scheme, FIG9)
    flows = Poisson("search", 0.5, 60)
    outcome, again = run(Scenario(FIG9, scheme, flows)), run(Scenario(FIG9, named, flows))
    assert outcome.finished.all() and outcome.finish.tolist() == again.finish.tolist()
    assert outcome.counters == again.counters, "all of a scheme is told"


def test_flows_have_levels_transports_deadlines_and_bytes_of_their_own() -> None:
    tcp = Scheme.named("tcp", FIG9)
    homa = replace(tcp.transport, congestion=Homa(6))
    scheme = replace(tcp, queue=Priority(225_000), others=[homa, replace(tcp.transport, congestion=Swift())])
    own = {"level": [-1, 3, 0], "transport": [1, 2, 0], "deadline": [19 * US, -1, 20 * US], "bytes": [-1, 7_600, -1]}
    outcome = run(Scenario(FIG9, scheme, Flows([0] * 3, [0, 2, 4], [1, 3, 5], [6, 6, 6], **own)))
    assert outcome.fct.tolist() == [19_264_000, 19_264_000 - 1_400 * 800, 19_264_000]
    assert (outcome.level.tolist(), outcome.transport.tolist()) == ([0, 3, 0], [1, 2, 0])
    assert outcome.deadline.tolist() == [19 * US, -1, 20 * US] and outcome.late.tolist() == [True, False, False]
    with pytest.raises(ValueError, match="flow at 0 ps: there is no transport 3 in the scheme"):
        run(Scenario(FIG9, scheme, Flows([0], [0], [1], [6], transport=[3])))
    with pytest.raises(ValueError, match=r"flows.level\[0\]: 8 is not a whole number from -1 to 7"):
        Flows([0], [0], [1], [6], level=[8])
    with pytest.raises(ValueError, match="flow at 0 ps: 9001 bytes are not 6 packets of at most 1500"):
        run(Scenario(FIG9, scheme, Flows([0], [0], [1], [6], bytes=[9_001])))
    with pytest.raises(ValueError, match=r"scheme\.others: it has 4 transports, more than 3"):
        run(Scenario(FIG9, replace(scheme, others=[homa] * 4), Flows([0], [0], [1], [6])))


def test_aequitas_sends_what_is_late_too_often_to_the_last_level() -> None:
    scheme = replace(Scheme.named("aequitas", FIG9), limiter=Aequitas([2 * US] + [None] * 7, floor=100_000))
    count = 500
    flows = Flows(100 * US * np.arange(count), [0] * count, [1] * count, [6] * count)
    level = run(Scenario(FIG9, scheme, flows)).level
    # Each takes 19.3 us, not 12: from 1 the probability falls by 0.06 to 0.1.
    assert level[0] == 0 and set(level.tolist()) == {0, 7} and 20 <= (level[100:] == 0).sum() <= 60


def test_one_seed_one_result() -> None:
    first, again, other = (run(Scenario(FIG9, "dctcp", Poisson("mining", 0.5, 300), seed=seed)) for seed in (7, 7, 8))
    for name in ("start", "finish", "src", "dst", "packets"):
        assert getattr(first, name).tobytes() == getattr(again, name).tobytes()
        assert getattr(first, name).tobytes() != getattr(other, name).tobytes()
    assert (first.counters, first.end) == (again.counters, again.end)


def test_arrays_and_counters_say_what_happened() -> None:
    flows = Flows(np.array([5 * US, 0]), np.array([3, 0], np.uint16), (4, 1), [2, 6])
    outcome = run(Scenario(FIG9, "tcp", flows))
    assert (outcome.start.tolist(), outcome.packets.tolist()) == ([0, 5 * US], [6, 2])
    assert (outcome.src.tolist(), outcome.dst.tolist()) == ([0, 3], [1, 4])
    assert outcome.fct.tolist() == [19_264_000, 14_464_000]
    assert outcome.start.dtype == np.int64 and not outcome.finish.flags.writeable
    c = outcome.counters
    assert c["sent"] == c["delivered"] == (8, 8, 0, 0, 0, 0)
    assert c["latency"] == (8, 8 * 7_800_000 + (15 + 1) * 1_200_000, 13_800_000)
    assert (c["latency"].mean, c["latency_again"].packets) == (10_200_000.0, 0) and np.isnan(c["latency_again"].mean)
    assert (c["hops"], c["in_flight"]) == (32, 0)
    assert outcome.end == 205 * US  # the second flow's timer, which nobody needs any more


def test_a_stop_leaves_flows_unfinished() -> None:
    outcome = run(Scenario(FIG9, "tcp", Flows([0, 0], [0, 2], [1, 3], [6, 600]), stop=20 * US))
    assert (outcome.finish.tolist(), outcome.finished.tolist()) == ([19_264_000, -1], [True, False])
    assert (outcome.fct.tolist(), outcome.end) == ([19_264_000], 20 * US)
    assert outcome.counters["in_flight"] > 0
    regions = outcome.regions(FIG9)
    assert (regions.all.flows, regions.unfinished) == (1, 1)


def test_a_flow_is_late_when_its_deadline_has_passed() -> None:
    deadlines = [19 * US, 20 * US, 100 * US, 100 * US + 1, -1]
    flows = Flows([0] * 5, [0, 2, 4, 6, 8], [1, 3, 5, 7, 9], [6, 6, 600, 600, 600], deadline=deadlines)
    outcome = run(Scenario(FIG9, "tcp", flows, stop=100 * US))
    assert outcome.finished.tolist() == [True, True, False, False, False]
    assert outcome.late.tolist() == [True, False, True, False, False]
    assert outcome.late.dtype == np.bool_


def test_regions_are_slowdowns_by_size() -> None:
    outcome = run(Scenario(FIG9, "dctcp", Flows([0, 10 * MS], [0, 5], [1, 6], [6, 7000])))
    regions = outcome.regions(FIG9)
    assert astuple(regions.short) == (1, 1.0, 1.0)
    ideal = 6999 * 1_200_000 + 13_264_000
    assert (regions.long.flows, regions.long.mean) == (1, int(outcome.fct[1]) / ideal)
    assert regions.medium.flows == 0 and np.isnan(regions.medium.mean)
    with pytest.raises(ValueError, match=r"^fabric.edge.rate: 'fast' is not a whole number"):
        outcome.regions(replace(FIG9, edge=Cable("fast", 0)))  # type: ignore[arg-type]


@pytest.mark.parametrize("routing", ["spray", "per-flow"])
@pytest.mark.parametrize("dst", [1, 16])
@pytest.mark.parametrize(
    ("data_bytes", "ack_bytes", "packets", "bytes", "spines", "uplink"),
    [
        (1500, 40, 9, -1, 4, FIG9.uplink),
        (9000, 40, 9, -1, 4, FIG9.uplink),
        (500, 150, 9, -1, 4, FIG9.uplink),
        (1500, 40, 6, 9000 - 1000, 4, FIG9.uplink),
        (1500, 40, 6, 7501, 1, FIG9.uplink),
        (1500, 1500, 6, 7501, 1, FIG9.uplink),
        (1500, 40, 12, -1, 1, Cable(10**9, US)),
        (1500, 1400, 6, 8000, 1, Cable(10**9, US)),
    ],
)
def test_a_flow_alone_takes_no_longer_than_it_must(
    data_bytes: int, ack_bytes: int, packets: int, bytes: int, spines: int, uplink: Cable, dst: int, routing: Literal["spray", "per-flow"]
) -> None:
    fabric = replace(FIG9, spines=spines, uplink=uplink)
    transport = replace(TCP.transport, data_bytes=data_bytes, ack_bytes=ack_bytes)
    scheme = replace(TCP, routing=routing, queue=DropTail(), transport=transport)
    outcome = run(Scenario(fabric, scheme, Flows([0], [0], [dst], [packets], bytes=[bytes])))
    assert outcome.bytes.tolist() == [bytes if bytes > 0 else packets * data_bytes]
    regions = outcome.regions(fabric)
    assert (regions.all.flows, regions.all.mean) == (1, 1.0)
    assert (regions.short.flows, regions.medium.flows) == ((1, 0) if outcome.bytes[0] <= 10_000 else (0, 1))


def test_each_transport_has_its_acks() -> None:
    scheme = replace(TCP, queue=DropTail(), others=[replace(TCP.transport, ack_bytes=1000)])
    outcome = run(Scenario(FIG9, scheme, Flows([0, 0], [0, 4], [1, 5], [6, 6], transport=[0, 1])))
    assert (outcome.data_bytes, outcome.ack_bytes, outcome.fct[0] < outcome.fct[1]) == (1500, (40, 1000), True)
    assert astuple(outcome.regions(FIG9).all) == (2, 1.0, 1.0)


def test_fabrics_of_which_nothing_is_known_are_told() -> None:
    outcome = one(6, 16)
    for fabric, sentence in (
        (replace(FIG9, racks=1), "fabric: there is no host 16 among 16"),
        (replace(FIG9, edge=Cable(0, 0)), "fabric: edge: a link's rate is 0 bit/s"),
        (replace(FIG9, hosts_per_rack=0), "fabric: a leaf-spine network needs a rack with a host"),
        (replace(FIG9, uplink=Cable(10**9, 0)), "fabric: with several uplinks slower than its edges"),
    ):
        with pytest.raises(ValueError) as raised:
            outcome.regions(fabric)
        assert str(raised.value).startswith(sentence)
    with pytest.raises(ValueError, match=r"^outcome: 8999 bytes are not 6 packets of at most 1000$"):
        replace(outcome, bytes=outcome.bytes - 1, data_bytes=1000).regions(FIG9)


@pytest.mark.parametrize("name", NAMES)
def test_a_named_scheme_is_made_of_its_parts(name: str) -> None:
    scheme = Scheme.named(name, FIG9)
    flows = Poisson("search", 0.8, 100)
    assert digest(run(Scenario(FIG9, scheme, flows))) == digest(run(Scenario(FIG9, name, flows)))


def test_schemes_have_the_published_parameters() -> None:
    assert Scheme.named("dctcp", FIG9).queue == Marking(225_000, 21_900)
    small = replace(FIG9, racks=2)
    limiter = Scheme.named("qjump-paper", small).limiter
    assert isinstance(limiter, PerHost)
    assert (limiter.epoch, list(limiter.budgets)[:2], list(limiter.budgets)[7]) == (2 * 32 * 9000 * 800, [9000, 12_960], None)


def test_parts_of_a_scheme_do_something() -> None:
    base = Scheme.named("qjump-script", FIG9)
    limited = replace(base, limiter=PerHost(1050 * US, [9000] * 8))
    assert one(13, scheme=limited).fct.tolist() == [2 * 1050 * US + 13_264_000]
    aligned = replace(base, limiter=PerHost(1050 * US, [9000] * 8, epochs="aligned"))
    assert run(Scenario(FIG9, aligned, Flows([50 * US], [0], [1], [13]))).fct.tolist() == [(2 * 1050 - 50) * US + 13_264_000]
    few = replace(base, limiter=PerHost(1050 * US, [9000] * 8, epochs="rolling", limit=2))
    # Six leave and two wait: four of the first window of twelve are lost, and the next one, which the first ACK lets go.
    assert one(13, scheme=few).counters["limited"].data == 4 + 1
    lost = one(7, scheme=replace(base, limiter=PerHost(1050 * US, [9000] * 8, "drop")))
    assert (lost.fct.tolist(), lost.counters["limited"].data) == ([19_264_000 + 1400 * US + 13_264_000], 3)
    dropped = one(7, scheme=replace(base, limiter=PerFlow(250 * US, [9000] * 8)))
    assert dropped.counters["limited"].data > 0
    free = one(7, scheme=replace(base, limiter=None))
    assert free.counters["limited"].data == 0
    short = replace(Scheme.named("tcp", FIG9), queue=DropTail(packets=4))
    assert one(12, scheme=short).counters["full"].data == 8


@pytest.mark.parametrize("congestion", [Reno(), Ecn(), Cubic(), Dctcp(), Dctcp(5)], ids=repr)
def test_transports_of_today_ask_for_a_connection(congestion: Congestion) -> None:
    transport = Transport.linux(congestion)
    assert (transport.congestion, transport.initial_window, transport.delayed_ack, transport.handshake) == (congestion, 10, 40 * MS, S)
    assert (transport.initial_rto, TCP.transport.initial_rto) == (S, None)
    assert Transport.hadoop(congestion) == replace(transport, ack_bytes=150, rto_above_rtt=False)
    setup = 4 * (32_000 + 2_700_000)
    outcome = one(6, scheme=replace(TCP, transport=transport))
    assert outcome.fct.tolist() == [setup + 19_264_000]
    assert outcome.counters["sent"] == (6, 3, 0, 0, 1, 1)
    each = replace(transport, delayed_ack=None, handshake=None)
    assert one(6, scheme=replace(TCP, transport=each)).counters["sent"] == (6, 6, 0, 0, 0, 0)


def test_losses_are_repaired_with_and_without_sack() -> None:
    def repaired(sack: bool) -> Outcome:
        transport = replace(Transport.linux(Cubic()), sack=sack)
        return one(3_000, scheme=replace(TCP, transport=transport, queue=DropTail(packets=60)))

    with_sack, without = repaired(True), repaired(False)
    for outcome in (with_sack, without):
        c = outcome.counters
        assert c["full"].data > 0 and c["retransmitted"] > 0
        assert c["latency"].packets + c["latency_again"].packets == c["delivered"].data
    assert with_sack.fct[0] < without.fct[0]


def test_queues_act_early() -> None:
    fabric = replace(FIG9, racks=1, spines=0)
    crowd = Flows([0] * 15, range(1, 16), [0] * 15, [200] * 15)
    dctcp, tcp, limit = Scheme.named("dctcp", fabric), Scheme.named("tcp", fabric), Packets(200)

    def counted(scheme: Scheme) -> tuple[int, int, int]:
        outcome = run(Scenario(fabric, scheme, crowd), ports=True)
        assert outcome.finished.all() and outcome.counters["pushed_out"].data == 0
        full, early, marked = (sum(getattr(port, of) for port in outcome.ports) for of in ("full", "early", "marked"))
        assert (full, early) == (sum(outcome.counters["full"]), sum(outcome.counters["early"]))
        assert marked >= outcome.counters["marked"]
        return full, early, marked

    full, early, marked = counted(replace(dctcp, queue=Threshold(None, Time(24 * US))))
    assert full == early == 0 and marked > 0
    ns2 = Red(limit, 12_500, 37_500)
    _, early, marked = counted(replace(tcp, queue=ns2))
    assert early > 0 == marked
    for queue in (replace(ns2, mark_p=None), Red.linux(limit, Packets(12), Packets(36), 1.0, weight=2), CoDel(limit, 20 * US, 200 * US)):
        assert counted(replace(dctcp, queue=queue))[1:] > (0, 0)
        assert counted(replace(tcp, queue=queue))[1] > 0 == counted(replace(tcp, queue=replace(queue, protection="nodrop")))[1]
    spared = replace(ns2, not_ect=Profile(100_000, 200_000, 0.1), mark_p=None)
    assert counted(replace(dctcp, queue=spared))[1] == 0 < counted(replace(dctcp, queue=spared))[2]


def test_pauses_lose_nothing() -> None:
    fabric = replace(FIG9, racks=1, spines=0)
    headroom = Pause.headroom(fabric.edge, 1500)
    assert headroom == 3 * 1500 + 64 + 2 * 2_700_000 // 800 - 2
    scheme = replace(Scheme.named("tcp", fabric), queue=DropTail(), pause=Pause(30_000, 15_000, 30_000 + headroom))
    outcome = run(Scenario(fabric, scheme, Flows([0] * 15, range(1, 16), [0] * 15, [200] * 15)), ports=True)
    assert outcome.counters["sent"] == outcome.counters["delivered"]
    assert outcome.counters["pauses"] > 0 == sum(outcome.counters["full"])
    assert [port.begin for port in outcome.ports if port.paused > 0] == [("host", i) for i in range(1, 16)]
    to_crowd = next(port for port in outcome.ports if port.end == ("host", 0))
    assert 15 * 15_000 < to_crowd.longest <= 15 * (30_000 + headroom)


@pytest.mark.parametrize("queue", [DropTail(), Priority(1 << 40), CoDel(None, S, S)], ids=repr)
def test_waiting_over_the_end_is_the_mean_queue(queue: Queue) -> None:
    network = LeafSpine(1, 11, 1, FIG9.edge, FIG9.edge)
    crowd = [Source(host, 10, gap=1_200_000, bytes=1500, count=10_000) for host in range(10)]
    outcome = run(Scenario(network, replace(TCP, queue=queue), sources=crowd, stop=MS), watch=Watch(ports=True, every_ps=US))
    assert outcome.series is not None
    place = outcome.series.ports.index((("switch", 0), ("host", 10)))
    # Ten links bring what one takes away: of 11.2 MB at the end half is the mean.
    mean, sampled = outcome.ports[place].waiting / outcome.end, outcome.series.queued[:, place].mean()
    assert abs(mean / sampled - 1) < 0.002 and 5.5e6 < mean < 5.7e6
    assert abs(outcome.ports[place].longest / outcome.series.queued[-1, place] - 1) < 0.002


def test_hosts_may_have_other_queues() -> None:
    fabric = replace(FIG9, racks=1, spines=0)
    scheme = replace(Scheme.named("tcp", fabric), host_queue=DropTail(packets=4))
    ports = run(Scenario(fabric, scheme, Flows([0], [0], [1], [12])), ports=True).ports
    assert ports[0].begin == ("host", 0) and ports[0].end == ("switch", 0)
    assert ports[0].full == sum(port.full for port in ports) == 8
    assert ports[0].longest == 6000 and not run(Scenario(fabric, scheme, SIX)).ports


def test_trees_number_hosts_by_name() -> None:
    fast, slow = Cable(10_000_000_000, 2_700_000), Cable(1_000_000_000, 0)
    tree = Tree(["s", "t"], ["b", "a", "c"], [("b", "s", fast), ("s", "a", fast), ("t", "s", slow), ("c", "t", slow)])
    number = tree.numbers()
    assert number == {"a": 0, "b": 1, "c": 2}
    outcome = run(Scenario(tree, "tcp", Flows([0, 1000 * US], [number["a"], number["a"]], [number["b"], number["c"]], [6, 1])))
    one_way = (1500 * 800 + 2_700_000) + 2 * 1500 * 8000
    assert outcome.fct.tolist() == [19_264_000, one_way + (40 * 800 + 2_700_000) + 2 * 40 * 8000]


def test_hosts_may_draw_how_long_they_take() -> None:
    always, drawn = Quantiles([(0, 7 * US), (100, 7 * US)]), Quantiles([(0, US), (12.5, 2 * US), (100.0, 9 * US)])
    cables = [(host, "s", FIG9.edge) for host in "ab"]
    ping = Ping(0, 1, bytes=100, gap=100 * US, count=2_000)
    idle = 4 * (100 * 800 + 2_700_000)
    for topology in (replace(FIG9, jitter=[(0, always), (1, drawn)]), Tree(["s"], ["b", "a"], cables, [("b", drawn), ("a", always)])):
        (pings,) = run(Scenario(topology, "tcp", apps=[ping])).apps
        assert isinstance(pings, PingResult)
        more = pings.latency - idle - 7 * US
        assert more.min() >= US and 8 * US < more.max() <= 9 * US
        # 2,000 draws: six standard deviations of a share are 0.045 at most.
        assert abs((more <= 2 * US).mean() - 0.125) < 0.045 and abs((more <= 5.5 * US).mean() - 0.5625) < 0.067


def test_published_arrivals_are_those_of_the_scripts() -> None:
    rack = replace(FIG9, racks=1, hosts_per_rack=12)
    outcome = run(Scenario(rack, "tcp", Published("search", 0.8, 18)))
    flows = list(zip(outcome.src.tolist(), outcome.dst.tolist(), outcome.packets.tolist(), strict=True))
    # As ns-2 draws them: who sends to host 2 does so within a millisecond.
    assert flows[11:] == [(11, 2, 6), (10, 2, 6), (9, 2, 6), (8, 2, 6), (11, 2, 6), (7, 2, 19286), (3, 7, 43)]
    assert outcome.start[16] == 2_581_750_000


def test_own_sizes_and_lists_are_read(tmp_path: Path) -> None:
    sizes = tmp_path / "sizes"
    sizes.write_text("# packets share\n3 0\n\n3 1.0\n")
    outcome = run(Scenario(FIG9, "tcp", Poisson(Sizes.read(sizes), 0.1, 20)))
    assert set(outcome.packets.tolist()) == {3}
    # As the published scripts' files are: the middle column says nothing.
    published = "6 0 0\n6 1 0.15\n13 2 0.2\n19 3 0.3\n33 4 0.4\n53 5 0.53\n133 6 0.6\n667 7 0.7\n1333 8 0.8\n3333 9 0.9\n6667 10 0.97\n20000 11 1\n"
    sizes.write_text(published)
    drawn = [run(Scenario(FIG9, "tcp", Poisson(of, 0.1, 100), stop=0)).packets.tolist() for of in (Sizes.read(sizes), "search")]
    assert drawn[0] == drawn[1]
    listed = tmp_path / "flows"
    listed.write_text("# seconds source destination packets\n0.000001000001 2 3 6\n0 0 1 1\n")
    flows = Flows.read(listed)
    assert (flows.start.tolist(), flows.dst.tolist()) == ([1_000_001, 0], [3, 1])
    for name, text, read in (("sizes", "3 0\n3 x\n", Sizes.read), ("flows", "0 0 1 6\n0 0 x 6\n", Flows.read)):
        wrong = tmp_path / f"wrong-{name}"
        wrong.write_text(text)
        with pytest.raises(ValueError, match=rf"^{wrong}: line 2: expected .* \(got .* ?x.*\)$"):
            read(wrong)


def test_sources_send_datagrams() -> None:
    sources = [Source(0, 1, gap=10 * US, bytes=1500, count=3), Source(2, 3, gap=US, bytes=300, count=50, poisson=True, exponential=True)]
    outcome = run(Scenario(FIG9, "tcp", Flows([], [], [], []), sources=sources))
    delay = 2 * (1500 * 800 + 2_700_000)
    assert astuple(outcome.sources[0]) == (3, 4500, 3 * delay, delay)
    assert outcome.sources[1].delivered == 50
    assert outcome.counters["sent"].datagrams == 53


def test_an_outcome_can_be_pickled() -> None:
    outcome = one(6)
    again = pickle.loads(pickle.dumps(outcome))
    assert again.fct.tolist() == [19_264_000] and again.regions(FIG9).short == outcome.regions(FIG9).short


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda of: pickle.loads(pickle.dumps(of))], ids=["copy", "deepcopy", "pickle"])
def test_copies_are_read_only_too(again: Callable[[object], object]) -> None:
    watch = Watch(ports=True, flows=True, every_ps=US, trace="all")
    apps: list[App] = [Ping(3, 4, bytes=100, gap=US, count=2), Bulk(2, 4, until=US, interval=US), Ptp(0, [3], 90, US, 1), MapReduce([0, 1], 1, 1500, 1)]
    outcome = again(run(Scenario(FIG9, "tcp", SIX, apps=apps), watch=watch))
    flows = again(SIX)
    assert isinstance(outcome, Outcome) and isinstance(flows, Flows)
    columns = 0
    for whole in (flows, outcome, outcome.flows, outcome.series, outcome.trace, *outcome.apps):
        for name, column in vars(whole).items():
            if isinstance(column, np.ndarray) and column.size:
                assert not column.flags.writeable, name
                columns += 1
    assert columns > 50
    assert run(Scenario(FIG9, "tcp", flows)).fct.tolist() == [19_264_000]


def test_flows_are_equal_by_value() -> None:
    again, other = Flows(np.zeros(1, np.uint8), (0,), [1], [6]), Flows([0], [0], [1], [6], level=[0])
    assert again == SIX != other and hash(again) == hash(SIX) and {SIX, again, other} == {SIX, other} and SIX != 6
    assert Scenario(FIG9, "tcp") == Scenario(FIG9, "tcp") != Scenario(FIG9, "tcp", SIX) == Scenario(FIG9, "tcp", again)
    assert hash(Scenario(FIG9, "tcp", SIX)) == hash(Scenario(FIG9, "tcp", again))
    assert repr(MANY) == "Flows(<8 flows>)"


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("src", np.array([2**40]), "flows.src[0]: 1099511627776 is not a whole number from 0 to 4294967295"),
        ("start", np.array([-1]), "flows.start[0]: -1 is not a whole number from 0 to 4611686018427387904"),
        ("bytes", np.array([-3]), "flows.bytes[0]: -3 is not a whole number from -1 to 4611686018427387904"),
        ("level", np.array([-2]), "flows.level[0]: -2 is not a whole number from -1 to 7"),
        ("transport", np.array([256]), "flows.transport[0]: 256 is not a whole number from 0 to 3"),
        ("dst", np.array([1], np.int32), "flows.dst: array([1], dtype=int32) is not an array of int64, shape (n,)"),
        ("dst", np.array([[1]]), "flows.dst: array([[1]]) is not an array of int64, shape (n,)"),
        ("dst", [1], "flows.dst: [1] is not an array of int64, shape (n,)"),
        ("packets", np.array([6, 6]), "flows: its columns are not of one length"),
        ("level", np.array([6, 6]), "flows: its columns are not of one length"),
    ],
)
def test_columns_that_somebody_has_changed_are_told(column: str, values: object, sentence: str) -> None:
    flows = Flows([0], [5], [1], [3])
    setattr(flows, column, values)
    with pytest.raises(ValueError) as raised:
        run(Scenario(FIG9, "tcp", flows))
    assert str(raised.value) == sentence


def test_an_outcome_that_somebody_has_changed_is_told() -> None:
    for column, wrong, sentence in (("packets", [0], r"packets\[0\]: 0 is not a whole number from 1 to"), ("dst", [1, 2], "its columns are not")):
        outcome = one(6)
        vars(outcome)[column] = np.array(wrong)
        with pytest.raises(ValueError, match=rf"^outcome[.:] ?{sentence}"):
            outcome.regions(FIG9)


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("start", [0.5], "flows.start: its values are float64, not whole numbers"),
        ("src", [[0]], r"flows.src: its shape is (1, 1), not (n,)"),
        ("dst", [-1], "flows.dst[0]: -1 is not a whole number from 0 to 4294967295"),
        ("packets", [6, 6], "flows.packets: it has 2 values, start has 1"),
        ("start", np.array([2**63], np.uint64), "flows.start[0]: 9223372036854775808 is not a whole number from 0 to 4611686018427387904"),
    ],
)
def test_wrong_columns_are_told(column: str, values: ArrayLike, sentence: str) -> None:
    columns: dict[str, ArrayLike] = {"start": [0], "src": [0], "dst": [1], "packets": [6]}
    with pytest.raises(ValueError) as raised:
        Flows(**{**columns, column: values})
    assert str(raised.value) == sentence


def test_all_hosts_of_a_fat_tree_send_at_full_rate() -> None:
    cable = Cable(10**10, US)
    tree = Graph.fat_tree(4, cable, cable)
    assert (len(tree.switches), len(tree.hosts), len(tree.cables)) == (20, 16, 48)
    assert tree.numbers() == {f"h{number:05}": number for number in range(16)}
    sources = [Source(host, (host + 8) % 16, 1_200_000, 1500, 1000) for host in range(16)]
    outcome = run(Scenario(tree, replace(TCP, queue=DropTail(packets=16)), sources=sources))
    assert [source.delivered for source in outcome.sources] == [1000] * 16
    assert outcome.end < 1000 * 1_200_000 + 6 * 2_200_000 + 16 * 1_200_000


def test_a_failing_cable_loses_what_it_carries() -> None:
    cable = Cable(10**10, US)
    joined = [("a", "s"), ("s", "m"), ("s", "n"), ("m", "t"), ("n", "t"), ("t", "b")]
    graph = Graph("smnt", "ab", [(*ends, cable) for ends in joined], failures=[Failure("s", "m", 100 * US, 200 * US)])
    outcome = run(Scenario(graph, "tcp", sources=[Source(0, 1, 2_400_000, 1500, 200)]))
    assert (outcome.counters["failed"].datagrams, outcome.sources[0].delivered, outcome.sources[0].delay_max) == (1, 199, 8_800_000)


@pytest.mark.parametrize(
    ("queue", "pause"),
    [
        (Wfq(150_000, [8, 4, 1, 1, 1, 1, 1, 1]), None),
        (LevelRed(1 << 30, 15_000, 60_000, 0.1, [8, 4, 1, 1, 1, 1, 1, 1]), Pfc(20_000, 10_000, 20_000 + Pause.headroom(FIG9.edge, 1500))),
        (TimeAware(150_000, [(50 * US, [0]), (150 * US, range(1, 8))], 10 * US), None),
        (Pie(150_000, 50 * US, 50 * US, 40, 400, 100 * US), None),
        (DualPi2(150_000, 50 * US, 50 * US, 40, 400, least=10 * US, range=10 * US), None),
        (Priority(1 << 40), Pfc(20_000, 10_000, 20_000 + Pause.headroom(FIG9.edge, 1500))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_queues_and_pauses_of_today_carry_flows(queue: Queue, pause: Pfc | None) -> None:
    scheme = replace(Scheme.named("dctcp", FIG9), queue=queue, pause=pause)
    outcome = run(Scenario(FIG9, scheme, Poisson("search", 0.6, 200)))
    assert (outcome.finish >= outcome.start).all()
    counters = outcome.counters
    dropped = [sum(counters[fate]) for fate in ("full", "pushed_out", "early", "failed", "limited")]
    assert sum(counters["sent"]) == sum(counters["delivered"]) + sum(dropped) + counters["in_flight"]
    assert not pause or (counters["pauses"] > 0 and sum(dropped) == 0)


TCP = Scheme.named("tcp", FIG9)
SIX = Flows([0], [0], [1], [6])
QUANTILES = Quantiles([(0, 0), (100, US)])


@pytest.mark.parametrize(
    ("scenario", "sentence"),
    [
        (Scenario(FIG9, "reno", SIX), "scheme: there is no scheme reno, only tcp, dctcp, pfabric, qjump-script, qjump-paper, swift, bbr, dcqcn, dcqcn-pfc, homa, aequitas, ndp, roce, irn, eqds, nscc, hpcc, powertcp, bbr3"),
        (Scenario(FIG9, "tcp", Flows([7], [0], [144], [6])), "flow at 7 ps: there is no host 144 among 144"),
        (Scenario(FIG9, "tcp", Flows([7], [0], [1], [0])), "flow at 7 ps: its size of 0 packets must be between 1 and 2^31"),
        (Scenario(FIG9, "tcp", Poisson("search", 1.5, 10)), "flows.load: 1.5 must be above 0 and at most 1"),
        (Scenario(FIG9, "tcp", Poisson("search", 1e-12, 3)), "flows.load: 0.000000000001 is so small that flows start after"),
        (Scenario(FIG9, "tcp", Published("search", 1e-12, 3)), "flows.load: 0.000000000001 is so small that flows start after"),
        (Scenario(FIG9, replace(TCP, transport=replace(TCP.transport, min_rto=us(300), max_rto=us(200))), SIX), "transport: the smallest timeout of 300 us must be above 0 and at most the largest, 200 us"),
        (None, "scenario: None is not a Scenario"),
        (Scenario(FIG9, "tcp", Poisson("web", 0.5, 10)), "flows.sizes: 'web' is not 'search', 'mining' or a Sizes"),  # type: ignore[arg-type]
        (Scenario(FIG9, "tcp", Poisson("search", 0.5, -1)), "flows.count: -1 is not a whole number from 0 to 4294967295"),
        (Scenario(FIG9, "tcp", Poisson(Sizes([(1, 0.0), (5, 0.9)]), 0.5, 10)), "flows.sizes: the distribution must go from share 0"),
        (Scenario(replace(FIG9, uplink=Cable(0, 0)), "tcp", SIX), "topology: uplink: a link's rate is 0 bit/s: it must be above 0"),
        (Scenario(replace(FIG9, edge=Cable(10e9, 0)), "tcp", SIX), "topology.edge.rate: 10000000000.0 is not a whole number from 0 to"),  # type: ignore[arg-type]
        (Scenario(replace(FIG9, edge=Cable(10**10, -1)), "tcp", SIX), "topology.edge.delay: -1 is not a whole number of ps from 0 to"),
        (Scenario(Tree(["s"], ["h"], [("h", "t", FIG9.edge)]), "tcp", SIX), "topology: cable h--t: there is no node t"),
        (Scenario(Tree(["s"], ["h"], [("h", "s")]), "tcp", SIX), "topology.cables[0]: ('h', 's') is not two names and a Cable"),  # type: ignore[list-item]
        (Scenario(replace(FIG9, jitter=[(144, QUANTILES)]), "tcp", SIX), "topology: jitter[0]: there is no host 144 among 144"),
        (Scenario(replace(FIG9, jitter=[(0, QUANTILES), (0, QUANTILES)]), "tcp", SIX), "topology: jitter[1]: host 0 has quantiles already"),
        (Scenario(replace(FIG9, jitter=[("h", QUANTILES)]), "tcp", SIX), "topology.jitter[0][0]: 'h' is not a whole number from 0 to"),  # type: ignore[list-item]
        (Scenario(replace(FIG9, jitter=[0]), "tcp", SIX), "topology.jitter[0]: 0 is not a sequence"),  # type: ignore[list-item]
        (Scenario(replace(FIG9, jitter=[(0,)]), "tcp", SIX), "topology.jitter[0]: (0,) is not a host and its Quantiles"),  # type: ignore[list-item]
        (Scenario(replace(FIG9, jitter=[(0, US)]), "tcp", SIX), "topology.jitter[0][1]: 1000000 is not a Quantiles"),  # type: ignore[list-item]
        (Scenario(Tree(["s"], ["h"], [("h", "s", FIG9.edge)], [("i", QUANTILES)]), "tcp", SIX), "topology: jitter[0]: there is no host i"),
        (Scenario(replace(FIG9, jitter=[(0, Quantiles([(0, 1), (100, -1)]))]), "tcp", SIX), "topology.jitter[0][1].points[1][1]: -1 is not a whole"),
        (Scenario(replace(FIG9, jitter=[(0, Quantiles([(0, 1), (100,)]))]), "tcp", SIX), "topology.jitter[0][1].points[1]: (100,) is not a percentage"),  # type: ignore[list-item]
        (Scenario(replace(FIG9, jitter=[(0, Quantiles([(0, 1), (99, 2)]))]), "tcp", SIX), "topology.jitter[0][1]: quantiles must go from 0 to 100 %"),
        (Scenario(replace(FIG9, jitter=[(0, Quantiles([(0, 2), (100, 1)]))]), "tcp", SIX), "topology.jitter[0][1]: quantiles must ascend"),
        (Scenario("fig9", "tcp", SIX), "topology: 'fig9' is not a LeafSpine, Tree or Graph"),  # type: ignore[arg-type]
        (Scenario(FIG9, replace(TCP, queue=DropTail(9000, 6)), SIX), "scheme.queue: a limit is in bytes or in packets, not in both"),
        (Scenario(FIG9, replace(TCP, queue=DropTail(-1)), SIX), "scheme.queue.bytes: -1 is not a whole number from 0 to 18446744073709551615"),
        (Scenario(FIG9, replace(TCP, queue=DropTail(9)), SIX), "queue: its limit of 9 bytes is less than a packet of 1500"),
        (Scenario(FIG9, replace(TCP, transport=Transport.linux(Dctcp(21))), SIX), "transport: DCTCP's g is below 2^-20, with which alpha stays 0"),
        (Scenario(FIG9, replace(TCP, transport=replace(TCP.transport, congestion=None)), SIX), "scheme.transport.congestion: None is not a Reno, Ecn"),  # type: ignore[arg-type]
        (Scenario(FIG9, replace(TCP, transport=replace(TCP.transport, delayed_ack=-1)), SIX), "scheme.transport.delayed_ack: -1 is not a whole"),
        (Scenario(FIG9, replace(TCP, queue=None), SIX), "scheme.queue: None is not a DropTail, Marking, Threshold, Red, CoDel, Priority, PFabric, RoundRobin, Wfq, LevelRed, TimeAware, Pie, DualPi2 or Trim"),  # type: ignore[arg-type]
        (Scenario(FIG9, replace(TCP, queue=RoundRobin(9000, 0)), SIX), "queue: the quantum must be above 0 bytes"),
        (Scenario(FIG9, replace(TCP, queue=Wfq(9000, [1] * 7)), SIX), "scheme.queue.weights: it has 7 values, not 8"),
        (Scenario(FIG9, replace(TCP, queue=Wfq(9000, [0] * 8)), SIX), "queue: level 0's weight of 0 must be between 1 and 1048576"),
        (Scenario(FIG9, replace(TCP, queue=LevelRed(9000, 9, 8, 0.1)), SIX), "queue: the thresholds 9 and 8 must increase"),
        (Scenario(FIG9, replace(TCP, queue=LevelRed(9000, 8, 9, 0.1, [1])), SIX), "scheme.queue.weights: it has 1 values, not 8"),
        (Scenario(FIG9, replace(TCP, queue=LevelRed(9000, 8, 9, 0.1, [0] * 8)), SIX), "queue: level 0's weight of 0 must be between 1 and 1048576"),
        (Scenario(FIG9, replace(TCP, queue=TimeAware(9000, [(US, [8])])), SIX), "scheme.queue.entries[0][1][0]: 8 is not a level from 0 to 7"),
        (Scenario(FIG9, replace(TCP, queue=TimeAware(9000, [(US, [0])])), SIX), "scheme.queue: the gate of level 1 never opens"),
        (Scenario(FIG9, replace(TCP, queue=TimeAware(9000, [US])), SIX), "scheme.queue.entries[0]: 1000000 is not a sequence"),  # type: ignore[list-item]
        (Scenario(FIG9, replace(TCP, queue=Pie(None, alpha=-1)), SIX), "scheme.queue.alpha: -1 is not between 0 and 4000000"),
        (Scenario(FIG9, replace(TCP, queue=DualPi2(9000, update=0)), SIX), "queue: updates every 0 ps are not 1 us to 1000 s apart"),
        (Scenario(FIG9, replace(TCP, pause=Pfc(9, 9, 9)), SIX), "queue: a pause of levels needs a queue that serves by level"),
        (Scenario(Graph(["s"], ["h"], [("h", "s", FIG9.edge)], failures=[Failure("h", "t", 1)]), "tcp", SIX), "topology: failure h--t: there is no such cable"),
        (Scenario(Graph(["s"], ["h"], [("h", "s", FIG9.edge)], failures=[0]), "tcp", SIX), "topology.failures[0]: 0 is not a Failure"),  # type: ignore[list-item]
        (Scenario(FIG9, replace(TCP, limiter=PerHost(US, [256] * 8)), SIX), "limiter: level 0 has 256 bytes an epoch, less than a packet of 1500"),
        (Scenario(FIG9, replace(TCP, host_queue=Threshold(9000, "K")), SIX), "scheme.host_queue.threshold: 'K' is not a whole number from 0 to"),  # type: ignore[arg-type]
        (Scenario(FIG9, replace(TCP, queue=Red(None, 6000, Packets(12))), SIX), "queue: min and max must both be in bytes, in packets or in time"),
        (Scenario(FIG9, replace(TCP, queue=Red(None, 6000, 9000, mark_p=1.5)), SIX), "scheme.queue.mark_p: 1.5 is not between 0 and 1"),
        (Scenario(FIG9, replace(TCP, queue=Red(None, 6000, 9000, reading="ns")), SIX), "scheme.queue.reading: 'ns' is not 'ns-2', 'linux' or 'each'"),  # type: ignore[arg-type]
        (Scenario(FIG9, replace(TCP, queue=Red(None, 6000, 9000, not_ect=Profile(6, Time(-1), 1))), SIX), "scheme.queue.not_ect.max: Time(-1) is not"),
        (Scenario(FIG9, replace(TCP, queue=Priority(us(5))), SIX), "scheme.queue.limit: us(5) is a time, where a number of bytes is expected"),
        (Scenario(FIG9, replace(TCP, queue=DropTail(packets=us(5))), SIX), "scheme.queue.packets: us(5) is a time, where a plain number is expected"),
        (Scenario(FIG9, replace(TCP, queue=CoDel(None, Bytes(9), US)), SIX), "scheme.queue.target: Bytes(count=9) is of bytes, where a time is expected"),  # type: ignore[arg-type]
        (Scenario(FIG9, replace(TCP, transport=replace(TCP.transport, min_rto=Packets(9))), SIX), "scheme.transport.min_rto: Packets(count=9) is of packets"),  # type: ignore[arg-type]
        (Scenario(FIG9, replace(TCP, transport=replace(TCP.transport, data_bytes=Packets(9))), SIX), "scheme.transport.data_bytes: Packets(count=9) is of packets, where a number of bytes is expected"),  # type: ignore[arg-type]
        (Scenario(FIG9, replace(TCP, queue=Priority(Packets(2**32 - 1))), SIX), "scheme.queue.limit: this many packets exceed 4294967295 bytes"),
        (Scenario(FIG9, replace(TCP, limiter=PerHost(US, [us(9)] * 8)), SIX), "scheme.limiter.budgets[0]: us(9) is a time"),
        (Scenario(FIG9, replace(TCP, queue=CoDel(None, US, US, "ack")), SIX), "scheme.queue.protection: 'ack' is not 'default', 'ece-bit', 'ack+syn'"),  # type: ignore[arg-type]
        (Scenario(FIG9, replace(TCP, pause=Pause(9, 9, 9)), SIX), "pause: xoff 9, xon 9 and buffer 9 bytes: xoff must be above xon and at most the buffer"),
        (Scenario(FIG9, replace(TCP, levels=[6, 13]), SIX), "scheme.levels: it has 2 values, not 7"),
        (Scenario(FIG9, replace(TCP, limiter=PerHost(US, [None, 1.5] * 4)), SIX), "scheme.limiter.budgets[1]: 1.5 is not a whole number"),  # type: ignore[list-item]
        (Scenario(FIG9, replace(TCP, limiter=PerHost(US, [None] * 8, "shape")), SIX), "scheme.limiter.mode: 'shape' is not 'delay' or 'drop'"),  # type: ignore[arg-type]
        (Scenario(FIG9, replace(TCP, limiter=PerHost(US, [None] * 8, epochs="late")), SIX), "scheme.limiter.epochs: 'late' is not 'first-packet', 'rolling'"),  # type: ignore[arg-type]
        (Scenario(FIG9, replace(TCP, limiter=PerHost(US, [None] * 8, limit=-1)), SIX), "scheme.limiter.limit: -1 is not a whole number from 0 to"),
        (Scenario(FIG9, replace(TCP, routing="ecmp"), SIX), "scheme.routing: 'ecmp' is not 'spray', 'per-flow', 'adaptive' or a Flowlets"),  # type: ignore[arg-type]
        (Scenario(FIG9, "tcp", SIX, sources=[Source(0, 1, US, 99, 1, level=9)]), "source from 0 to 1: its level 9 must be 0 to 7"),
        (Scenario(FIG9, "tcp", SIX, sources=[Source(0, 1, US, 99_999, 1)]), "sources[0].bytes: 99999 is not a whole number from 0 to 65535"),
        (Scenario(FIG9, "tcp", SIX, sources=[Source(0, 1, 999 * S, 99, 9_999)]), "source from 0 to 1: 9999 datagrams with 999000000000000 ps between two would"),
        (Scenario(FIG9, replace(TCP, limiter=PerFlow(1001 * S, [9000] * 8)), SIX), "scheme.limiter.epoch: 1001000000000000 is not a whole number of ps"),
        (Scenario(FIG9, "tcp", SIX, seed=-1), "seed: -1 is not a whole number from 0 to 18446744073709551615"),
        (Scenario(FIG9, "tcp", SIX, stop=2**63), "stop: 9223372036854775808 is not a whole number of ps from 0 to 4611686018427387904"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)  # fmt: skip
def test_wrong_scenarios_are_told_in_one_sentence(scenario: Scenario, sentence: str) -> None:
    with pytest.raises(ValueError) as raised:
        run(scenario)
    assert str(raised.value).startswith(sentence)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("k", "sentence"), [(-2, "k: -2 is not a whole number from 0 to"), (3, "k: a fat-tree of switches with 3 ports"), ("4", "k: '4' is not a whole")])
def test_fat_trees_that_cannot_be_are_told(k: int, sentence: str) -> None:
    with pytest.raises(ValueError) as raised:
        Graph.fat_tree(k, FIG9.edge, FIG9.edge)
    assert str(raised.value).startswith(sentence)


def test_numpys_texts_are_texts() -> None:
    tcp, spray, search = np.array(["tcp", "spray", "search"])
    whole = run(Scenario(FIG9, "tcp", Poisson("search", 0.5, 20)))
    for scheme in (tcp, replace(TCP, routing=spray)):
        assert digest(run(Scenario(FIG9, scheme, Poisson(search, 0.5, 20)))) == digest(whole)


def test_unknown_fields_are_told() -> None:
    with pytest.raises(TypeError, match="'racks_'"):
        LeafSpine(racks_=9)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'threshold'"):
        replace(TCP, threshold=1)  # type: ignore[call-arg]


def test_the_example_compares_four_schemes() -> None:
    example = Path(__file__).resolve().parents[1] / "examples" / "compare.py"
    done = subprocess.run([sys.executable, example, "60"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()[1:]
    assert [row[:14].strip() for row in rows] == ["tcp", "dctcp", "qjump-script", "dctcp, K = 65"]
    assert len({row[14:] for row in rows}) == 4


def test_the_readmes_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[1] / "README.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for example in examples:
        exec(example, names)
    assert len(examples) == 4 and (tmp_path / "h3.pcap").stat().st_size > 0


def test_units_say_what_they_are() -> None:
    assert (ns(5), us(2.7), ms(3)) == (5_000, 2_700_000, 3_000_000_000)
    sums = [us(5) + us(1), us(5) + 1_000, 1_000 + us(5), us(5) - ns(5), 2 * us(5), us(5) * 2]
    assert [repr(one) for one in sums] == ["us(6)", "ns(5001)", "ns(5001)", "ns(4995)", "us(10)", "us(10)"]
    assert all(isinstance(one, Time) for one in sums) and us(5).ps == 5 * US and repr(Time(7)) == "Time(7)"


@pytest.mark.parametrize(
    ("ours", "ps"),
    [
        (us(20) // 2, 10 * US),
        (us(20) / 3, 6_666_667),
        (us(20) * 0.5, 10 * US),
        (us(1) * 1.0000007, 1_000_001),
        (us(7) // 2.0, 3_500_000),
        (us(7) % us(2), US),
        (divmod(us(7), us(2))[1], US),
        (1 - us(1), 1 - US),
        (-us(1), -US),
        (abs(-us(1)), US),
        (round(us(20) / 3, -6), 7 * US),
        (math.ceil(us(20) / 3), 6_666_667),
        (np.int64(3) * us(1), 3 * US),
        (us(1) * np.uint8(3), 3 * US),
        (np.float32(0.5) * us(0.000_004), 2),
        (np.int64(5) - us(1), 5 - US),
        (us(1) / np.float64(4), US // 4),
        (sum([us(1), ns(1)]), 1_001_000),
    ],
    ids=repr,
)
def test_what_is_reckoned_of_times_is_a_time(ours: object, ps: int) -> None:
    assert isinstance(ours, Time) and ours.ps == ps


def test_a_time_over_a_time_is_a_number() -> None:
    for number, plain in ((us(20) // us(3), 6), (us(5) / us(2), 2.5), (divmod(us(7), us(2))[0], 3)):
        assert number == plain and not isinstance(number, Time)
    with pytest.raises(TypeError):
        us(2) * us(3)
    array = np.arange(3) * us(1)
    assert array.tolist() == (us(1) * np.arange(3)).tolist() == [0, US, 2 * US]
    assert (us(1) < array).tolist() == (array > us(1)).tolist() == [False, False, True]
    same, less, more = (np.int64(US + by) for by in (0, -1, 1))
    assert us(1) == same == us(1) and us(1) != less != us(1) and us(1) <= same < us(2) and less < us(1) < more and more > us(1) >= same
    assert {us(1): 0} == {US: 0} and pickle.loads(pickle.dumps(us(1))) is not US and isinstance(copy.deepcopy(us(1)), Time)


@pytest.mark.parametrize("number", [2_500_000, 2_500_000.0, np.int64(2_500_000), np.float64(2_500_000)], ids=repr)
def test_a_number_over_a_time_is_a_number(number: float) -> None:
    """Such as a completion time in us: results are numpy's."""
    whole, rest = divmod(number, us(1))
    assert [number / us(1), number // us(1), number % us(1), whole, rest] == [2.5, 2, 500_000, 2, 500_000]
    assert not any(isinstance(each, Time) for each in (number / us(1), number // us(1), whole))
    assert (np.array([1_000_000, 2_500_000]) / us(1)).tolist() == [1.0, 2.5]


def test_half_a_time_is_no_bytes() -> None:
    for half in (us(20) // 2, us(20) / 2, us(20) * 0.5, np.int64(2) * us(5)):
        queues = [replace(TCP, queue=DropTail(limit)) for limit in (half, us(10))]  # type: ignore[arg-type]
        halves = [run(Scenario(FIG9, scheme, MANY)) for scheme in queues]
        assert halves[0].counters == halves[1].counters and sum(halves[0].counters["full"]) > 0


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        (-us(10), "scheme.queue.bytes: us(-10) is not a whole number of ps from 0 to"),
        (0.5 * us(20), "scheme.queue.bytes: 10000000.0 is not a whole number from 0 to"),
        (Bytes(us(10)), "scheme.queue.bytes.count: us(10) is a time, where a plain number is expected"),
        (Packets(us(10)), "scheme.queue.bytes.count: us(10) is a time, where a plain number is expected"),
        (Packets(Bytes(9)), "scheme.queue.bytes.count: Bytes(count=9) is of bytes, where a plain number is expected"),  # type: ignore[arg-type]
    ],
)
def test_what_is_of_another_unit_is_told(limit: Limit, sentence: str) -> None:
    with pytest.raises(ValueError) as raised:
        run(Scenario(FIG9, replace(TCP, queue=DropTail(limit)), SIX))
    assert str(raised.value).startswith(sentence)


def test_bytes_and_packets_are_not_reckoned_with() -> None:
    for wrong in (lambda: Bytes(9) // 2, lambda: np.int64(3) * Packets(3), lambda: -Packets(3), lambda: Bytes(9) + 1, lambda: us(1) * Bytes(9)):  # type: ignore[operator]
        with pytest.raises(TypeError):
            wrong()


MANY = Flows([0] * 8, range(8), [9] * 8, [60] * 8)
"""Sixty packets of each of eight hosts to one: more than a queue of 40 packets holds."""


@pytest.mark.parametrize(
    ("plain", "with_units"),
    [
        ({"queue": DropTail(60_000)}, {"queue": DropTail(Bytes(60_000))}),
        ({"queue": DropTail(packets=40)}, {"queue": DropTail(Packets(40))}),
        ({"queue": DropTail(60_000)}, {"queue": DropTail(us(48))}),
        ({"queue": Priority(60_000)}, {"queue": Priority(Packets(40))}),
        ({"queue": Marking(60_000, 15_000)}, {"queue": Marking(Packets(40), Bytes(15_000))}),
        ({"queue": Wfq(60_000, [1] * 8)}, {"queue": Wfq(Packets(40), [1] * 8)}),
        ({"queue": CoDel(None, 20 * US, 200 * US)}, {"queue": CoDel(None, us(20), ms(0.2))}),
        ({"limiter": PerHost(100 * US, [9_000] * 8)}, {"limiter": PerHost(us(100), [Packets(6)] * 8)}),
        ({"pause": Pause(30_000, 15_000, 90_000)}, {"pause": Pause(Packets(20), Packets(10), Bytes(90_000))}),
    ],
)
def test_a_number_and_its_unit_are_the_same(plain: dict[str, object], with_units: dict[str, object]) -> None:
    took = [run(Scenario(FIG9, replace(TCP, **fields), MANY)) for fields in (plain, with_units)]  # type: ignore[arg-type]
    assert (took[0].fct == took[1].fct).all() and took[0].counters == took[1].counters
    assert (took[0].fct != run(Scenario(FIG9, TCP, MANY)).fct).any()
