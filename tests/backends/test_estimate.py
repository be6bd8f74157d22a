"""Estimates of time and memory: what programs say, corrected by what trials took here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from qjump_mn import cache, resolve
from qjump_mn.backends import estimate
from qjump_mn.backends.estimate import Estimate
from qjump_mn.backends.guest import GuestBackend
from qjump_mn.backends.host import HostBackend
from qjump_mn.backends.simulator import SimulatorBackend
from qjump_mn.guest import outer
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.programs.flows.program import MEAN_PACKETS, FlowsPlan
from qjump_mn.programs.hooks import HasPackets, packets
from qjump_mn.programs.ping.program import PingPlan
from qjump_mn.results.manifest import TrialRecord


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of earlier runs, which does not exist yet."""
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / estimate.NAME


def trial(experiment: str, preset: str, arm: str) -> Trial:
    trials = resolve.plan(experiment, preset, []).trials()
    return next(one for one in trials if one.arm.name == arm)


def record(cpu_s: float | None, memory_mb: int | None = None) -> TrialRecord:
    return TrialRecord(status="done", exit_code=0, wall_s=1000.0, cpu_s=cpu_s, memory_mb=memory_mb)


def seconds_of_arms(plan: Plan) -> dict[str, float]:
    seconds = estimate.each_trial(plan, GuestBackend(), plan.trials())
    return {name.partition("/")[0]: each for name, each in seconds.items()}


@pytest.fixture
def fig3a_ran() -> Mapping[str, float]:
    """Two arms of a preset have run here; the factors by which they took longer."""
    plan, took = resolve.plan("fig3a", "smoke", []), {"idle/1": 3.0, "contended/1": 30.0}
    estimate.note(
        plan, GuestBackend(), {name: record(seconds, 300) for name, seconds in took.items()}
    )
    trials = {one.name: one for one in plan.trials()}
    factors = {
        name: took[name] / estimate.by_programs(trials[name], GuestBackend()) for name in took
    }
    return {name.partition("/")[0]: factor for name, factor in factors.items()}


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        # Two a ping; in 7 s three senders fill 10 Mb/s with packets of 1500 B.
        (trial("fig3a", "smoke", "contended"), {"ping": 800, "bulk": 17_500}),
        # As many requests as a server answers in 3.5 s. A round copies 45.6 MB, of which the master
        # sends and gets 0.8 MB and a worker gets 5.6 MB: 5.12 ms at 10 Gb/s, and 60 ms of computing.
        (
            trial("fig3b", "paper", "contended"),
            {"memcached": 2_100_000, "job": 3.55 / 0.06512 * 45.6e6 / 1500},
        ),
        # Four messages of seven peers in 2.7 s; a request takes four one-way times of 0.2368 ms.
        (trial("fig6", "smoke", "qjump_400"), {"broadcast": 4 * 7 * 2.7e3 / 0.9472}),
    ],
    ids=lambda value: value.arm.name if isinstance(value, Trial) else "",
)
def test_programs_state_their_packets(of: Trial, expected: dict[str, float]) -> None:
    programs = {workload.name: workload for workload in of.arm.workloads}
    for name, count in expected.items():
        workload = programs[name]
        assert isinstance(workload, HasPackets)
        assert workload.packets(of) == pytest.approx(count)


def test_guest_seconds_follow_hosts_and_packets() -> None:
    contended = trial("fig3a", "smoke", "contended")
    expected = estimate.BOOT_S + 12 * estimate.HOST_S + estimate.QUIET * contended.length_ns / 1e9
    expected += estimate.FRAME_S * packets(contended)
    assert estimate.by_programs(contended, GuestBackend()) == pytest.approx(expected)


