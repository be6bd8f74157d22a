"""The network under test, in the guest and on its clock: the wire is real, the levels are
served."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qjump_mn import theory
from qjump_mn.backends import guest as backend
from qjump_mn.backends.guest import setup
from qjump_mn.guest import Image, Job, Setup, run
from qjump_mn.links import registry
from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.iperf import parse as iperf
from qjump_mn.programs.ping.program import PingPlan
from qjump_mn.resolve import plan
from qjump_mn.results import links, tables
from tests.guest.laboratory import Laboratory, fig3a, run_well
from tests.support.nights import nightly

pytestmark = pytest.mark.guest

PING_US = 1
"""Ping prints whole us, and three digits of ms; the guest's processor adds nothing."""
FULL_BYTES = theory.PREAMBLE_BYTES + theory.frame_bytes(1500) + theory.INTERFRAME_GAP_BYTES
SEGMENT_BYTES = 1500 - theory.IP_HEADER_BYTES - theory.TCP_HEADER_BYTES
SMALL_BYTES = FULL_BYTES - SEGMENT_BYTES
"""A TCP segment without data on the wire."""


def round_trips_us(trial: Trial, out: Path) -> list[float]:
    """Every round trip of the trial's ping, without the first, which Open vSwitch sends to user
    space."""
    workload = next(workload for workload in trial.arm.workloads if isinstance(workload, PingPlan))
    table = tables.table(workload, trial, out / "raw")
    latencies_us: list[float] = table["latency_us"].slice(1).drop_null().to_pylist()
    return latencies_us


def loads(trial: Trial, out: Path, *readings: str) -> list[dict[str, Any]]:
    """What each link carried at each level between two readings."""
    facts = msgspec.json.decode((out / "trial.json").read_bytes(), type=TrialFacts)
    assert facts.read_ns is not None
    rows: list[dict[str, Any]] = links.table(
        trial.network, out, facts.read_ns, *readings
    ).to_pylist()
    return rows


@pytest.mark.parametrize("rate", nightly([10, 100, 1000, 10_000], but=[10_000]))
def test_lone_ping_takes_exactly_its_serialisation_times(laboratory: Laboratory, rate: int) -> None:
    terms = []
    for payload in (56, 200, 500, 1000, 1400):
        settings = [f"link.rate={rate}Mbit", f"workloads.ping.payload={payload}B"]
        trial, out = laboratory.run(fig3a(*settings, "workloads.ping.interval=20ms"), "idle")
        analytic_us = theory.ping_rtt_ns(payload, [(rate * 10**6, 0)] * 4) / 1e3
        terms.append(statistics.median(round_trips_us(trial, out)) - analytic_us)
    print(f"{rate} Mb/s: the CPU adds {', '.join(f'{term:.1f}' for term in terms)} us of its own")
    assert max(map(abs, terms)) <= (5 if rate == 10 else PING_US)


@pytest.mark.nightly
def test_goodput_of_a_full_link_is_rate_times_payload_share(laboratory: Laboratory) -> None:
    settings = "workloads.bulk.flows=h7>h10 workloads.ping.interval=100ms duration=8s warmup=3s"
    _, out = laboratory.run(fig3a(*settings.split()), "priority_only")
    start, end = msgspec.json.decode((out / "trial.json").read_bytes())["window_s"]
    intervals = iperf.parse((out / "raw" / "bulk-h7-h10.server.json").read_text())
    inside = [one for one in intervals if start <= one.start_s and one.end_s <= end]
    seconds = sum(one.end_s - one.start_s for one in inside)
    goodput = sum(one.bytes for one in inside) * 8 / seconds
    pings = 10 * 8 * (theory.frame_bytes(84) + theory.PREAMBLE_BYTES + theory.INTERFRAME_GAP_BYTES)
    expected = theory.tcp_goodput_bps(1500, 10**7) * (1 - pings / 10**7)
    assert goodput == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize("arm", nightly(["qjump", "priority_only"], but=["qjump"]))
