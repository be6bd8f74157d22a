"""The longest wait at each port, against cases that can be counted by hand, and the check of every
frame."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from qjump_mn import theory
from qjump_mn.analysis import fidelity
from qjump_mn.model import guarantee, hooks
from qjump_mn.model.plan import ArmPlan, Plan, Trial
from qjump_mn.model.ports import Port
from qjump_mn.programs.facts import Check
from qjump_mn.resolve import plan
from qjump_mn.results.directory import RunDirectory

FRAME_NS = 1_233_600
"""Of a full-size frame at 10 Mb/s."""
MEETING = ("s1", "h61")


@cache
def trials(experiment: str, preset: str, *settings: str) -> dict[str, Trial]:
    """The trials of a plan by the name of their arm."""
    return {one.arm.name: one for one in plan(experiment, preset, list(settings)).trials()}


def trial(name: str, experiment: str = "bound", preset: str = "course", *settings: str) -> Trial:
    return trials(experiment, preset, *settings)[name]


def waits(name: str, *settings: str) -> dict[tuple[Port, int], float]:
    return guarantee.of_arm(trial(name, "bound", "course", *settings).arm).waits_ns


@pytest.mark.parametrize("hosts", [3, 6, 12, 30, 60])
def test_where_n_hosts_meet_a_frame_waits_for_the_others(hosts: int) -> None:
    assert waits(f"rolling_{hosts}")[MEETING, 7] == (hosts - 1) * FRAME_NS
    assert waits(f"beside_{hosts}")[MEETING, 7] == hosts * FRAME_NS, "and for one of bulk"


@pytest.mark.parametrize("hosts", [3, 60])
def test_epochs_that_begin_with_the_clock_let_two_budgets_meet(hosts: int) -> None:
    arm = trial(f"aligned_{hosts}", "phases").arm
    assert guarantee.of_arm(arm).waits_ns[MEETING, 7] == (2 * hosts - 1) * FRAME_NS


@pytest.mark.parametrize("hosts", [3, 12, 60])
def test_what_waits_behind_its_own_host_comes_closer_together(hosts: int) -> None:
    """Departure times are given before a frame waits for its host's link: alone for nothing, beside
    bulk for a frame. Meanwhile hosts may send what they may in a frame's time, a frame together."""
    schemes = [f"arms.{arm}.scheme=qjump-edt" for arm in ("rolling", "beside")]
    assert waits(f"rolling_{hosts}", *schemes)[MEETING, 7] == (hosts - 1) * FRAME_NS
    assert waits(f"beside_{hosts}", *schemes)[MEETING, 7] == (hosts + 1) * FRAME_NS


NONE = {
    "early_3": "level 7 may offer 13.33 Mb/s to s1>h61, which carries 10 Mb/s",
    "early_60": "level 7 may offer 13.33 Mb/s to s1>h61, which carries 10 Mb/s",
    "twice_12": "level 7 may offer 20 Mb/s to s1>h61, which carries 10 Mb/s",
}


@pytest.mark.parametrize("arm", NONE)
def test_overloaded_link_has_no_bound_but_a_reason(arm: str) -> None:
    found = guarantee.of_arm(trial(arm).arm)
    assert (MEETING, 7) not in found.waits_ns
    assert found.unknown[MEETING, 7].text == NONE[arm]


def test_packets_of_24_bytes_are_more_on_the_wire_than_a_budget_charges() -> None:
    """Seen with five hosts at 10 Mb/s: 305 ms, beside a bound that was printed as 12 ms."""
    arm = trial("rolling_12").arm
    (urgent,) = (load for load in arm.workloads if load.level == 7)
    small = replace(urgent, payload_bytes=24)
    assert arm.qjump is not None
    as_kernel = replace(arm.qjump, overhead=0, mpu=0)
    found = guarantee.of_arm(replace(arm, workloads=(small,), qjump=as_kernel))
    assert found.waits_ns == {}
    # 1542 B are 23 packets of 66, which take 94 of the wire each.
    offered_bps = 12 * 23 * 94 * 8 / (arm.qjump.epoch_ns / 1e9)
    assert found.unknown[MEETING, 7].offered_bps == pytest.approx(offered_bps)
    # Where the wire is counted they are 16, 1504 B.
    counted = guarantee.of_arm(replace(arm, workloads=(small,)))
    assert counted.unknown == {}
    assert counted.waits_ns[MEETING, 7] == pytest.approx((12 * 16 - 1) * 94 * 800)


