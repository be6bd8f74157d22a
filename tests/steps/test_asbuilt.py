"""Comparing the network built with the network planned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.resolve import plan
from qjump_mn.steps import asbuilt
from tests.support import synthetic


def fig3a() -> Plan:
    return plan("fig3a", "course", [])


def arm_of(resolved: Plan, name: str) -> ArmPlan:
    return next(arm for arm in resolved.arms if arm.name == name)


def built(folder: Path, resolved: Plan, arm: ArmPlan) -> Path:
    """What is read back of the network just as planned."""
    trial = next(trial for trial in resolved.trials() if trial.arm == arm)
    synthetic.write_asbuilt(folder, trial)
    return folder


def test_the_network_as_planned_has_no_differences(tmp_path: Path) -> None:
    resolved = fig3a()
    arm = arm_of(resolved, "qjump")
    assert asbuilt.differences(built(tmp_path, resolved, arm), arm) == []


def test_missing_qdiscs_of_a_vlan_device_are_reported(tmp_path: Path) -> None:
    resolved = plan("fig3a", "course", [], schemes=("etf",))
    arm = arm_of(resolved, "etf")
    found = asbuilt.differences(built(tmp_path, resolved, arm), arm)
    assert [text for text in found if text.startswith("h3")] == [
        "h3-eth0.2: it has no taprio qdisc as its root",
        *(f"h3-eth0.2: it has no etf qdisc below 100:{number}" for number in range(8, 0, -1)),
    ]
    assert {text.partition("-")[0] for text in found} == {*resolved.shown.network.hosts}


PACKETS = "its limits is [1000, 1000, 1000, 1000, 1000, 1000, 9, 1000]"


@pytest.mark.parametrize(
    ("file", "change", "sentence"),
    [
        (
            "ip-h3.json",
            lambda links: links[0].update(mtu=1496),
            "h3-eth0: its MTU is 1496, not 1500",
        ),
        (
            "ip-h3.json",
            lambda links: links[0].update(num_tx_queues=1),
            "h3-eth0: it has 1 tx queues, not 8",
        ),
        ("ip-h3.json", lambda links: links[0].update(flags=[]), "h3-eth0: it is down"),
        (
            "ip-h3.json",
            lambda links: links[0]["addr_info"].append({"family": "inet6"}),
            "h3-eth0: IPv6 is on",
        ),
        ("ip-h3.json", lambda links: links.pop(), "h3: there is no device for VLAN 2"),
        (
            "ip-h3.json",
            lambda links: links[1]["linkinfo"]["info_data"]["egress_qos"].pop(),
            "priority to PCP",
        ),
        ("ip-switches.json", lambda links: links.pop(), "there is no interface s3-eth4"),
        (
            "tc-switches.json",
            lambda qdiscs: qdiscs[0]["options"].update(rate_bps=1),
            "its wire's rate_bps is 1, not 10000000",
        ),
        (
            "tc-switches.json",
            lambda qdiscs: qdiscs[0].update(kind="noqueue"),
            "its root qdisc is noqueue, not wire",
        ),
        ("tc-h3.json", lambda qdiscs: qdiscs.pop(), "h3-eth0: it has 0 qjump qdiscs, not one"),
        (
            "tc-h3.json",
            lambda qdiscs: qdiscs[1]["options"].update(epoch_ns=5),
            "its epoch_ns is 5, not 28800000",
        ),
        (
            "tc-h3.json",
            lambda qdiscs: qdiscs[1]["options"]["budgets"].__setitem__(6, 99),
            "level 6 has a budget of 99, not 1550",
        ),
        ("tc-h3.json", lambda qdiscs: qdiscs[1]["options"]["limits"].__setitem__(6, 9), PACKETS),
        (
            "tc-h3.json",
            lambda qdiscs: qdiscs[1].update(parent="1:1"),
            "qjump's parent is 1:1, not 5:1",
        ),
    ],
)
def test_each_difference_is_reported(
    tmp_path: Path, file: str, change: Callable[[Any], object], sentence: str
) -> None:
    resolved = fig3a()
    arm = arm_of(resolved, "qjump")
    folder = built(tmp_path, resolved, arm)
    content = json.loads((folder / file).read_text())
    change(content)
    (folder / file).write_text(json.dumps(content))
    assert any(sentence in difference for difference in asbuilt.differences(folder, arm))


@pytest.mark.parametrize(
    ("file", "change", "sentence"),
    [
        (
            "edt-h3.json",
            lambda rule: rule.update(slack_ns=0),
            "h3-eth0: its slack_ns is 0, not 25000",
        ),
        (
            "edt-h3.json",
            lambda rule: rule["budgets"].__setitem__(7, 0),
            "level 7 has a budget of 0, not 1550",
        ),
        ("tc-h3.json", lambda qdiscs: qdiscs.pop(), "h3-eth0: it has 4 fq qdiscs, not 5"),
    ],
)
def test_departure_times_are_read_back(
    tmp_path: Path, file: str, change: Callable[[Any], object], sentence: str
) -> None:
    resolved = plan("fig3a", "course", [], schemes=("qjump-edt",))
    arm = arm_of(resolved, "qjump_edt")
    folder = built(tmp_path, resolved, arm)
    assert asbuilt.differences(folder, arm) == []
    content = json.loads((folder / file).read_text())
    change(content)
    (folder / file).write_text(json.dumps(content))
    (found,) = asbuilt.differences(folder, arm)
    assert found.endswith(sentence)


def test_unplanned_limiter_is_reported(tmp_path: Path) -> None:
    resolved = fig3a()
    folder = built(tmp_path, resolved, arm_of(resolved, "qjump"))
    differences = asbuilt.differences(folder, arm_of(resolved, "idle"))
    assert any("the arm has no limiter" in text for text in differences)


def test_offload_that_is_on_is_reported(tmp_path: Path) -> None:
    resolved = fig3a()
    arm = arm_of(resolved, "idle")
    path = built(tmp_path, resolved, arm) / "ethtool-h3.txt"
    path.write_text(
        path.read_text().replace("segmentation-offload: off", "segmentation-offload: on", 1)
    )
    assert asbuilt.differences(tmp_path, arm) == ["h3-eth0: tcp-segmentation-offload is on"]
    path.write_text(path.read_text().replace("Features for h3-eth0:", "Features for lo:"))
    assert asbuilt.differences(tmp_path, arm) == ["h3-eth0: ethtool does not list its features"]