def test_outer_machine_slows_guest_but_not_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = resolve.plan("fig3a", "smoke", [])
    backends = GuestBackend(), SimulatorBackend()
    before = [list(estimate.each_trial(plan, one, plan.trials()).values()) for one in backends]
    monkeypatch.setenv(outer.VARIABLE, "1")
    after = [list(estimate.each_trial(plan, one, plan.trials()).values()) for one in backends]
    assert after == [pytest.approx([outer.SLOWER * seconds for seconds in before[0]]), before[1]]


def test_arm_takes_what_it_took_in_its_last_run(fig3a_ran: Mapping[str, float]) -> None:
    plan = resolve.plan("fig3a", "smoke", [], seed=5)
    assert seconds_of_arms(plan)["idle"] == pytest.approx(3.0, rel=1e-3)
    assert seconds_of_arms(plan)["contended"] == pytest.approx(30.0, rel=1e-3)
    estimate.note(plan, GuestBackend(), {"idle/5": record(6.0)})
    assert seconds_of_arms(plan)["idle"] == pytest.approx(6.0, rel=1e-3)
    assert seconds_of_arms(plan)["contended"] == pytest.approx(30.0, rel=1e-3)


def test_other_settings_scale_what_an_arm_took(fig3a_ran: Mapping[str, float]) -> None:
    longer = resolve.plan("fig3a", "smoke", ["duration=60s"])
    said = {one.arm.name: estimate.by_programs(one, GuestBackend()) for one in longer.trials()}
    expected = fig3a_ran["contended"] * said["contended"]
    assert seconds_of_arms(longer)["contended"] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("experiment", "preset", "arm"), [("fig3a", "smoke", "qjump"), ("fig3a", "paper", "qjump")]
)
def test_arm_that_never_ran_takes_the_median_factor(
    fig3a_ran: Mapping[str, float], experiment: str, preset: str, arm: str
) -> None:
    factor = sum(fig3a_ran.values()) / 2
    expected = factor * estimate.by_programs(trial(experiment, preset, arm), GuestBackend())
    found = seconds_of_arms(resolve.plan(experiment, preset, []))[arm]
    assert found == pytest.approx(expected, rel=1e-3)


def test_own_preset_comes_before_others_of_its_experiment(fig3a_ran: Mapping[str, float]) -> None:
    plan = resolve.plan("fig3a", "course", [])
    idle = trial("fig3a", "course", "idle")
    took = 10 * estimate.by_programs(idle, GuestBackend())
    estimate.note(plan, GuestBackend(), {"idle/1": record(took)})
    qjump = estimate.by_programs(trial("fig3a", "course", "qjump"), GuestBackend())
    assert seconds_of_arms(plan)["qjump"] == pytest.approx(10 * qjump, rel=1e-3)
    assert seconds_of_arms(plan)["contended"] != pytest.approx(30.0)


def test_backends_and_experiments_are_noted_apart(fig3a_ran: Mapping[str, float]) -> None:
    idle, backend = trial("fig3a", "smoke", "idle"), SimulatorBackend()
    seconds = estimate.each_trial(resolve.plan("fig3a", "smoke", []), backend, [idle])
    assert seconds == {"idle/1": estimate.by_programs(idle, backend)}
    other = trial("fig3b", "smoke", "idle")
    seconds = estimate.each_trial(resolve.plan("fig3b", "smoke", []), GuestBackend(), [other])
    assert seconds == {"idle/1": estimate.by_programs(other, GuestBackend())}


def test_lost_and_reused_trials_are_not_noted(empty_cache: Path) -> None:
    plan = resolve.plan("fig3a", "smoke", [])
    lost = TrialRecord(status="lost", exit_code=5, message="it died", wall_s=1.0, cpu_s=1.0)
    estimate.note(plan, GuestBackend(), {"idle/1": lost, "contended/1": record(None)})
    assert not empty_cache.exists()