def test_no_host_offers_more_than_its_link_carries() -> None:
    arm = trial("qjump", "fig3a", "paper").arm
    (none,) = guarantee.worst(guarantee.of_arm(arm).unknown.values())
    assert none.text == "levels 0 and 7 may offer 30 Gb/s to s3>s0, which carries 10 Gb/s"
    arm = trial("qjump", "fig3a", "paper", "link.tolerance=200ppm").arm
    planned = replace(arm, network=replace(arm.network, faster_ppb=()))
    (none,) = guarantee.worst(guarantee.of_arm(planned).unknown.values())
    assert none.offered_bps == pytest.approx(30e9 * (1 + 200e-6), rel=1e-12)


def test_links_that_are_faster_than_their_rate_change_no_bound() -> None:
    exact, within = (plan("bound", "course", [f"link.tolerance={ppm}ppm"]) for ppm in (0, 200))
    for one, other in zip(exact.arms, within.arms, strict=True):
        assert guarantee.of_arm(one).waits_ns == guarantee.of_arm(other).waits_ns
    for drawn in within.trials():
        bounds, most = (
            guarantee.of_arm(drawn.arm).waits_ns,
            guarantee.of_arm(exact_arm(exact, drawn)).waits_ns,
        )
        assert bounds.keys() == most.keys()
        assert all(most[key] * (1 - 4e-4) <= wait <= most[key] for key, wait in bounds.items())


def exact_arm(resolved: Plan, drawn: Trial) -> ArmPlan:
    return next(arm for arm in resolved.arms if arm.name == drawn.arm.name)


def test_a_host_may_send_faster_than_the_port_that_it_meets() -> None:
    """A level whose budget is more than a link is bounded where one host's frames come by only if
    that host's link is not the faster one."""
    exact, within = (plan("fig3a", "paper", [f"link.tolerance={ppm}ppm"]) for ppm in (0, 200))
    found = [
        len(guarantee.of_arm(next(arm for arm in one.arms if arm.qjump)).unknown)
        for one in (exact, within)
    ]
    assert found[0] < found[1]


def test_a_bound_that_is_not_known_is_a_remark_of_the_plan() -> None:
    remarks = plan("bound", "course", []).shown.remarks
    (early,) = (remark for remark in remarks if "13.33" in remark)
    assert (
        early == "early_3, early_6, early_12, early_30, early_60: no bound for level 7: "
        f"{NONE['early_3']}."
    )
    assert not any("rolling_" in remark for remark in remarks), "these have one"


def test_network_with_several_ways_has_no_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QJUMP_MN_PATH", str(Path(__file__).parents[2] / "examples"))
    made = plan("fig3a", "smoke", ["topology=two-ways"])
    assert any(arm.qjump and arm.qjump.mode == "delay" for arm in made.run.arms)
    assert {guarantee.of_arm(arm) == ({}, {}) for arm in made.run.arms} == {True}
    assert not any("no bound" in remark for remark in made.shown.remarks)


def test_a_level_without_a_limit_is_named_where_one_below_it_has_no_bound() -> None:
    arm = trial("qjump", "fig5", "course").arm
    qjump = replace(arm.qjump, budget_bytes=(0, 0, 0, 3072, 0, 0, 0, 0))  # type: ignore[type-var]
    found = guarantee.of_arm(replace(arm, qjump=qjump))
    (one,) = guarantee.worst(found.unknown.values())
    assert (one.level, one.levels) == (3, (7,)) and one.text.startswith("level 7 has no limit at ")


def test_a_frame_that_waited_comes_closer_to_the_next_one() -> None:
    arm = trial("qjump", "fig3a", "course").arm
    assert arm.qjump is not None
    (ping,) = (load for load in arm.workloads if load.name == "ping")
    level = ping.level
    found = {
        port: wait for (port, one), wait in guarantee.of_arm(arm).waits_ns.items() if one == level
    }
    own = theory.AROUND_FRAME_BYTES + theory.frame_bytes(hooks.packet_bytes(ping) or 0)
    packets = arm.qjump.budget_bytes[level] // arm.qjump.cost_bytes(hooks.packet_bytes(ping) or 0)
    first = 1542 + (packets - 1) * own
    assert found["s2", "s0"] == pytest.approx(first * 800)
    later = packets * own * first * 800 / arm.qjump.epoch_ns
    assert found["s0", "s3"] == pytest.approx((first + later) * 800)


def test_levels_above_count_and_those_without_a_limit_end_it() -> None:
    arm = trial("qjump", "fig5", "course").arm
    assert {level for _, level in guarantee.of_arm(arm).waits_ns} == {7, 3}
    port = ("s0", "s1")
    both = guarantee.of_arm(arm).waits_ns
    assert both[port, 3] > both[port, 7]
    qjump = replace(arm.qjump, budget_bytes=(0, 0, 0, 3072, 0, 0, 0, 0))  # type: ignore[type-var]
    unlimited = replace(arm, qjump=qjump)
    assert set(guarantee.of_arm(unlimited).waits_ns) == {(("s3", "s0"), 3)}, "where no PTP comes by"


