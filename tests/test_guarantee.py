"""The longest wait at each port, against cases that can be counted by hand, and the check of every frame."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from qjump_mn import guarantee, theory
from qjump_mn.analysis import fidelity
from qjump_mn.model.plan import ArmPlan, Trial
from qjump_mn.model.ports import Port
from qjump_mn.model.resolve import plan
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.outcome import Check

FRAME_NS = 1_233_600
"""Of a full-size frame at 10 Mb/s."""
MEETING = ("s1", "h61")


def trial(name: str, experiment: str = "bound", preset: str = "course", *settings: str) -> Trial:
    return next(one for one in plan(experiment, preset, list(settings)).trials() if one.arm.name == name)


def waits(name: str, *settings: str) -> dict[tuple[Port, int], float]:
    return guarantee.waits_ns(trial(name, "bound", "course", *settings).arm)


@pytest.mark.parametrize("hosts", [3, 6, 12, 30, 60])
def test_where_n_hosts_meet_a_frame_waits_for_the_others(hosts: int) -> None:
    assert waits(f"rolling_{hosts}")[MEETING, 7] == (hosts - 1) * FRAME_NS
    assert waits(f"beside_{hosts}")[MEETING, 7] == hosts * FRAME_NS, "and for one of bulk"


@pytest.mark.parametrize("hosts", [3, 60])
def test_epochs_that_begin_with_the_clock_let_two_budgets_meet(hosts: int) -> None:
    assert waits(f"aligned_{hosts}")[MEETING, 7] == (2 * hosts - 1) * FRAME_NS


@pytest.mark.parametrize("arm", ["early_3", "early_60", "twice_12"])
def test_where_more_is_let_through_than_the_link_carries_there_is_no_bound(arm: str) -> None:
    assert (MEETING, 7) not in waits(arm)


def test_a_frame_that_waited_comes_closer_to_the_next_one() -> None:
    arm = trial("qjump", "fig3a", "course").arm
    assert arm.qjump is not None
    (level,) = {level for _, level in guarantee.waits_ns(arm)}
    found = {port: wait for (port, _), wait in guarantee.waits_ns(arm).items()}
    (ping,) = (load for load in arm.workloads if load.name == "ping")
    own = theory.AROUND_FRAME_BYTES + theory.frame_bytes(ping.packet_bytes or 0)
    packets = arm.qjump.budget_bytes[level] // (theory.ETHERNET_HEADER_BYTES + (ping.packet_bytes or 0))
    first = 1542 + (packets - 1) * own
    assert found["s2", "s0"] == pytest.approx(first * 800)
    later = packets * own * first * 800 / arm.qjump.epoch_ns
    assert found["s0", "s3"] == pytest.approx((first + later) * 800)


def test_levels_above_count_and_those_without_a_limit_end_it() -> None:
    arm = trial("qjump", "fig5", "course").arm
    assert {level for _, level in guarantee.waits_ns(arm)} == {7, 3}
    port = ("s0", "s1")
    both = guarantee.waits_ns(arm)
    assert both[port, 3] > both[port, 7]
    qjump = msgspec.structs.replace(arm.qjump, budget_bytes=(0, 0, 0, 3072, 0, 0, 0, 0))  # type: ignore[type-var]
    unlimited = msgspec.structs.replace(arm, qjump=qjump)
    assert set(guarantee.waits_ns(unlimited)) == {(("s3", "s0"), 3)}, "where no PTP comes by"


def test_multicast_comes_to_all_hosts() -> None:
    found = guarantee.waits_ns(trial("qjump", "fig5", "course").arm)
    arm = trial("qjump", "fig5", "course").arm
    assert {port[1] for port, level in found if level == 7} >= set(arm.network.hosts)


@pytest.mark.parametrize("arm", ["idle", "contended", "qjump_drop", "priority_only"])
def test_without_a_limiter_that_charges_what_leaves_there_is_no_bound(arm: str) -> None:
    assert guarantee.waits_ns(trial(arm, "fig3a", "course").arm) == {}


def reading(arm: ArmPlan, **changes: Any) -> list[dict[str, Any]]:
    """What tc says of all switch ports, where nothing happened but at the one where all meet."""
    idle = {"level": 7, "packets": 0, "bytes": 0, "drops": 0, "max_wait_ns": 0, "max_late_ns": 0}
    devices = arm.network.interfaces()
    return [
        {"kind": "wire", "dev": device, "root": True, "levels": [idle | (changes if link == MEETING else {})]}
        for link, device in devices.items()
        if link[0] == "s1"
    ]


def bound(tmp_path: Path, one: Trial, text: str) -> list[Check]:
    folder = tmp_path / "trials" / one.name / "asbuilt" / "ended"
    folder.mkdir(parents=True)
    (folder / "tc-switches.json").write_text(text)
    run = cast("RunDirectory", SimpleNamespace(asbuilt=lambda name: tmp_path / "trials" / name / "asbuilt"))
    return fidelity._bound(run, [cast("Any", SimpleNamespace(trial=one))])


@pytest.mark.parametrize(
    ("wait_ns", "late_ns", "status"),
    [(11 * FRAME_NS, 0, "pass"), (11 * FRAME_NS + 1, 0, "fail"), (11 * FRAME_NS + 400, 200, "pass")],
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


def test_a_reading_that_is_missing_is_told(tmp_path: Path) -> None:
    (check,) = bound(tmp_path, trial("rolling_12"), "[]")
    assert check.status == "fail" and "asbuilt/ended/tc-switches.json does not tell of s1-eth1" in check.text


def test_where_nothing_was_sent_there_is_nothing_to_check(tmp_path: Path) -> None:
    one = trial("rolling_12")
    assert bound(tmp_path, one, json.dumps(reading(one.arm))) == []
