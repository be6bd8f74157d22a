"""Two-phase commits and the bursts that disturb them: what is refused, started, read and
measured."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from qjump_mn import resolve
from qjump_mn.errors import LostError, UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import TrialFacts, TrialTables
from qjump_mn.programs.measures_api import Said
from qjump_mn.programs.noise import measures as noise_measures
from qjump_mn.programs.noise import program as noise
from qjump_mn.programs.noise.program import NoisePlan
from qjump_mn.programs.q2pc import measures as q2pc_measures
from qjump_mn.programs.q2pc import program as q2pc
from qjump_mn.programs.q2pc.program import Q2PCPlan
from qjump_mn.results import tables

GOLDEN = Path(__file__).parents[2] / "qjump_mn/programs"


def trial(arm: str) -> Trial:
    return next(
        trial for trial in resolve.plan("fig6", "smoke", []).trials() if trial.arm.name == arm
    )


def commits(trial: Trial) -> Q2PCPlan:
    return next(workload for workload in trial.arm.workloads if isinstance(workload, Q2PCPlan))


def bursts(trial: Trial) -> NoisePlan:
    return next(workload for workload in trial.arm.workloads if isinstance(workload, NoisePlan))


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            'workloads.tcp.flows=["h1>h2", "h3>h4"]',
            "there can be only one coordinator: start all flows at the same host",
        ),
        ("workloads.tcp.message=15B", "tcp.message: 15B is out of range: use 16B to 1472B"),
        ("workloads.tcp.message=1473B", "use 16B to 1472B"),
        ("workloads.udp.rto=0ms", "udp.rto: 0ns is out of range: use 1ms to 100s"),
        ("workloads.broadcast.wait=101s", "broadcast.wait: 101s is out of range"),
        ("workloads.tcp.interval=11s", "tcp.interval: 11s is out of range: use at most 10s"),
        (
            "workloads.tcp.transport=sctp",
            "workloads.tcp.transport: 'sctp' is not possible: did you mean 'tcp'",
        ),
        ("workloads.bursts.burst=0", "bursts.burst: 0 is out of range: use 1 to 2055"),
        (
            "workloads.bursts.interval=100ms",
            r"bursts.burst: 100 is out of range: use 1 to 81 \(the link's capacity in an interval\)",
        ),
        ("workloads.bursts.interval=61s", "bursts.interval: 61s is out of range"),
    ],
)
def test_invalid_settings_are_refused(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        resolve.plan("fig6", "smoke", [setting])


def test_launches_have_the_clients_addresses() -> None:
    started = {
        arm: list(q2pc.launches(commits(trial(arm)), trial(arm)))
        for arm in ("tcp_400", "udp_400", "qjump_400")
    }
    for arm, launches in started.items():
        *clients, coordinator = launches
        assert [launch.host for launch in clients] == ["h2", "h3", "h4", "h5", "h7", "h8", "h10"]
        assert {launch.phase for launch in clients} == {"serve"} and {
            launch.listens and launch.listens[0] for launch in clients
        } == {"tcp" if arm == "tcp_400" else "udp"}
        assert (coordinator.phase, coordinator.host) == ("probe", "h1")
    peers = "10.0.0.2:{0},10.0.0.3:{0},10.0.0.4:{0},10.0.0.5:{0},10.0.0.7:{0},10.0.0.8:{0},10.0.0.10:{0}"
    ports = {arm: commits(trial(arm)).port for arm in started}
    assert ("--peers", peers.format(ports["tcp_400"])) == started["tcp_400"][-1].argv[-2:]
    assert ("--peers", peers.format(ports["udp_400"]), "--rto", "200000000") == started["udp_400"][
        -1
    ].argv[-4:]
    assert (
        "--broadcast",
        f"10.0.0.255:{ports['qjump_400']}",
        "--clients",
        "7",
        "--wait",
        "5000000000",
    ) == started["qjump_400"][-1].argv[-6:]
    assert [launch.argv[-2:] for launch in started["qjump_400"][:-1]] == [
        ("--client", str(number)) for number in range(7)
    ]


def test_analytic_time_is_that_of_the_wire() -> None:
    plan = resolve.plan("fig6", "smoke", [])
    # Four crossings of four links, each with a preamble of 8 and a frame of 22 + 28 + 16 bytes, at
    # 10 Mb/s; over TCP of 22 + 52 + 16.
    assert plan.judged.constants["broadcast_analytic_ms"] == pytest.approx(16 * 74 * 8 / 1e4)
    assert plan.judged.constants["tcp_analytic_ms"] == pytest.approx(16 * (90 + 8) * 8 / 1e4)
    assert plan.judged.constants["bursts_drains"] == pytest.approx(25 / 1.2, rel=1e-3)


def table(name: str, workload: Q2PCPlan | NoisePlan, of: Trial, tmp_path: Path) -> pa.Table:
    """The golden files of ``name`` as that workload's raw output."""
    for path in GOLDEN.glob(f"*/golden/{name}-*.txt"):
        host, _, rest = path.name.removeprefix(f"{name}-").partition(".")
        (tmp_path / f"{workload.name}-{host}.{rest}").write_text(path.read_text())
    return tables.table(workload, of, tmp_path)


