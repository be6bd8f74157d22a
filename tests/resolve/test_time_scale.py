"""How much shorter times are on faster links, and what a plan and its steps make of it."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from qjump_mn import resolve, session
from qjump_mn.backends import emulated, estimate
from qjump_mn.backends.guest import GuestBackend
from qjump_mn.errors import UsageError
from qjump_mn.executor.steps import Measure, Sleep, Start
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.programs.ping import program as ping
from qjump_mn.programs.ping.parse import parse_nsping
from qjump_mn.steps.compile import LATENESS_EVERY_S, trial_steps

GIGABIT = ("link.rate=1Gbit", "warmup=100ms", "duration=200ms", "workloads.ping.interval=1ms")


def fig3a(*settings: str, backend: str = "guest") -> Plan:
    return resolve.plan("fig3a", "smoke", list(settings), backend=backend)


def trial_of(plan: Plan, arm: str) -> Trial:
    return next(trial for trial in plan.trials() if trial.arm.name == arm)


@pytest.mark.parametrize(
    ("rate", "time_scale"),
    [("1Mbit", 1), ("10Mbit", 1), ("11Mbit", 10), ("100Mbit", 10), ("1Gbit", 100), ("2Gbit", 1000), ("10Gbit", 1000)],
)  # fmt: skip
@pytest.mark.parametrize("backend", ["guest", "simulator"])
def test_the_fastest_link_chooses(rate: str, time_scale: int, backend: str) -> None:
    plan = fig3a(f"link.rate={rate}", backend=backend)
    assert {arm.time_scale for arm in plan.arms} == {time_scale}


def test_a_trunk_may_be_the_fastest_link() -> None:
    assert {arm.time_scale for arm in fig3a("link.trunk_rate=1Gbit").arms} == {100}


def test_where_code_takes_time_it_takes_no_less_on_fast_links() -> None:
    slow, fast = (fig3a(f"link.rate={rate}", backend="host") for rate in ("10Mbit", "10Gbit"))
    assert {arm.time_scale for plan in (slow, fast) for arm in plan.arms} == {1}
    assert {arm.qjump.slack_ns for plan in (slow, fast) for arm in plan.arms if arm.qjump} == {
        25_000,
        0,
    }
    assert {arm.qjump.slack_ns for arm in fig3a("link.rate=10Gbit").arms if arm.qjump} == {25, 0}


def test_guest_and_simulator_have_the_same_plan() -> None:
    settings = (*GIGABIT, "schemes.qjump.limiter=delay")
    assert fig3a(*settings).hash == fig3a(*settings, backend="simulator").hash
    assert fig3a(*settings).hash != fig3a(*settings, backend="host").hash


def test_times_are_divided() -> None:
    slow, fast = (trial_of(plan, "contended") for plan in (fig3a(), fig3a("link.rate=1Gbit")))
    offsets = [
        next(step.after_s for step in trial_steps(trial) if isinstance(step, Sleep))
        for trial in (slow, fast)
    ]
    assert offsets[1] == pytest.approx(offsets[0] / 100, abs=1e-9)
    measured_ns = slow.warmup_ns + slow.duration_ns
    assert slow.background_ns >= measured_ns + 10**9
    assert measured_ns + 10**7 <= fast.background_ns <= measured_ns + 3 * 10**7


@pytest.mark.parametrize(("backend", "every_s"), [("guest", None), ("host", LATENESS_EVERY_S)])
def test_a_processor_is_watched_where_code_takes_time(backend: str, every_s: float | None) -> None:
    steps = trial_steps(trial_of(fig3a(backend=backend), "contended"))
    assert [step.every_s for step in steps if isinstance(step, Measure)] == [every_s]


def test_pings_are_ours_on_fast_links_unless_asked_otherwise() -> None:
    def sent_by(plan: Plan) -> str:
        steps = trial_steps(trial_of(plan, "idle"))
        return next(
            word
            for step in steps
            if isinstance(step, Start)
            for word in step.argv
            if "ping" in word
        )

    assert sent_by(fig3a()) == "ping"
    assert sent_by(fig3a(*GIGABIT)) == "nsping"
    assert sent_by(fig3a(*GIGABIT, backend="host")) == "ping"
    assert sent_by(fig3a('workloads.ping.tool="nsping"')) == "nsping"
    assert sent_by(fig3a(*GIGABIT, 'workloads.ping.tool="iputils"')) == "ping"


def test_only_iputils_has_a_shortest_interval() -> None:
    emulated.check(fig3a(*GIGABIT))
    with pytest.raises(UsageError, match=r'use that or more, or tool = "nsping"'):
        emulated.check(fig3a(*GIGABIT, 'workloads.ping.tool="iputils"'))


def test_the_least_duration_is_as_many_frames() -> None:
    emulated.check(fig3a(*GIGABIT, "duration=1ms"))
    with pytest.raises(UsageError, match="use 1ms or more"):
        emulated.check(fig3a(*GIGABIT, "duration=900us"))
    with pytest.raises(UsageError, match="use 100ms or more"):
        emulated.check(fig3a("duration=99ms"))


def test_a_run_of_more_than_a_day_is_refused_with_one_that_is_not(tmp_path: Path) -> None:
    request = session.Request(
        "fig3a", "smoke", ("link.rate=10Gbit", "duration=3600s"), out=tmp_path
    )
    with pytest.raises(
        UsageError, match=r"it would take about \d+ hours: use a warmup and a duration of at most"
    ) as told:
        session.run(request, Console(file=io.StringIO()))
    shorter_s = float(str(told.value).split("at most ")[1].split(" s ")[0])
    plan = fig3a("link.rate=10Gbit", "warmup=0s", f"duration={shorter_s:.4f}s")
    assert estimate.run(plan, GuestBackend()).seconds <= 1.05 * session.MAX_RUN_S
    assert not list(tmp_path.iterdir()), "before anything is made"


LOG = """# nsping 1 to=10.0.0.10 interval=1000000 count=3
# columns sequence sent_ns rtt_ns
1 1000 7732
2 1001000 0
3 2001000 24000
# end rows=3 early=0 sent=3 received=2 duplicates=0
"""


def test_the_log_of_nsping_becomes_echoes() -> None:
    echoes = parse_nsping(LOG, 3)
    assert [echo.sequence for echo in echoes] == [1, 2, 3]
    assert [echo.rtt_us for echo in echoes] == [7.732, None, 24.0]
    assert echoes[0].received_s == pytest.approx(8732e-9) and echoes[1].received_s is None


def test_linger_and_length_follow_the_links() -> None:
    plan = trial_of(fig3a(*GIGABIT), "idle").arm.workloads[0]
    assert (
        isinstance(plan, ping.PingPlan) and plan.longest_ns == (plan.count + 1) * plan.interval_ns
    )
    networks = [
        trial_of(fig3a(f"link.rate={rate}"), "idle").network for rate in ("10Mbit", "1Gbit")
    ]
    assert ping.linger_ns(networks[0]) == pytest.approx(100 * ping.linger_ns(networks[1]))
    assert (
        msgspec.structs.replace(plan, tool="iputils").longest_ns
        == 10 * plan.count * 10**6 + plan.interval_ns
    )


def test_a_script_is_for_a_machine_on_which_code_takes_time(tmp_path: Path) -> None:
    request = session.Request("fig3a", "paper", (), out=tmp_path)
    with pytest.raises(
        UsageError,
        match=r"^--dry-run writes a script for a machine on which code takes time: .*2 ms",
    ):
        session.print_script(request, Console(file=io.StringIO()))
