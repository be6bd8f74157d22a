"""Queues of schemes below a wire: that frames meet them by their levels, and what cannot be
there."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from qjump_mn.guest import Image, Job, Setup
from qjump_mn.links.base import root_of
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import plan
from tests.guest.laboratory import Laboratory, run_well
from tests.support.nights import nightly

pytestmark = pytest.mark.guest

SHARED = "s0-eth3"
"""Where Figure 3a's bulk flows meet, on the ping's way."""

LEVELLED = {"cbs": "cbs", "qjump_ecn": "red", "priorities_fq_codel": "fq_codel"}
"""Arms with a class for each level there, and what the ping's has."""

FLAT = {"fq_codel": "fq_codel", "cake": "cake"}

CLASSES = "num_tc 3 map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 queues 1@0 1@1 2@2"
CYCLE = "base-time 0 sched-entry S 01 300000 sched-entry S 06 700000 clockid CLOCK_TAI"
UNFIT = {
    "taprio": f"taprio {CLASSES} {CYCLE}",
    "mqprio": f"mqprio {CLASSES} hw 0",
    "etf": "etf clockid CLOCK_TAI delta 300000 skip_sock_check",
}
VETH = """
import json, subprocess
def sh(line):
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    return done.returncode
assert not sh("ip link add name near numtxqueues 8 type veth peer name far && ip link set far up")
assert not sh("ip addr add 10.0.0.1/24 dev near && ip link set near up")
assert not sh("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev near")
left = {}
for name, line in LINES.items():
    assert not sh("tc qdisc add dev near root handle 5: wire rate 10mbit limit 152200")
    code = sh(f"tc qdisc add dev near parent 5:1 handle 20: {line}")
    sh("ping -c 3 -i 0.1 -W 1 10.0.0.2")
    counted = json.loads(subprocess.run("tc -j -s qdisc show dev near".split(), capture_output=True).stdout)
    left[name] = {"code": code, "sent": counted[0]["packets"], "dropped": counted[0]["drops"]}
    assert not sh("tc qdisc del dev near root")
open("left.json", "w").write(json.dumps(left))
"""


def resolved(*schemes: str) -> Plan:
    names = [name.replace("_", "-") for name in schemes]
    return plan("fig3a", "smoke", ["duration=1s", "warmup=1s"], schemes=names)


def qdiscs(trial: Path, node: str = "switches") -> list[dict[str, Any]]:
    """All of the switches' ports, or of a host's, at the end."""
    found: list[dict[str, Any]] = json.loads((trial / f"asbuilt/after/tc-{node}.json").read_text())
    return found


def at_shared(trial: Path) -> list[dict[str, Any]]:
    """Those of the port where the bulk flows meet."""
    return [qdisc for qdisc in qdiscs(trial) if qdisc.get("dev") == SHARED]


@pytest.mark.parametrize("arm", nightly(LEVELLED, but=["qjump_ecn"]))
def test_frames_meet_the_queue_of_their_level(arm: str, laboratory: Laboratory) -> None:
    _, out = laboratory.run(resolved(*LEVELLED), arm)
    found = at_shared(out)
    by_parent = {qdisc.get("parent"): qdisc for qdisc in found}
    levels = {level["level"]: level["packets"] for level in (root_of(found) or {})["levels"]}
    assert by_parent["20:2"]["kind"] == LEVELLED[arm], "level 6, the ping's"
    for level in range(8):
        waiting = by_parent[f"20:{8 - level}"]["qlen"]
        counted = by_parent[f"20:{8 - level}"]["packets"]
        # What the wire has from the queue it has not yet handed over: one frame at most.
        assert 0 <= counted - levels[level] <= 1 + waiting, level
    assert levels[6] >= 100 and levels[0] >= 1000


@pytest.mark.nightly
@pytest.mark.parametrize("arm", FLAT)
def test_a_queue_of_a_port_has_all_frames(arm: str, laboratory: Laboratory) -> None:
    _, out = laboratory.run(resolved(*FLAT), arm)
    root, below = at_shared(out)
    assert (below["kind"], below["parent"]) == (FLAT[arm], "5:1")
    assert 0 <= below["packets"] - root["packets"] <= 1 and below["packets"] > 1000


@pytest.mark.nightly
def test_priority_flow_control_pauses_the_bulk_flows_level_alone_and_loses_nothing(
    laboratory: Laboratory,
) -> None:
    _, out = laboratory.run(resolved("pfc"), "pfc")
    ports = [qdisc for qdisc in qdiscs(out) if qdisc["kind"] == "wire"]
    levels = [level for port in ports for level in port["levels"]]
    assert {level["level"] for level in levels if level["paused_ns"]} == {0}
    assert sum(port["pause"]["received"] for port in ports) > 0
    assert not any(level["drops"] for level in levels)
    # The ping's level has frames, and not one of them has waited for a full buffer.
    urgent = [level for level in levels if level["level"] == 6 and level["packets"]]
    assert urgent and max(level["max_backlog"] for level in urgent) < 1_522


def spread_frames(trial: Path, cycle_frames: int = 20) -> float:
    """The shortest part of the gates' cycle, in times of a full-size frame, in which all replies
    came."""
    (log,) = (trial / "raw").glob("ping*.ping.txt")
    cycle_ns = cycle_frames * 1_233_600
    times = re.findall(r"^\[(\d+)\.(\d{6})\] 64 bytes", log.read_text(), re.MULTILINE)
    places = sorted((int(seconds) * 10**9 + int(us) * 1000) % cycle_ns for seconds, us in times)
    assert len(places) >= 80
    gaps = [after - before for before, after in pairwise([*places, places[0] + cycle_ns])]
    return (cycle_ns - max(gaps)) / cycle_ns * cycle_frames


@pytest.mark.nightly
@pytest.mark.parametrize("arm", ["taprio", "etf"])
def test_gates_and_launch_times_let_levels_go_in_their_window(
    arm: str, laboratory: Laboratory
) -> None:
    """A window is a frame long; on its way a reply waits for one at each of three busy ports at
    most. Without a cycle replies come all over it."""
    _, out = laboratory.run(resolved("taprio", "etf", "priorities"), arm)
    (root,) = (qdisc for qdisc in qdiscs(out, "h8") if qdisc.get("kind") == "taprio")
    assert (root["dev"], root["drops"]) == ("h8-eth0.2", 0) and root["packets"] >= 100
    assert spread_frames(out) < 6


@pytest.mark.nightly
def test_without_a_cycle_replies_come_all_over_it(laboratory: Laboratory) -> None:
    _, out = laboratory.run(resolved("taprio", "etf", "priorities"), "priorities")
    assert spread_frames(out) > 15


def test_what_cannot_stand_below_a_wire(image: Image, booted: Setup, tmp_path: Path) -> None:
    run_well(image, booted, Job(script=VETH.replace("LINES", repr(UNFIT))), tmp_path)
    left = json.loads((tmp_path / "left.json").read_text())
    assert left["taprio"]["code"] and left["mqprio"]["code"], "they want to be root"
    assert left["taprio"]["sent"] >= 3 and left["mqprio"]["sent"] >= 3
    assert not left["etf"]["code"]
    assert (left["etf"]["sent"], left["etf"]["dropped"] >= 3) == (0, True), "nobody set a time"