def facts(table: pa.Table, column: str, of: Trial) -> TrialFacts:
    began = min(table[column].to_pylist())
    return TrialFacts(
        cpu_busy=0.1, window_s=(1.0, 1.0 + of.duration_ns / 1e9), began_ns=began, began_utc_ns=0
    )


def test_every_datagram_of_a_burst_is_counted_where_it_arrives(tmp_path: Path) -> None:
    of = trial("qjump_400")
    found = table("fanin", bursts(of), of, tmp_path)
    assert found["flow"].to_pylist() == ["h6>h11"] * 3
    assert found["sent"].to_pylist() == found["arrived"].to_pylist() == [3, 3, 3]
    values = noise_measures.values(found, bursts(of), of, facts(found, "start_ns", of))
    bits = 9 * 1472 * 8 / (of.duration_ns / 1e9)
    assert values == {
        "bursts": 3,
        "loss": 0,
        "offered_mbps": pytest.approx(bits / 1e6),
        "goodput_mbps": pytest.approx(bits / 1e6),
    }
    # What began before the measurement is not counted.
    later = facts(found, "start_ns", of)
    later = TrialFacts(
        cpu_busy=0.1, window_s=later.window_s, began_ns=later.began_ns + 1, began_utc_ns=0
    )
    assert noise_measures.values(found, bursts(of), of, later)["bursts"] == 2


def test_lost_datagram_counts_for_its_burst(tmp_path: Path) -> None:
    of = trial("qjump_400")
    path = tmp_path / f"{bursts(of).name}-h11.receive.txt"
    table("fanin", bursts(of), of, tmp_path)
    lines = path.read_text().splitlines()
    path.write_text(
        "\n".join([*lines[:6], *lines[7:-1], lines[-1].replace("rows=9", "rows=8")]) + "\n"
    )
    found = tables.table(bursts(of), of, tmp_path)
    assert found["arrived"].to_pylist() == [3, 2, 3]
    assert noise_measures.values(found, bursts(of), of, facts(found, "start_ns", of))[
        "loss"
    ] == pytest.approx(1 / 9)
    path.write_text(path.read_text().replace("overflowed=0", "overflowed=2"))
    with pytest.raises(LostError, match="had no room for 2 datagrams"):
        tables.table(bursts(of), of, tmp_path)
    path.write_text(
        path.read_text().replace("overflowed=2", "overflowed=0").replace("foreign=0", "foreign=1")
    )
    with pytest.raises(
        LostError, match="the receiver on h11 had no room for 0 datagrams, and 1 were not fanin's"
    ):
        tables.table(bursts(of), of, tmp_path)


@pytest.mark.parametrize(
    ("address", "who"), [("167772165", "h5"), ("167772415", "an unknown address")]
)
def test_datagram_of_no_flow_is_an_error(address: str, who: str, tmp_path: Path) -> None:
    of = trial("qjump_400")
    path = tmp_path / f"{bursts(of).name}-h11.receive.txt"
    table("fanin", bursts(of), of, tmp_path)
    path.write_text(path.read_text().replace("167772166 ", f"{address} ", 1))
    with pytest.raises(
        LostError,
        match=f"the receiver on h11 got a datagram from {who}, where no flow to it begins",
    ):
        tables.table(bursts(of), of, tmp_path)


