"""Series, counts of flows, traces and progress from Python: the core's own tests compare them with each other (tests/instruments.rs)."""

from __future__ import annotations

import io
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qjump_sim import (
    FIG9,
    KINDS,
    MS,
    US,
    Ecn,
    Flows,
    Outcome,
    Poisson,
    Progress,
    Red,
    Scenario,
    Scheme,
    Source,
    Time,
    Transport,
    Watch,
    progress_line,
    run,
    show_progress,
)
from qjump_sim.apps import Bulk

SEARCH = Scenario(FIG9, "qjump-script", Poisson("search", load=0.8, count=150))


def same(one: Outcome, other: Outcome) -> bool:
    return one.counters == other.counters and one.end == other.end and bool(np.array_equal(one.finish, other.finish))


def test_series_have_the_shapes_that_they_say() -> None:
    outcome = run(SEARCH, watch=Watch(ports=True, every_ps=20 * US))
    series = outcome.series
    assert series is not None and series.sent is not None and series.dropped is not None
    samples, ports = len(series.at), len(outcome.ports)
    assert np.array_equal(series.at, np.arange(samples) * 20 * US)
    assert series.queued.shape == series.sent.shape == (samples, ports)
    assert series.levels is not None and series.levels.shape == (samples, ports, 9)
    assert series.ports == tuple((port.begin, port.end) for port in outcome.ports)
    assert series.totals.shape == (samples, 4) and not series.queued.flags.writeable
    # A link's rate is never above its own, but for the byte that is being sent.
    assert series.rate.max() <= 40e9 * 1.01 and series.rate[:, :288].max() <= 10e9 * 1.01
    assert series.queued.max() <= max(port.longest for port in outcome.ports)
    assert sum(port.full + port.early for port in outcome.ports) >= series.dropped[-1].sum() > 0
    # Windows are of flows that are under way at that instant.
    assert np.all(outcome.start[series.flow] <= series.at[series.sample])
    assert np.all(outcome.finish[series.flow] > series.at[series.sample])
    assert same(outcome, run(SEARCH))


def test_a_series_without_ports_has_queues_and_windows_alone() -> None:
    series = run(SEARCH, watch=Watch(every_ps=US, most=100)).series
    assert series is not None and series.sent is None and series.marked is None and series.dropped is None
    assert 50 <= len(series.at) <= 100 and series.queued.max() > 0
    with pytest.raises(ValueError, match=r"series.rate: the ports were not watched"):
        _ = series.rate


def test_flows_of_applications_have_windows_and_counts_too() -> None:
    bulk = Bulk(5, 4, until=5 * MS, interval=MS)
    outcome = run(Scenario(FIG9, "dctcp", Flows([0], [0], [4], [500]), apps=[bulk]), watch=Watch(flows=True, every_ps=100 * US))
    assert outcome.flows is not None and outcome.series is not None
    assert outcome.flows.flow.tolist() == [0, 2**29]
    assert outcome.flows.delivered[0] == 500 and outcome.flows.delivered[1] > 2_000
    assert sum(outcome.flows.marked) == outcome.counters["marked"] > 0
    assert set(outcome.series.flow.tolist()) == {0, 2**29}
    assert np.all(np.diff(outcome.series.acknowledged[outcome.series.flow == 2**29]) >= 0)


def read(path: Path) -> list[dict[str, int]]:
    """The packets of a pcap file, with the checksum of each IP header checked."""
    content = path.read_bytes()
    assert struct.unpack("<IHHiIII", content[:24]) == (0xA1B23C4D, 2, 4, 0, 0, 65_535, 101)
    packets, at = [], 24
    while at < len(content):
        seconds, nanoseconds, kept, whole = struct.unpack("<IIII", content[at : at + 16])
        header = content[at + 16 : at + 16 + kept]
        words = sum(struct.unpack(">10H", header[:20]))
        assert (words & 0xFFFF) + (words >> 16) == 0xFFFF
        service, length, protocol = header[1], *struct.unpack(">H", header[2:4]), header[9]
        src, dst, sport, dport, seq, ack, _, flags = struct.unpack(">IIHHIIBB", header[12:34])
        packets.append(
            {
                "ns": seconds * 10**9 + nanoseconds, "whole": whole, "length": length, "protocol": protocol, "level": 7 - (service >> 5),
                "ecn": service & 3, "src": src - 0x0A000001, "dst": dst - 0x0A000001, "port": sport if dport == 5_001 else dport,
                "seq": seq, "ack": ack, "flags": flags,
            }
        )  # fmt: skip
        at += 16 + kept
    return packets