def test_urgent_packet_waits_for_at_most_one_packet_per_port(
    laboratory: Laboratory, arm: str
) -> None:
    resolved = fig3a("duration=4s")
    trial, out = laboratory.run(resolved, arm)
    idle_us = theory.ping_rtt_ns(56, [(10**7, 0)] * 4) / 1e3 + PING_US
    assert max(round_trips_us(trial, out)) <= idle_us + resolved.judged.constants["wait_ms"] * 1e3
    # Were nothing in the way, this test would say nothing.
    assert statistics.median(round_trips_us(trial, out)) > idle_us + 500


@pytest.mark.nightly
def test_links_may_have_propagation_delay(laboratory: Laboratory) -> None:
    near, far = (
        statistics.median(round_trips_us(*laboratory.run(fig3a(*settings.split()), "idle")))
        for settings in (
            "workloads.ping.interval=50ms",
            "workloads.ping.interval=50ms link.delay=1ms",
        )
    )
    assert far - near == pytest.approx(8000, abs=10)  # ping prints three digits: 8.77 ms


@pytest.mark.nightly
@pytest.mark.parametrize("model", ["wire", "tbf", "htb"])
def test_links_between_switches_may_have_another_rate_and_delay(
    laboratory: Laboratory, model: str
) -> None:
    trunk = "link.trunk_rate=40Mbit link.trunk_buffer=60880B link.trunk_delay=300us"
    settings = f"{trunk} workloads.ping.interval=50ms link.model={model}"
    trial, out = laboratory.run(fig3a(*settings.split()), "idle")
    between = trial.network.by_device()["s0-eth2"]
    assert (between.rate_bps, between.buffer_bytes) == (4 * 10**7, 60_880)
    analytic_us = theory.ping_rtt_ns(56, trial.network.speeds("h8", "h10")) / 1e3
    assert analytic_us == pytest.approx(2 * (2 * 91.2 + 2 * (22.8 + 300)))
    if model == "wire":
        median_us = statistics.median(round_trips_us(trial, out))
        assert median_us == pytest.approx(analytic_us, abs=PING_US)


@pytest.mark.nightly
def test_trunk_utilisation_is_relative_to_its_own_rate(laboratory: Laboratory) -> None:
    # What all of the bulk's senders have to s3 is 8 Mb/s, which it hands on over links of 10.
    trial, out = laboratory.run(fig3a("link.trunk_rate=8Mbit", "duration=3s"), "contended")
    rows = loads(trial, out)
    share = {(row["source"], row["destination"]): 0.0 for row in rows}
    for row in rows:
        share[row["source"], row["destination"]] += row["share"]
    assert share["s0", "s3"] == pytest.approx(1, abs=0.01)
    assert sum(share["s3", host] for host in ("h10", "h11", "h12")) == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("experiment", nightly(["fig3a", "table1", "fig11"], but=["fig3a"]))
def test_switches_learn_every_host_before_a_trial(
    image: Image, tmp_path: Path, experiment: str
) -> None:
    resolved = plan(experiment, "smoke", [])
    network = resolved.trials()[0].network
    script = "; ".join(f"ovs-appctl fdb/show {switch}" for switch in network.switches)
    python = f"import subprocess; print(subprocess.run({script!r}, shell=True, check=True))"
    job = Job(script=python)
    assert run(image, setup(network.skeleton()), job, tmp_path).exit_code == 0
    rows = [line.split() for line in (tmp_path / "stdout").read_text().splitlines()]
    tagged = [row[2] for row in rows if len(row) == 4 and row[1] == str(network.vlan)]
    assert len(tagged) == len(network.switches) * len(network.hosts)
    assert len(set(tagged)) == len(network.hosts)


@pytest.mark.nightly
@pytest.mark.parametrize(("source", "destination"), [("h7", "h12"), ("h1", "h9"), ("h12", "h7")])
def test_hosts_link_carries_only_its_own_flows(
    laboratory: Laboratory, source: str, destination: str
) -> None:
    trial, out = laboratory.run(fig3a(f"workloads.bulk.flows={source}>{destination}"), "contended")
    carried = dict.fromkeys(trial.network.hosts, 0)
    for row in loads(trial, out):
        if row["destination"] in carried:
            carried[row["destination"]] += row["bytes"]
    assert carried[destination] > 1e6
    asked = {source, destination, "h8", "h10"}
    assert {host: bytes_ for host, bytes_ in carried.items() if bytes_ and host not in asked} == {}