def test_multicast_comes_to_all_hosts() -> None:
    found = guarantee.of_arm(trial("qjump", "fig5", "course").arm).waits_ns
    arm = trial("qjump", "fig5", "course").arm
    assert {port[1] for port, level in found if level == 7} >= set(arm.network.hosts)


@pytest.mark.parametrize("arm", ["idle", "contended", "qjump_drop", "priority_only"])
def test_without_a_limiter_that_charges_what_leaves_there_is_no_bound(arm: str) -> None:
    assert guarantee.of_arm(trial(arm, "fig3a", "course").arm).waits_ns == {}


def reading(arm: ArmPlan, **changes: Any) -> list[dict[str, Any]]:
    """What tc says of all switch ports, where nothing happened but at the one where all meet."""
    idle = {"level": 7, "packets": 0, "bytes": 0, "drops": 0, "max_wait_ns": 0, "max_late_ns": 0}
    devices = arm.network.interfaces()
    return [
        {
            "kind": "wire",
            "dev": device,
            "root": True,
            "levels": [idle | (changes if link == MEETING else {})],
        }
        for link, device in devices.items()
        if link[0] == "s1"
    ]


def bound(tmp_path: Path, one: Trial, text: str) -> list[Check]:
    folder = tmp_path / "trials" / one.name / "asbuilt" / "ended"
    folder.mkdir(parents=True)
    (folder / "tc-switches.json").write_text(text)
    run = cast(
        "RunDirectory", SimpleNamespace(asbuilt=lambda name: tmp_path / "trials" / name / "asbuilt")
    )
    return fidelity._bound(run, [cast("Any", SimpleNamespace(trial=one))])


@pytest.mark.parametrize(
    ("wait_ns", "late_ns", "status"),
    [
        (11 * FRAME_NS, 0, "pass"),
        (11 * FRAME_NS + 1, 0, "fail"),
        (11 * FRAME_NS + 400, 200, "pass"),
        (12 * FRAME_NS, FRAME_NS // 2, "pass"),
        (12 * FRAME_NS, 10 * FRAME_NS, "pass"),
        (12 * FRAME_NS + 1, 10 * FRAME_NS, "fail"),
    ],
)
def test_one_frame_that_waits_longer_is_not_passed_over(
    wait_ns: int, late_ns: int, status: str, tmp_path: Path
) -> None:
    one = trial("rolling_12")
    text = json.dumps(reading(one.arm, packets=500, max_wait_ns=wait_ns, max_late_ns=late_ns))
    (check,) = bound(tmp_path, one, text)
    assert (check.status, check.name) == (status, "bound")
    assert f"rolling_12/1: level 7 at s1>h61 waited {wait_ns / 1e3:.5g} us" in check.text
    assert ("none of 500 frames" in check.text) == (status == "pass")


@pytest.mark.parametrize(("wait_ns", "status"), [(0, "pass"), (1, "fail")])
def test_frames_of_one_host_alone_may_not_wait_at_a_switch(
    wait_ns: int, status: str, tmp_path: Path
) -> None:
    one = trial("rolling_3")
    workload = replace(one.arm.workloads[0], flows=one.arm.workloads[0].flows[:1])
    one = replace(one, arm=replace(one.arm, workloads=(workload,)))
    text = json.dumps(reading(one.arm, packets=5, max_wait_ns=wait_ns))
    (check,) = bound(tmp_path, one, text)
    assert check.status == status
    assert f"waited {wait_ns / 1e3:.5g} us, 0 is the most" in check.text


def test_what_came_late_allows_for_the_time_of_a_frame_at_most(tmp_path: Path) -> None:
    one = trial("rolling_12")
    text = json.dumps(reading(one.arm, packets=500, max_wait_ns=1, max_late_ns=FRAME_NS))
    (check,) = bound(tmp_path, one, text)
    assert check.status == "pass"
    assert "14803 is the most, 1233.6 of it for what came late, by 1233.6 us at most" in check.text


@pytest.mark.parametrize("arm", NONE)
def test_frames_without_a_bound_are_not_passed(arm: str, tmp_path: Path) -> None:
    one = trial(arm)
    (check,) = bound(
        tmp_path, one, json.dumps(reading(one.arm, packets=24_490, max_wait_ns=305_000_000))
    )
    assert (check.status, check.text) == ("unknown", f"no bound: {NONE[arm]}")


def test_a_reading_that_is_missing_is_told(tmp_path: Path) -> None:
    (check,) = bound(tmp_path, trial("rolling_12"), "[]")
    assert check.status == "fail"
    assert "asbuilt/ended/tc-switches.json does not mention s1-eth1" in check.text


def test_where_nothing_was_sent_there_is_nothing_to_check(tmp_path: Path) -> None:
    one = trial("rolling_12")
    assert bound(tmp_path, one, json.dumps(reading(one.arm))) == []
