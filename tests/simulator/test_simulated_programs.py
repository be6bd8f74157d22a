"""Programs in the simulator: tables by hand, to the picosecond where nothing random is in them, loads as
offered, and what is refused."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from qjump_mn import resolve, theory
from qjump_mn.analysis import measures
from qjump_mn.model.hooks import HasConstants
from qjump_mn.model.plan import Plan
from qjump_mn.programs.collective.program import CollectivePlan
from qjump_mn.programs.facts import TrialFacts, TrialTables
from qjump_mn.results import tables

pytestmark = pytest.mark.guest

HEAD = """
title = "t"
reproduces = "r"
question = "q"
topology = "fanin"
backends = ["simulator"]
warmup = "1ms"
duration = "20ms"
replicates = 1
link = { rate = "10Gbit", buffer = "1522kB" }
claims = {}
"""
ACK_US = 94 * 8e-4
FRAME_US = 1542 * 8e-4
"""An ACK, which goes before the answer, and a full-size frame, with preamble and gap at 10 Gb/s."""


class Laboratory:
    """Experiments written on the spot, one arm each, and their trials."""

    def __init__(self, folder: Path, package: Path) -> None:
        self.folder, self.package = folder, package

    def _process(
        self, trial: msgspec.Struct, *arguments: str
    ) -> subprocess.CompletedProcess[bytes]:
        path = os.pathsep.join([str(self.package), str(Path(__file__).parents[2])])
        argv = [sys.executable, "-m", "qjump_mn.simulation", *arguments]
        plan, environment = msgspec.json.encode(trial), {**os.environ, "PYTHONPATH": path}
        return subprocess.run(argv, input=plan, env=environment, capture_output=True, check=False)

    def plan(
        self,
        workloads: str,
        *,
        scheme: str = "priorities",
        seed: int = 1,
        settings: tuple[str, ...] = (),
    ) -> Plan:
        (self.folder / "experiments").mkdir(exist_ok=True)
        names = [
            line.removeprefix("[workloads.").rstrip("]")
            for line in workloads.splitlines()
            if line.startswith("[workloads.")
        ]
        figure = f'[figure]\nplot = "latency_cdf"\nworkload = "{names[0]}"\narms = ["one"]\n'
        arm = f'[arms.one]\nlabel = "one"\nworkloads = {names}\nscheme = "{scheme}"\n'
        schemes = '[schemes.none]\nsimulator.like = "linux"\n' if scheme == "none" else ""
        preset = '[presets.course]\nabout = ""\n'
        (self.folder / "experiments" / "made.toml").write_text(
            HEAD + workloads + schemes + arm + figure + preset
        )
        return resolve.plan("made", "course", list(settings), seed=seed)

    def run(self, workloads: str, **asked: Any) -> TrialTables:
        (trial,) = self.plan(workloads, **asked).trials()
        out = self.folder / "out"
        done = self._process(trial, str(out))
        assert done.returncode == 0, done.stderr
        facts = msgspec.json.decode((out / "trial.json").read_bytes(), type=TrialFacts)
        found = {one.name: tables.table(one, trial, out / "raw") for one in trial.arm.workloads}
        return TrialTables(trial, facts, found, None)

    def refusal(self, workloads: str, **asked: Any) -> str:
        done = self._process(self.plan(workloads, **asked))
        assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done.stderr
        return done.stderr.decode().strip()


@pytest.fixture
def laboratory(tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    return Laboratory(tmp_path, package)


def workload(name: str, program: str, **settings: object) -> str:
    settings = {"program": program, "label": name, "level": 7, **settings}
    lines = [
        f"{key} = {value if isinstance(value, int | float | list) else repr(value)}"
        for key, value in settings.items()
    ]
    return "\n".join([f"[workloads.{name}]", *lines, ""])


PING = workload("ping", "ping", flows=["h1>h11"], interval="10us")


def one_way_us(ip_bytes: int, links: int = 2) -> float:
    """Store and forward, without the last gap: not what theory rounds to ns."""
    return links * (theory.PREAMBLE_BYTES + theory.frame_bytes(ip_bytes)) * 8e-4


def values(found: TrialTables) -> dict[str, dict[str, float]]:
    return measures.measure(found).values


def test_an_idle_ping_is_the_closed_form_to_the_picosecond(laboratory: Laboratory) -> None:
    found = laboratory.run(PING)
    table = found.tables["ping"]
    # 56 bytes, 28 of headers: a frame of 106 B, 114 with its preamble.
    assert (
        table["latency_us"].unique().to_pylist()
        == [4 * 114 * 8e-4]
        == [pytest.approx(2 * one_way_us(84), abs=1e-12)]
    )
    assert table["sequence"].to_pylist() == list(range(1, 2001))
    sent = table["received_s"].to_numpy() - table["latency_us"].to_numpy() / 1e6
    assert np.diff(sent) == pytest.approx(1e-5, abs=1e-9)
    start, end = found.facts.window_s
    # The seed moves the begin within the interval.
    assert 0.001 <= start < 0.001_01 and end == pytest.approx(start + 0.02)
    assert laboratory.run(PING, seed=2).facts.window_s != found.facts.window_s


TRUNK = tuple(
    (
        "topology=trunk link.rate=10Gbit link.buffer=1522kB link.trunk_rate=40Gbit "
        "link.trunk_delay=1us"
    ).split()
)


def test_links_between_switches_have_their_own_rate_and_delay(laboratory: Laboratory) -> None:
    found = laboratory.run(
        workload("ping", "ping", flows=["h1>h4"], interval="10us"), settings=TRUNK
    )
    (way_us,) = found.tables["ping"]["latency_us"].unique().to_pylist()
    assert way_us == pytest.approx(2 * (2 * 114 * 8e-4 + 114 * 2e-4 + 1), abs=1e-9)


def test_links_between_switches_have_their_own_buffer(laboratory: Laboratory) -> None:
    # Two streams meet at a trunk: a packet waits for what its port holds. At the rate of a host's link
    # one stream would fill the queue for good, and nobody else would find a place.
    bulk = workload("bulk", "iperf", flows=["h1>h4", "h2>h5"], level=0)
    ping = workload("ping", "ping", flows=["h3>h6"], interval="10us", level=0)
    most = {}
    for buffer in ("30440B", "304400B"):
        settings = (
            *TRUNK,
            "link.trunk_rate=11Gbit",
            "link.trunk_delay=0us",
            f"link.trunk_buffer={buffer}",
        )
        most[buffer] = (
            pc.max(
                laboratory.run(ping + bulk, settings=settings).tables["ping"]["latency_us"]
            ).as_py()
            / FRAME_US
        )
    assert 15 < most["30440B"] < 21 + 6 < 150 < most["304400B"] < 201 + 6, (
        "and for a frame on each of the other links"
    )


def test_two_workloads_of_one_kind_have_their_own_tables(laboratory: Laboratory) -> None:
    other = workload(
        "second", "ping", flows=["h2>h10", "h3>h9"], interval="20us", payload="1000B", level=3
    )
    tables_of = laboratory.run(PING + other).tables
    assert tables_of["ping"]["latency_us"].unique().to_pylist() == [4 * 114 * 8e-4]
    assert tables_of["second"]["flow"].unique().to_pylist() == ["h2>h10", "h3>h9"]
    assert tables_of["second"]["latency_us"].to_numpy() == pytest.approx(
        2 * one_way_us(1028), abs=1e-9
    )
    assert len(tables_of["second"]) == 2 * 1000


def test_datagrams_of_fanin_are_seen_one_by_one(laboratory: Laboratory) -> None:
    found = laboratory.run(
        workload("urgent", "fanin", flows=["h1>h11", "h2>h11"], interval="25us", streams=2)
    )
    table = found.tables["urgent"]
    assert len(table) == 4 * 800
    alone, most = one_way_us(258), one_way_us(258) + 4 * 300 * 8e-4
    assert pc.min(table["latency_us"]).as_py() == pytest.approx(alone, abs=1e-9)
    assert pc.max(table["latency_us"]).as_py() <= most
    assert table["due_ns"] == table["sent_ns"]
    phases = {(row["flow"], row["stream"]): row["due_ns"] % 25_000 for row in table.to_pylist()}
    assert len(set(phases.values())) == 4


def test_udp_offers_and_gets_its_rate(laboratory: Laboratory) -> None:
    bulk = workload("bulk", "iperf", flows=["h1>h11", "h2>h10"], streams=2, udp_rate="1Gbit")
    found = values(laboratory.run(PING + bulk))
    assert found["bulk"]["offered_mbps"] == pytest.approx(4000, rel=0.002)
    assert found["bulk"]["goodput_mbps"] == pytest.approx(4000, rel=0.002)
    flood = workload("bulk", "iperf", flows=["h1>h11", "h2>h11"], udp_rate="9Gbit")
    found = values(laboratory.run(PING + flood))
    assert found["bulk"]["offered_mbps"] == pytest.approx(18_000, rel=0.002)
    # The payload of a full link, less what the pings take: 126 B of 12,500 every 10 us, there and back.
    assert found["bulk"]["goodput_mbps"] == pytest.approx(
        10_000 * 1472 / 1542 * (1 - 126 / 12_500), rel=0.003
    )


def test_tcp_fills_the_link_and_windows_hold_it_back(laboratory: Laboratory) -> None:
    bulk = workload("bulk", "iperf", flows=["h1>h11"], level=0, streams=3)
    plain = values(laboratory.run(PING + bulk, settings=("warmup=100ms",)))["bulk"]
    full = theory.tcp_goodput_bps(1500, 10**10) / 1e6
    assert plain["goodput_mbps"] == pytest.approx(full * (1 - 126 / 12_500), rel=0.01)
    assert "offered_mbps" not in plain and "retransmits" not in plain
    window = values(
        laboratory.run(
            PING + workload("bulk", "iperf", flows=["h1>h11"], level=0),
            scheme="window",
            settings=("schemes.window.window=4096B",),
        )
    )
    # Two packets a round trip of 2 x 1542 B, and an ACK of 94 B, over two links each: the second begins when
    # the first has been sent.
    trip_us = (2 * 1542 + 2 * 94) * 8e-4
    assert window["bulk"]["goodput_mbps"] == pytest.approx(
        2 * 1448 * 8 / (trip_us + FRAME_US), rel=0.35
    )
    assert window["bulk"]["goodput_mbps"] < 0.75 * full


def test_urgent_pings_wait_for_a_frame_on_each_busy_port(laboratory: Laboratory) -> None:
    bulk = workload("bulk", "iperf", flows=["h1>h11", "h2>h11"], level=0, udp_rate="9.5Gbit")
    idle = 4 * 114 * 8e-4
    lone = workload("ping", "ping", flows=["h3>h11"], interval="10us")
    contended = (
        laboratory.run(lone + bulk, scheme="none")
        .tables["ping"]["latency_us"]
        .drop_null()
        .to_numpy()
    )
    urgent = laboratory.run(PING + bulk).tables["ping"]["latency_us"].to_numpy()
    # The buffer of the receiver's port holds 1000 frames; the other busy port of an urgent ping is that of
    # its own host.
    assert 900 * FRAME_US < np.median(contended) <= 1001 * FRAME_US + idle
    assert idle + FRAME_US / 4 < np.median(urgent) and urgent.max() <= idle + 2 * FRAME_US


def test_memcached_meets_its_rates(laboratory: Laboratory) -> None:
    sizes = {"key_size": "64B", "value_size": "1000B", "flows": ["h1>h11"]}
    closed = laboratory.run(
        workload("kv", "memcached", connections=8, think="100us", get_fraction=0.5, **sizes)
    )
    table = closed.tables["kv"]
    get, put = (
        one_way_us(52 + asked) + one_way_us(52 + answered)
        for asked, answered in ((24 + 64, 28 + 1000), (32 + 64 + 1000, 24))
    )
    for op, alone in (("GET", get), ("SET", put)):
        mine = table.filter(pc.field("op") == op)["latency_us"].to_numpy()
        assert mine.min() == pytest.approx(alone + ACK_US, abs=1e-9)
        assert abs(len(mine) / len(table) - 0.5) < 5 * math.sqrt(0.25 / len(table))
    measured = values(closed)["kv"]
    # One after the other: to think, and the answer.
    assert measured["requests_per_s"] == pytest.approx(
        8 / (100e-6 + measured["mean_ms"] / 1e3), rel=0.02
    )
    assert table["due_ns"].to_pylist() == sorted(table["due_ns"].to_pylist())
    opened = values(laboratory.run(workload("kv", "memcached", rate=100000, **sizes)))["kv"]
    assert abs(opened["requests_per_s"] - 100_000) < 5 * math.sqrt(100_000 / 0.02)
    large = laboratory.run(
        workload("kv", "memcached", rate=1000, get_fraction=1, value_size="2896B", flows=["h1>h11"])
    ).tables["kv"]
    # 2924 B: two full segments and one of 28, which waits behind them at the switch; the gaps behind it on
    # two links are no part of the time.
    assert pc.min(large["latency_us"]).as_py() == pytest.approx(
        one_way_us(52 + 88) + ACK_US + 3 * FRAME_US + (122 - 2 * 12) * 8e-4, abs=1e-9
    )


def test_ptp_of_an_idle_network_is_exact(laboratory: Laboratory) -> None:
    found = laboratory.run(workload("ptp", "ptp", flows=["h1>h11", "h2>h11"], interval="1ms"))
    table = found.tables["ptp"]
    way = one_way_us(72)
    assert len(table) == 2 * 2 * 20
    assert table["offset_us"].unique().to_pylist() == [0.0]
    for column in ("master_to_slave_us", "slave_to_master_us"):
        assert table[column].drop_null().to_numpy() == pytest.approx(way, abs=1e-9)
        assert table[column].null_count == len(table) // 2
    assert values(found)["ptp"]["samples"] == 80


def test_barriers_take_their_closed_form(laboratory: Laboratory) -> None:
    found = laboratory.run(
        workload("barrier", "barrier", hosts=["h1", "h2", "h3", "h4"], interval="1ms")
    )
    (plan,) = found.trial.arm.workloads
    assert isinstance(plan, HasConstants)
    latencies = found.tables["barrier"]["latency_us"].to_numpy()
    # 196 B of IP are a frame of 218 B; two before the last one. ACKs that come at the same time come
    # after them.
    alone = (2 * 238 + 2 * 226) * 8e-4
    assert plan.constants(found.trial.network)["analytic_ms"] * 1e3 == pytest.approx(
        alone, abs=0.003
    )
    assert (latencies.min(), latencies.max()) == pytest.approx((alone, alone), abs=1e-9)
    assert len(latencies) == 20


def test_a_job_is_on_its_hosts_and_waits_for_nobodys_end(laboratory: Laboratory) -> None:
    job = workload(
        "job", "mapreduce", level=0, hosts=["h1", "h2"], maps=2, map_size="30MB", reducers=2
    )
    found = laboratory.run(job + PING, settings=("duration=2ms",))
    (row,) = found.tables["job"].to_pylist()
    # Each fetches half of the other's map: 15 MB each way, as packets of 1542 B.
    assert row["data"] == 2 * math.ceil(15e6 / 1542)
    least_s = 15e6 * 8 / 1e10
    assert least_s <= row["runtime_ps"] / 1e12 <= 1.05 * least_s
    # The ping is not on the job's links, and over long before.
    assert found.tables["ping"]["latency_us"].null_count == 0 and len(found.tables["ping"]) == 200


@pytest.mark.parametrize(("pattern", "steps"), [("ring", 6), ("tree", 4), ("all-to-all", 3)])
def test_a_collective_takes_its_closed_form(
    pattern: str, steps: int, laboratory: Laboratory
) -> None:
    hosts = ["h1", "h2", "h3", "h4"]
    size = "4kB" if pattern == "ring" else "1kB"
    job = workload("job", "collective", level=0, hosts=hosts, size=size, pattern=pattern)
    found = laboratory.run(job + PING, settings=("duration=2ms",))
    # Each message is 1,000 B of payload, 1,082 B of the wire, on two links.
    ideal_us = steps * 2 * 1082 * 8e-4
    # Connections are set up in the first iteration.
    latencies = found.tables["job"]["latency_us"].to_numpy()[1:]
    assert ideal_us <= latencies.min() and latencies.max() <= ideal_us + 2 * steps * ACK_US
    assert len(latencies) >= 2000 / (ideal_us + 2 * steps * ACK_US) - 1
    (plan,) = (plan for plan in found.trial.arm.workloads if isinstance(plan, CollectivePlan))
    # The formula's frames have no gap behind them.
    assert plan.ideal_ns(found.trial.network) / 1e3 == pytest.approx(ideal_us, rel=0.02)
    assert values(found)["job"]["of_ideal"] == pytest.approx(1, abs=0.15)


CHAIN = """num_ranks 4
rank 0 {
l1: send 1082b to 1
}
rank 1 {
l1: recv 1082b from 0
l2: send 1082b to 2
l2 requires l1
}
rank 2 {
l1: recv 1082b from 1
l2: calc 5000
l2 requires l1
l3: send 1082b to 3
l3 requires l2
}
rank 3 {
l1: recv 1082b from 2
}
"""


def test_a_job_in_goal_takes_its_closed_form(laboratory: Laboratory) -> None:
    hosts = ["h1", "h2", "h3", "h4"]
    job = workload("job", "collective", level=0, hosts=hosts, pattern="goal", goal="chain")
    (laboratory.folder / "experiments").mkdir()
    (laboratory.folder / "experiments/chain.goal").write_text(CHAIN)
    found = laboratory.run(job + PING, settings=("duration=2ms",))
    # Three messages on two links each, and 5 us.
    ideal_us = 3 * 2 * 1082 * 8e-4 + 5
    latencies = found.tables["job"]["latency_us"].to_numpy()[1:]
    assert ideal_us <= latencies.min() and latencies.max() <= ideal_us + 6 * ACK_US
    job_values = values(found)["job"]
    assert job_values["iterations"] > 0 and "of_ideal" not in job_values


def test_what_is_not_goal_is_refused_with_its_line(laboratory: Laboratory) -> None:
    job = workload("job", "collective", level=0, hosts=["h1", "h2"], pattern="goal", goal="bad")
    (laboratory.folder / "experiments").mkdir()
    (laboratory.folder / "experiments/bad.goal").write_text("num_ranks 2\nrank 0 (\n")
    assert "workloads.job.goal:2: " in laboratory.refusal(job + PING)
    (laboratory.folder / "experiments/bad.goal").write_text(CHAIN)
    assert "there is no rank 2 among 2" in laboratory.refusal(job + PING)


def test_one_seed_is_one_result(laboratory: Laboratory) -> None:
    everything = (
        PING
        + workload("bulk", "iperf", flows=["h1>h11", "h2>h11"], level=0)
        + workload("kv", "memcached", flows=["h3>h11"], rate=50000, level=3)
    )

    def told(found: TrialTables) -> dict[str, pa.Table]:
        return dict(found.tables)

    first = told(laboratory.run(everything))
    assert first == told(laboratory.run(everything))
    assert first != told(laboratory.run(everything, seed=2))


@pytest.mark.parametrize(
    ("workloads", "scheme", "sentence"),
    [
        (workload("job", "shuffle", master="h1", workers=["h2", "h3"], shuffle="1kB"), "priorities",
         "arms.one: the simulator does not know the program of workloads.job: use another backend"),
        (PING + "reply_level = 3\n", "priorities",
         "replies in the simulator have the requests' level: leave it out"),
        (
            workload("bulk", "iperf", flows=["h1>h2"], congestion_control="bbr") + PING,
            "priorities",
            "arms.one: workloads.bulk.congestion_control: in the simulator the scheme sets it for all hosts: "
            "leave it out",
        ),
        ("".join(workload(name, "flows", sizes="search", load=0.5, count=9) for name in ("a", "b")),
         "priorities", "arms.one: the simulator needs a single workload of program flows (got 2)"),
        (
            workload("job", "mapreduce", maps=1, map_size="1MB", reducers=1),
            "window",
            "arms.one: workloads.job: a job in the simulator cannot have its own window: use another scheme, "
            "or leave window out",
        ),
        (
            PING,
            "red",
            "scheme 'red': simulator: the scheme's file has no table [simulator]: add one, such as  like = 'linux', "
            "or use --backend guest",
        ),
    ],
)  # fmt: skip
def test_what_the_simulator_has_not_is_refused(
    workloads: str, scheme: str, sentence: str, laboratory: Laboratory
) -> None:
    assert laboratory.refusal(workloads, scheme=scheme).endswith(sentence)
