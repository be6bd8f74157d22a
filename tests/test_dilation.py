"""The dilation of a clock: what is chosen, what is refused, and what a plan and its steps make of it."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from qjump_mn import costs, session
from qjump_mn.backends import emulated
from qjump_mn.backends.guest import GuestBackend
from qjump_mn.errors import UsageError
from qjump_mn.executor.steps import Measure, Run, Sleep, Start
from qjump_mn.model import clock, resolve
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.programs.ping import program as ping
from qjump_mn.steps.compile import trial_steps

GIGABIT = ("link.rate=1Gbit", "warmup=100ms", "duration=200ms", "workloads.ping.interval=1ms")


def fig3a(*settings: str, backend: str = "guest") -> Plan:
    return resolve.plan("fig3a", "smoke", list(settings), backend=backend)


def trial_of(plan: Plan, arm: str) -> Trial:
    return next(trial for trial in plan.trials() if trial.arm.name == arm)


@pytest.mark.parametrize(
    ("rate", "dilation"),
    [("1Mbit", 1), ("10Mbit", 1), ("11Mbit", 10), ("100Mbit", 10), ("1Gbit", 100), ("2Gbit", 1000), ("10Gbit", 1000)],
)  # fmt: skip
def test_the_fastest_link_chooses(rate: str, dilation: int) -> None:
    assert {arm.dilation for arm in fig3a(f"link.rate={rate}").arms} == {dilation}


def test_a_trunk_may_be_the_fastest_link() -> None:
    assert {arm.dilation for arm in fig3a("link.trunk_rate=1Gbit").arms} == {100}


def test_what_is_given_is_taken_and_said_with_its_reason() -> None:
    given, chosen = fig3a("clock.dilation=7"), fig3a("link.rate=1Gbit")
    assert {arm.dilation for arm in given.arms} == {7}
    assert [remark for remark in given.remarks if "dilated by 7 (as asked for)" in remark]
    assert [remark for remark in chosen.remarks if "dilated by 100 (chosen for links of 1 Gb/s)" in remark]
    assert not [remark for remark in fig3a().remarks if "dilated" in remark]


@pytest.mark.parametrize("dilation", [0, -1, clock.MOST + 1, 10**9])
def test_other_dilations_are_refused(dilation: int) -> None:
    with pytest.raises(
        UsageError, match=rf"clock.dilation = {dilation} is out of range: use 1 \(none\) to 4000"
    ):
        fig3a(f"clock.dilation={dilation}")


@pytest.mark.parametrize("backend", ["host", "simulator"])
def test_other_backends_have_no_such_clock(backend: str) -> None:
    plan = fig3a("clock.dilation=100", backend=backend)
    assert {arm.dilation for arm in plan.arms} == {1}
    assert plan.hash == fig3a(backend=backend).hash


def test_a_clock_that_is_not_dilated_leaves_a_plan_what_it_was() -> None:
    assert fig3a("clock.dilation=1").hash == fig3a().hash != fig3a("clock.dilation=2").hash
    assert trial_steps(fig3a("clock.dilation=1").trials()[0]) == trial_steps(fig3a().trials()[0])


def test_the_clock_is_slowed_down_before_anything_else() -> None:
    plan = fig3a(*GIGABIT)
    for trial in plan.trials():
        first, *rest = trial_steps(trial)
        assert isinstance(first, Run) and "modprobe dilate factor=100" in first.argv[-1]
        assert not any(isinstance(step, Run) and "dilate" in " ".join(step.argv) for step in rest)
    assert not any(
        isinstance(step, Run) and "dilate" in " ".join(step.argv) for step in trial_steps(fig3a().trials()[0])
    )


def test_what_is_of_the_machines_time_is_divided() -> None:
    plain, dilated = (trial_of(plan, "contended") for plan in (fig3a(), fig3a("clock.dilation=100")))
    offsets, watches = [], []
    for trial in (plain, dilated):
        steps = trial_steps(trial)
        offsets.append(next(step.after_s for step in steps if isinstance(step, Sleep)))
        watches.append(next(step.every_s for step in steps if isinstance(step, Measure)))
    assert offsets[1] == pytest.approx(offsets[0] / 100, abs=1e-9)
    assert watches[1] == watches[0] / 100
    measured_ns = plain.warmup_ns + plain.duration_ns
    assert plain.background_ns >= measured_ns + 10**9
    assert measured_ns + 10**7 <= dilated.background_ns <= measured_ns + 3 * 10**7


def test_pings_are_ours_on_a_dilated_clock_unless_asked_otherwise() -> None:
    def sent_by(plan: Plan) -> str:
        steps = trial_steps(trial_of(plan, "idle"))
        return next(word for step in steps if isinstance(step, Start) for word in step.argv if "ping" in word)

    assert sent_by(fig3a()) == "ping"
    assert sent_by(fig3a(*GIGABIT)) == "nsping"
    assert sent_by(fig3a('workloads.ping.tool="nsping"')) == "nsping"
    assert sent_by(fig3a(*GIGABIT, 'workloads.ping.tool="iputils"')) == "ping"


def test_only_iputils_has_a_shortest_interval() -> None:
    emulated.check(fig3a(*GIGABIT))
    with pytest.raises(UsageError, match=r'use that, or tool = "nsping"'):
        emulated.check(fig3a(*GIGABIT, 'workloads.ping.tool="iputils"'))


def test_the_least_duration_is_on_the_machines_clock() -> None:
    emulated.check(fig3a(*GIGABIT, "duration=1ms"))
    with pytest.raises(UsageError, match="use 1ms and more"):
        emulated.check(fig3a(*GIGABIT, "duration=900us"))
    with pytest.raises(UsageError, match="use 100ms and more"):
        emulated.check(fig3a("duration=99ms"))


def test_a_run_of_more_than_a_day_is_refused_with_one_that_is_not(tmp_path: Path) -> None:
    request = session.Request(
        "fig3a", "smoke", ("link.rate=10Gbit", "duration=600s"), 1, None, "", False, tmp_path
    )
    with pytest.raises(
        UsageError, match=r"it would take about \d+ hours: use a warmup and a duration of at most"
    ) as told:
        session.run(request, Console(file=io.StringIO()))
    shorter_s = float(str(told.value).split("at most ")[1].split(" s ")[0])
    plan = fig3a("link.rate=10Gbit", "warmup=0s", f"duration={shorter_s:.4f}s")
    assert costs.expected(plan, GuestBackend()).seconds <= 1.05 * session.LONGEST_S
    assert not list(tmp_path.iterdir()), "before anything is made"


LOG = """# nsping 1 to=10.0.0.10 interval=1000000 count=3
# columns sequence sent_ns rtt_ns
1 1000 7732
2 1001000 0
3 2001000 24000
# end rows=3 early=0 sent=3 received=2 duplicates=0
"""


def test_the_log_of_nsping_becomes_echoes() -> None:
    echoes = ping.parse_nsping(LOG, 3)
    assert [echo.sequence for echo in echoes] == [1, 2, 3]
    assert [echo.rtt_us for echo in echoes] == [7.732, None, 24.0]
    assert echoes[0].received_s == pytest.approx(8732e-9) and echoes[1].received_s is None


def test_linger_and_length_follow_the_links() -> None:
    plan = trial_of(fig3a(*GIGABIT), "idle").arm.workloads[0]
    assert isinstance(plan, ping.PingPlan) and plan.longest_ns == (plan.count + 1) * plan.interval_ns
    networks = [trial_of(fig3a(f"link.rate={rate}"), "idle").network for rate in ("10Mbit", "1Gbit")]
    assert ping.linger_ns(networks[0]) == pytest.approx(100 * ping.linger_ns(networks[1]))
    assert (
        msgspec.structs.replace(plan, tool="iputils").longest_ns == 10 * plan.count * 10**6 + plan.interval_ns
    )


def test_a_printed_script_leaves_the_clock_alone(tmp_path: Path) -> None:
    text = io.StringIO()
    request = session.Request("fig3a", "smoke", GIGABIT[:3], 1, None, "", False, tmp_path)
    assert session.show(request, Console(file=text)) == 0
    assert "rate 1000000000" in text.getvalue() and "dilate" not in text.getvalue()


def test_a_script_that_needs_a_slower_clock_says_so(tmp_path: Path) -> None:
    request = session.Request("fig3a", "paper", (), 1, None, "", False, tmp_path)
    with pytest.raises(
        UsageError, match=r"^--dry-run writes a script for a clock that nobody slows down: .*2 ms"
    ):
        session.show(request, Console(file=io.StringIO()))