def test_frames_carry_the_level_as_pcp_in_both_directions(laboratory: Laboratory) -> None:
    _, out = laboratory.run(fig3a(), "priority_only")
    # Beforehand one ping each way, by which the switches know the flows: requests have the level,
    # and so have the replies of h10, which is asked.
    for device, beforehand in {"s0-eth3": 1, "s3-eth1": 2}.items():
        qdiscs = msgspec.json.decode((out / "asbuilt" / "after" / "tc-switches.json").read_bytes())
        port = next(qdisc for qdisc in qdiscs if qdisc.get("dev") == device and qdisc.get("root"))
        packets = {level["level"]: level["packets"] for level in port["levels"]}
        assert packets[6] == 100 + beforehand, f"{device}: {packets}"
        assert packets[0] > 100


def test_links_carry_copies_with_their_headers(laboratory: Laboratory) -> None:
    settings = "duration=4s warmup=1s workloads.job.parallel=1 workloads.job.shuffle=100kB"
    trial, out = laboratory.run(plan("fig3b", "smoke", settings.split()), "contended")
    _, job = trial.arm.workloads
    network, carried = trial.network, loads(trial, out, "before", "after")
    rows = tables.table(job, trial, out / "raw").to_pylist()
    copies = [row for row in rows if row["step"] != "round"]
    sent_again = sum(row["drops"] for row in carried) * FULL_BYTES
    assert len(copies) > 100
    for host in ("h1", "h4", "h5", "h7", "h8", "h9", "h10", "h12"):
        came, left = (
            [copy["bytes"] for copy in copies if copy[end] == host]
            for end in ("destination", "source")
        )
        for link in (network.path(host, "h3")[0], network.path("h3", host)[-1]):
            towards, back = (came, left) if link[1] == host else (left, came)
            on_link = sum(
                row["bytes"] for row in carried if (row["source"], row["destination"]) == link
            )
            data = sum(towards) / SEGMENT_BYTES * FULL_BYTES
            # At most: an answer to every segment, a dozen small frames a copy to open, ask and
            # close, and what was dropped on the way.
            answers = sum(back) / SEGMENT_BYTES + 12 * (len(towards) + len(back))
            assert data < on_link < data + answers * SMALL_BYTES + sent_again, link


def test_network_unlike_the_plan_stops_the_trial(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved = fig3a()
    trial = next(trial for trial in resolved.trials() if trial.arm.name == "idle")
    # The network that is up is built with another MTU than the trial's plan has.
    other = msgspec.structs.replace(trial.arm.network, mtu_bytes=1400)
    planned = setup(trial.network.skeleton())
    monkeypatch.setattr(backend, "setup", lambda network: planned)
    wrong = msgspec.structs.replace(trial, arm=msgspec.structs.replace(trial.arm, network=other))
    ended = laboratory.backend(resolved).run(wrong, laboratory.folder / "wrong", print)
    assert ended.exit_code == 4
    assert "the network built is not the network planned" in ended.message
    assert "its MTU is 1500, not 1400" in ended.message


def test_htb_equals_mininets_bandwidth_and_delay(
    image: Image, booted: Setup, tmp_path: Path
) -> None:
    """Its own TC link, asked for the commands that it would run."""
    script = """
from mininet.link import TCIntf
interface = TCIntf.__new__(TCIntf)
bandwidth, parent = interface.bwCmds(bw=10)
delay, _ = interface.delayCmds(parent, delay="300000ns")
print("\\n".join(" ".join((line % ("tc", "h1-eth0")).split()) for line in bandwidth + delay))
"""
    run_well(image, booted, Job(script=script), tmp_path)
    link = msgspec.structs.replace(fig3a().shown.network.link, delay_ns=300_000)
    lines = registry.of("htb").shape(link, "h1-eth0", on_switch=False, seed=1).tc
    assert (tmp_path / "stdout").read_text().splitlines() == [f"tc {line}" for line in lines]


@pytest.mark.nightly
def test_other_seed_gives_other_samples(laboratory: Laboratory) -> None:
    one = round_trips_us(*laboratory.run(fig3a(), "contended", seed=1))
    other = round_trips_us(*laboratory.run(fig3a(), "contended", seed=2))
    assert one != other
