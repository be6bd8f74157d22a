"""What programs cost: seconds in the guest, packets in the simulator."""

from __future__ import annotations

import bz2
import time

import pytest

from bench import costs as bench
from bench import marks
from qjump_mn import costs
from qjump_mn.backends.guest import GuestBackend
from qjump_mn.backends.host import HostBackend
from qjump_mn.backends.simulator import SimulatorBackend
from qjump_mn.costs import ArmCost, Costs, Expected, PresetCost
from qjump_mn.guest import outer
from qjump_mn.model import resolve
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.programs.flows.program import MEAN_PACKETS, FlowsPlan
from qjump_mn.programs.ping.program import PingPlan


def trial(experiment: str, preset: str, arm: str, *settings: str) -> Trial:
    return next(
        one for one in resolve.plan(experiment, preset, list(settings)).trials() if one.arm.name == arm
    )


@pytest.mark.parametrize(
    ("of", "busy"),
    [
        (trial("fig3a", "smoke", "contended"), {"ping": 0.0, "bulk": 0.7}),
        (trial("fig3b", "smoke", "contended"), {"memcached": 0.0, "job": 1.6}),
        (trial("course16", "smoke", "contended"), {"ptp": 0.0, "memcached": 1.5, "job": 1.6}),
        (trial("fig6", "smoke", "qjump_400"), {"broadcast": 1.3, "bursts": 0.5, "steady": 0.7}),
    ],
    ids=lambda value: value.arm.name if isinstance(value, Trial) else "",
)
def test_only_the_closed_loop_of_memcached_is_busy(of: Trial, busy: dict[str, float]) -> None:
    assert {workload.name: workload.busy for workload in of.arm.workloads} == busy


def test_the_seconds_of_a_trial_are_those_of_its_programs() -> None:
    contended = trial("fig3a", "smoke", "contended")
    virtual_s = (contended.warmup_ns + contended.duration_ns) / 1e9
    assert costs.said_s(contended, GuestBackend()) == costs.BOOT_S + 12 * costs.HOST_S + virtual_s * (
        costs.QUIET + costs.BUSY * 0.7
    )


def test_in_a_machine_around_it_a_guest_takes_longer_and_no_simulator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(costs, "slowness", lambda: 1.0)
    plan = resolve.plan("fig3a", "smoke", [])
    backends = GuestBackend(), SimulatorBackend()
    took = [list(costs.seconds(plan, one, plan.trials()).values()) for one in backends]
    monkeypatch.setenv(outer.VARIABLE, "1")
    again = [list(costs.seconds(plan, one, plan.trials()).values()) for one in backends]
    assert again == [pytest.approx([outer.SLOWER * seconds for seconds in took[0]]), took[1]]


@pytest.fixture
def of_fig3a(monkeypatch: pytest.MonkeyPatch) -> Costs:
    """Two arms of a preset were measured, on a machine as fast as this one."""
    arms = {
        name: ArmCost(costs.arm_key(trial("fig3a", "smoke", name)), seconds)
        for name, seconds in {"idle": 3.0, "contended": 30.0}.items()
    }
    arms["qjump"] = ArmCost("of another", 1000.0)
    found = Costs(1.0, {"fig3a/smoke": PresetCost("guest", "processor", 300, arms)})
    monkeypatch.setattr(costs, "measured", lambda: found)
    monkeypatch.setattr(costs, "slowness", lambda: 1.0)
    return found


def alone_s(plan: Plan) -> dict[str, float]:
    seconds = costs.seconds(plan, GuestBackend(), plan.trials())
    return {name.partition("/")[0]: each for name, each in seconds.items()}


def test_a_measured_arm_takes_what_it_took(of_fig3a: Costs) -> None:
    found = alone_s(resolve.plan("fig3a", "smoke", [], seed=5))
    assert found["idle"] == pytest.approx(3.0) and found["contended"] == pytest.approx(30.0)


def test_one_with_other_settings_takes_as_many_times_longer_as_its_programs_say(of_fig3a: Costs) -> None:
    longer = resolve.plan("fig3a", "smoke", ["duration=60s"])
    said = {
        each.arm.name: costs.said_s(each, GuestBackend()) / costs.said_s(usual, GuestBackend())
        for each, usual in zip(longer.trials(), resolve.plan("fig3a", "smoke", []).trials(), strict=True)
    }
    assert alone_s(longer)["contended"] == pytest.approx(30.0 * said["contended"])


def test_one_that_nobody_has_measured_is_as_far_from_its_programs_words_as_the_others(
    of_fig3a: Costs,
) -> None:
    backend = GuestBackend()
    known = [trial("fig3a", "smoke", name) for name in ("idle", "contended")]
    factor = 33.0 / sum(costs.said_s(each, backend) for each in known)
    for preset in ("smoke", "course"):
        qjump = trial("fig3a", preset, "qjump")
        found = alone_s(resolve.plan("fig3a", preset, []))
        assert found["qjump"] == pytest.approx(factor * costs.said_s(qjump, backend)), preset
    fast = trial("fig3a", "paper", "qjump")
    assert alone_s(resolve.plan("fig3a", "paper", []))["qjump"] == costs.said_s(fast, backend)