def test_a_pcap_file_has_every_packet_once_a_link(tmp_path: Path) -> None:
    red = Red.linux(None, Time(10 * US), Time(30 * US), protection="ack+syn")
    scheme = replace(Scheme.named("dctcp", FIG9), transport=Transport.linux(Ecn()), routing="per-flow", queue=red)
    scenario = Scenario(FIG9, scheme, Poisson("search", 0.6, 60), sources=[Source(1, 3, gap=10 * US, bytes=700, count=50, level=2)])
    outcome = run(scenario, watch=Watch(trace="all"))
    trace = outcome.trace
    assert trace is not None
    count = trace.write_pcap(tmp_path / "all.pcap")
    packets = read(tmp_path / "all.pcap")
    assert count == len(packets) == outcome.counters["hops"]
    came = {name: column[trace.dropped == 0] for name, column in trace.table().items()}
    kind = {name: came["kind"] == number for number, name in enumerate(KINDS)}
    assert [packet["ns"] for packet in packets] == (came["at"] // 1_000).tolist()
    assert [packet["length"] for packet in packets] == came["bytes"].tolist() == [packet["whole"] for packet in packets]
    assert [(packet["src"], packet["dst"]) for packet in packets] == list(zip(came["src"].tolist(), came["dst"].tolist(), strict=True))
    assert [packet["level"] for packet in packets] == came["level"].tolist() and set(came["level"].tolist()) >= {2}
    tcp = [packet for packet in packets if packet["protocol"] == 6]
    assert len(packets) - len(tcp) == kind["datagram"].sum() == 2 * 50
    bits = {"syn": 0x02, "ece": 0x40, "cwr": 0x80, "psh": 0x08}
    seen = {name: sum(bool(packet["flags"] & bit) for packet in tcp) for name, bit in bits.items()}
    assert seen["syn"] == (kind["syn"] | kind["syn-ack"]).sum() > 0
    assert seen["psh"] == kind["data"].sum() and seen["cwr"] == came["reduced"].sum() + kind["syn"].sum()
    assert seen["ece"] == (came["marked"] & ~kind["data"]).sum() > kind["syn"].sum()
    assert sum(packet["ecn"] == 3 for packet in tcp) == (came["marked"] & kind["data"]).sum() > 0
    # Of a flow, each byte of data is there, and what is acknowledged ends where the data does.
    first = [packet for packet in tcp if packet["port"] == 10_000]
    data = {packet["seq"] for packet in first if packet["flags"] & bits["psh"]}
    assert data == {1 + 1_460 * number for number in range(outcome.packets[0])}
    assert max(packet["ack"] for packet in first) == 1 + 1_460 * outcome.packets[0]


def test_a_trace_of_a_host_is_what_its_card_sees() -> None:
    outcome = run(Scenario(FIG9, "tcp", Flows([0, 0], [0, 5], [17, 6], [6, 6])), watch=Watch(trace=[17]))
    trace = outcome.trace
    assert trace is not None
    assert len(trace) == 12 and set(trace.link.tolist()) == {17, 144 + 17}
    data = trace.at[(trace.kind == KINDS.index("data"))]
    assert data.tolist() == [8_800_000 + 1_200_000 * number for number in range(6)]


def test_a_progress_that_cannot_be_called_is_told_before_the_run() -> None:
    with pytest.raises(TypeError, match=r"^progress: 5 cannot be called$"):
        run(Scenario(FIG9, "no such scheme"), progress=5)  # type: ignore[arg-type]


def test_progress_is_told_and_may_end_a_run() -> None:
    told: list[Progress] = []
    scenario = Scenario(FIG9, "dctcp", Poisson("search", 0.6, 8_000))
    stream = io.StringIO()
    line = show_progress(stream)

    def listen(progress: Progress) -> None:
        told.append(progress)
        line(progress)
        if len(told) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(scenario, progress=listen)
    shares = [progress.share for progress in told]
    assert shares == sorted(shares) and 0 < shares[0] < shares[-1] < 1
    assert all(progress.flows == 8_000 and progress.left is not None and progress.left > 0 for progress in told)
    assert stream.getvalue().splitlines() == [progress_line(progress) for progress in told]


def test_progress_says_what_is_left() -> None:
    half = Progress(now=34_500_000_000, finished=1_200, flows=10_000, share=0.25, elapsed=5.0)
    assert half.left == 15
    assert progress_line(half) == "25 %, 34.500 ms simulated, 1,200 of 10,000 flows finished; 5 s, 15 s left"
    assert progress_line(Progress(MS, 0, 0, 0.0, 1.0)) == "1.000 ms simulated; 1 s"


@pytest.mark.parametrize(
    ("watch", "sentence"),
    [
        (Watch(every_ps=0), "watch.every_ps: it must be above 0 ps"),
        (Watch(every_ps=US, most=1), "watch.most: a series needs at least two samples"),
        (Watch(trace=[144]), "watch.trace: there is no host 144, there are 144"),
        (Watch(trace="some"), "watch.trace: 'some' is not 'all' or numbers of hosts"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_watched_is_told(watch: Watch, sentence: str) -> None:
    with pytest.raises(ValueError) as error:
        run(SEARCH, watch=watch)
    assert str(error.value) == sentence
