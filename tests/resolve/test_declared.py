"""What is declared and drawn: rates that differ from link to link, and the times of hosts'
programs."""

from __future__ import annotations

import pytest

from qjump_mn.backends import emulated
from qjump_mn.errors import UsageError
from qjump_mn.executor.steps import Run, Start
from qjump_mn.model.clock import ClockPlan
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.resolve import plan
from qjump_mn.steps.compile import trial_steps

WITHIN = "link.tolerance=200ppm"


def fig3a(*settings: str, replicates: int = 1) -> Plan:
    return plan("fig3a", "smoke", list(settings), replicates=replicates)


def test_no_link_is_slower_than_its_rate_and_each_is_faster_by_the_tolerance_at_most() -> None:
    resolved = fig3a(WITHIN, "link.trunk_rate=40Mbit", replicates=20)
    off = []
    for trial in resolved.trials():
        for device, link in trial.network.by_device().items():
            nominal = resolved.shown.network.by_device()[device].rate_bps
            off.append((link.rate_bps - nominal) / nominal)
    assert 0 <= min(off) < 2e-6 and 198e-6 < max(off) <= 200e-6
    assert sum(off) / len(off) == pytest.approx(100e-6, rel=0.05)


def test_both_ways_of_a_link_have_one_rate_and_each_seed_has_its_own() -> None:
    first, second = (one for one in fig3a(WITHIN, replicates=2).trials() if one.arm.name == "idle")
    for above, below in first.network.ports():
        links = first.network.by_device()
        assert links[above[1]].rate_bps == links[below[1]].rate_bps
    assert first.network != second.network
    assert first.network == fig3a(WITHIN).trials()[0].network
    assert first.hash != second.hash


def test_links_have_exactly_their_rates_unless_told() -> None:
    resolved = fig3a(replicates=2)
    assert all(trial.network == resolved.shown.network for trial in resolved.trials())


def test_every_arm_of_a_seed_has_the_same_links() -> None:
    assert len({trial.network for trial in fig3a(WITHIN).trials()}) == 1


@pytest.mark.parametrize("model", ["htb", "tbf"])
def test_links_that_send_at_no_exact_rate_have_no_tolerance(model: str) -> None:
    with pytest.raises(UsageError, match=r"link\.tolerance is for links of model wire"):
        fig3a(f"link.model={model}", "link.tolerance=100ppm")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("link.tolerance=2000ppm", "link.tolerance = 2000ppm is out of range: use at most 1000ppm"),
        ("link.tolerance=100", "is not a tolerance: write a number and one of the units ppb, ppm"),
        ("clock.wakeup=20ms", "clock.wakeup = 20ms is out of range: use at most 10ms"),
        ("clock.syscall=11ms", "clock.syscall = 11ms is out of range: use at most 10ms"),
    ],
)
def test_what_is_out_of_range_is_refused(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        fig3a(setting)


def test_largest_declared_values_are_allowed() -> None:
    resolved = fig3a("link.tolerance=1000ppm", "clock.wakeup=10ms", "clock.syscall=10ms")
    assert resolved.run.arms[0].clock == ClockPlan(syscall_ns=10**7, wakeup_ns=10**7)


def clock_lines(trial: Trial) -> list[str]:
    return [
        line
        for step in trial_steps(trial)
        if isinstance(step, Run) and "time_travel" in step.argv[-1]
        for line in step.argv[-1].splitlines()
    ]


def test_declared_times_begin_before_any_program_and_with_the_trials_seed() -> None:
    resolved = plan("fig3a", "smoke", ["clock.wakeup=2us", "clock.syscall=300ns"], seed=7)
    trial = resolved.trials()[0]
    folder = "/sys/module/time_travel/parameters"
    assert clock_lines(trial) == [
        f"echo 300 >{folder}/syscall_ns",
        f"echo 2000 >{folder}/wake_ns",
        f"echo 7 >{folder}/seed",
    ]
    steps = trial_steps(trial)
    place = next(
        index
        for index, step in enumerate(steps)
        if isinstance(step, Run) and "time_travel" in step.argv[-1]
    )
    assert not any(isinstance(step, Start) for step in steps[:place])
    assert any(isinstance(step, Start) for step in steps[place:])
    assert clock_lines(fig3a().trials()[0]) == [], "and nothing by default"


def test_a_hosts_own_kernel_has_no_declared_times() -> None:
    with pytest.raises(UsageError, match=r"clock: a host's own kernel .* use --backend guest"):
        emulated.check(plan("fig3a", "smoke", ["clock.wakeup=2us"], backend="host"))


def test_what_is_declared_is_told() -> None:
    resolved = fig3a("clock.wakeup=2us")
    assert resolved.shown.network.told_links == "10 Mb/s links"
    assert fig3a(WITHIN).shown.network.told_links == "10 Mb/s links (up to 200 ppm more)"
    assert resolved.arms[0].clock is not None
    assert resolved.arms[0].clock.told == "wake-ups of 2 us on average put in"