def test_one_that_another_preset_has_too_takes_what_it_took_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The preset 'paper' is 'course' with more seeds."""
    course = {each.arm.name: each for each in resolve.plan("hadoop", "course", []).trials()}
    arms = {
        name: ArmCost(costs.arm_key(course[name]), seconds)
        for name, seconds in {"droptail": 7.0, "droptail_deep": 9.0}.items()
    }
    found = Costs(1.0, {"hadoop/course": PresetCost("simulator", "processor", 80, arms)})
    monkeypatch.setattr(costs, "measured", lambda: found)
    monkeypatch.setattr(costs, "slowness", lambda: 1.0)
    plan = resolve.plan("hadoop", "paper", [])
    backend = SimulatorBackend()
    seconds = costs.seconds(plan, backend, plan.trials())
    assert seconds["droptail/1"] == seconds["droptail/5"] == pytest.approx(7.0)
    assert seconds["droptail_deep/3"] == pytest.approx(9.0)
    factors = costs.Factors(plan, backend, found)
    known = {each.arm.name for each in plan.trials() if factors.measured(each)}
    assert known == {"droptail", "droptail_deep"}


def test_trials_run_on_several_cores_and_then_comes_the_report(of_fig3a: Costs) -> None:
    backend = GuestBackend()
    backend.parallel = 2
    plan = resolve.plan("fig3a", "smoke", [], replicates=2, only=["idle", "contended"])
    expected = costs.expected(plan, backend)
    # idle and contended, then idle beside contended still, then the second contended.
    assert expected.seconds == pytest.approx(3 + 3 + 30 + costs.JUDGED_S)
    assert expected.memory_mb == 2 * 300 + costs.HARNESS_MB
    assert costs.expected(plan, backend, []).seconds == 0.0


def test_a_slower_machine_takes_longer(of_fig3a: Costs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "slowness", lambda: 3.0)
    plan = resolve.plan("fig3a", "smoke", [])
    assert alone_s(plan)["idle"] == pytest.approx(9.0)
    virtual_s = (plan.warmup_ns + plan.duration_ns) / 1e9
    on_the_host = costs.seconds(plan, HostBackend(), plan.trials())
    assert set(on_the_host.values()) == {costs.REAL_S + virtual_s}, "whose clock is everybody's"


def test_the_fixed_work_is_the_machines_own_whatever_else_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    really, slept_s = bz2.compress, 0.2

    def compress(text: bytes) -> bytes:
        time.sleep(slept_s)  # as if others had the processor
        return really(text)

    alone_s = costs.work_s()
    monkeypatch.setattr(bz2, "compress", compress)
    began = time.monotonic()
    assert alone_s > 0.0 and costs.work_s() < (time.monotonic() - began) / costs.TRIED - slept_s / 2


def test_what_is_delivered_is_of_the_presets_as_they_are() -> None:
    for name, preset in costs.measured().presets.items():
        experiment, _, of = name.partition("/")
        usual = {costs.arm_key(each) for each in resolve.plan(experiment, of, []).trials()}
        assert {arm.run for arm in preset.arms.values()} <= usual, name


def test_the_page_has_the_table_of_the_file() -> None:
    assert marks.read(bench.PAGE, "costs") == bench.table(costs.measured())


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (Expected(48.4, 512.0), "about 48 s, 0.5 GB of memory"),
        (Expected(150.0, 2048.0), "about 2 min, 2 GB of memory"),
        (Expected(9000.0, None), "about 2 h"),
    ],
)
def test_what_is_expected_is_told_in_words(expected: Expected, words: str) -> None:
    assert costs.told(expected) == words


def test_the_packets_of_a_simulated_trial_are_those_of_its_programs() -> None:
    backend = SimulatorBackend()
    idle, contended, levels = (trial("fig3a", "10g", arm) for arm in ("idle", "contended", "qjump"))
    ping = idle.arm.workloads[0]
    assert isinstance(ping, PingPlan) and backend.cost(idle) == 2 * ping.count
    bulk_s = (contended.warmup_ns + contended.duration_ns) / 1e9
    assert backend.cost(contended) == pytest.approx(backend.cost(idle) + 3 * 1e10 * bulk_s / 8 / 1500)
    assert backend.cost(levels) == 2 * backend.cost(contended), "packets with levels take twice the events"
    poisson = trial("fig9", "smoke", resolve.plan("fig9", "smoke", []).arms[0].name)
    flows = poisson.arm.workloads[0]
    assert isinstance(flows, FlowsPlan) and flows.packets(poisson) == flows.count * MEAN_PACKETS["search"]