def test_unreadable_file_counts_as_none(empty_cache: Path, fig3a_ran: Mapping[str, float]) -> None:
    plan = resolve.plan("fig3a", "smoke", [])
    empty_cache.write_text('{"guest/fig3a/smoke/idle": "long"}')
    idle = estimate.by_programs(trial("fig3a", "smoke", "idle"), GuestBackend())
    assert seconds_of_arms(plan)["idle"] == idle
    estimate.note(plan, GuestBackend(), {"idle/1": record(6.0)})
    assert seconds_of_arms(plan)["idle"] == pytest.approx(6.0, rel=1e-3)


def test_run_goes_on_where_nothing_can_be_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QJUMP_MN_CACHE", "/proc/cache")
    estimate.note(resolve.plan("fig3a", "smoke", []), GuestBackend(), {"idle/1": record(3.0)})


def test_user_sees_what_root_noted_until_they_run_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fig3a_ran: Mapping[str, float],
    empty_cache: Path,
) -> None:
    roots = [empty_cache.parent, tmp_path / "own"]
    monkeypatch.setattr(cache, "roots", lambda: roots)
    monkeypatch.setattr(cache, "writable_root", lambda: roots[1])
    roots[1].mkdir()
    plan = resolve.plan("fig3a", "smoke", [])
    assert seconds_of_arms(plan)["idle"] == pytest.approx(3.0, rel=1e-3)
    estimate.note(plan, GuestBackend(), {"idle/1": record(6.0)})
    assert seconds_of_arms(plan)["idle"] == pytest.approx(6.0, rel=1e-3)


def test_trials_run_on_several_cores_before_the_report(fig3a_ran: Mapping[str, float]) -> None:
    backend = GuestBackend()
    backend.parallel = 2
    plan = resolve.plan("fig3a", "smoke", [], replicates=2, only=["idle", "contended"])
    expected = estimate.run(plan, backend)
    # idle and contended, then idle beside contended still, then the second contended.
    assert expected.seconds == pytest.approx(3 + 3 + 30 + estimate.JUDGE_S, rel=1e-3)
    assert expected.memory_mb == 2 * 300 + estimate.HARNESS_MB
    assert estimate.run(plan, backend, []).seconds == 0.0


def test_real_clock_is_not_noted(empty_cache: Path) -> None:
    plan, backend = resolve.plan("fig3a", "smoke", []), HostBackend()
    virtual_s = (plan.run.warmup_ns + plan.run.duration_ns) / 1e9
    seconds = estimate.each_trial(plan, backend, plan.trials())
    assert set(seconds.values()) == {estimate.REAL_S + virtual_s}
    estimate.note(plan, backend, {"idle/1": record(cpu_s=None)})
    assert not empty_cache.exists()


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (Estimate(48.4, 512.0), "about 48 s, 0.5 GB of memory"),
        (Estimate(150.0, 2048.0), "about 2 min, 2 GB of memory"),
        (Estimate(9000.0, None), "about 2 h"),
    ],
)
def test_estimate_in_words(expected: Estimate, words: str) -> None:
    assert str(expected) == words


def test_packets_of_a_simulated_trial_come_from_its_programs() -> None:
    backend = SimulatorBackend()
    idle, contended, levels = (trial("fig3a", "10g", arm) for arm in ("idle", "contended", "qjump"))
    ping = idle.arm.workloads[0]
    assert isinstance(ping, PingPlan) and backend.cost(idle) == 2 * ping.count
    bulk_s = contended.length_ns / 1e9
    assert backend.cost(contended) == pytest.approx(
        backend.cost(idle) + 3 * 1e10 * bulk_s / 8 / 1500
    )
    assert backend.cost(levels) == 2 * backend.cost(contended), (
        "packets with levels take twice the events"
    )
    poisson = trial("fig9", "smoke", resolve.plan("fig9", "smoke", []).arms[0].name)
    flows = poisson.arm.workloads[0]
    assert isinstance(flows, FlowsPlan)
    assert flows.packets(poisson) == flows.count * MEAN_PACKETS["search"]