def test_noise_goes_on_from_the_warm_up_to_the_end() -> None:
    of = trial("qjump_400")
    receiver, sender = noise.launches(bursts(of), of)
    assert (receiver.phase, receiver.host, receiver.itself) == ("serve", "h11", False)
    assert (sender.phase, sender.host, sender.longest_s) == ("load", "h6", of.background_ns / 1e9)
    assert sender.argv[sender.argv.index("--duration") + 1] == str(of.background_ns)
    assert sender.argv[6:10] == ("--interval", "2536000000", "--burst", "400")


def test_every_request_has_its_time(tmp_path: Path) -> None:
    of = trial("udp_400")
    found = table("q2pc", commits(of), of, tmp_path)
    assert found.num_rows == 6 and found["latency_us"].null_count == 0
    first = found.slice(0, 1).to_pylist()[0]
    assert first["start_ns"] < first["votes_ns"] < first["start_ns"] + first["latency_us"] * 1e3
    values = q2pc_measures.values(found, commits(of), of, facts(found, "start_ns", of))
    assert (values["failed"], values["retries"], values["loss"], values["sent"]) == (0, 0, 0, 6)
    assert values["requests_per_s"] == pytest.approx(6 / (of.duration_ns / 1e9))


def test_a_request_without_all_answers_has_failed(tmp_path: Path) -> None:
    of = trial("udp_400")
    table("q2pc", commits(of), of, tmp_path)
    path = tmp_path / f"{commits(of).name}-h1.q2pc.txt"
    lines = path.read_text().splitlines()
    start, _, end, _, _ = lines[3].split()
    lines[3] = f"{start} 0 {end} 2 1"
    path.write_text("\n".join(lines) + "\n")
    found = tables.table(commits(of), of, tmp_path)
    assert (
        found["latency_us"].is_null().to_pylist()
        == found["votes_ns"].is_null().to_pylist()
        == [False, True, False, False, False, False]
    )
    values = q2pc_measures.values(found, commits(of), of, facts(found, "start_ns", of))
    assert (values["failed"], values["retries"]) == (1, 2)
    assert values["loss"] == pytest.approx(1 / 6)
    path.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(LostError, match="q2pc's log has no end"):
        tables.table(commits(of), of, tmp_path)


@pytest.mark.parametrize(("name", "errors"), [("qjump_1", 7), ("udp_1", 7), ("tcp_1", 0)])
def test_late_answers_to_the_coordinator_get_an_icmp_error(name: str, errors: int) -> None:
    """By its kernel, at level 0, in frames that the links count."""
    of = trial(name)
    workload = commits(of)
    data = pa.table({"latency_us": pa.array([], pa.float64())})
    facts = TrialFacts(cpu_busy=0.1, window_s=(0.0, 9e9), began_ns=0, began_utc_ns=0)
    found = list(q2pc_measures.moved(Said(workload, data, of, facts, lambda name: "")))
    from_kernel = [one for one in found if one.level == 0 and one.sent_frames == 1]
    assert [one.flow for one in from_kernel] == ([*workload.flows] if errors else [])
    assert len(from_kernel) == errors


@pytest.mark.parametrize(("intervals", "status"), [(3.5, "pass"), (4.5, "fail")])
def test_measurement_after_the_last_burst_is_reported(intervals: float, status: str) -> None:
    """A connection whose SYN was lost is there a second later, and by then a short run's bursts are
    over."""
    of = trial("tcp_1")
    workload = bursts(of)
    starts = [number * workload.interval_ns for number in range(3)]
    rows = pa.table({"flow": [">".join(workload.flows[0])] * 3, "start_ns": starts})
    window_s = (0.0, intervals * workload.interval_ns / 1e9)
    facts = TrialFacts(cpu_busy=0.1, window_s=window_s, began_ns=0, began_utc_ns=0)
    data = TrialTables(of, facts, {workload.name: rows}, None)
    (check,) = noise_measures.checks("virtual", [data])
    assert check.status == status
    assert check.text.endswith("the rest was not disturbed") == (status == "fail")
