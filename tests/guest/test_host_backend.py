"""The host backend on a machine that others use too: run to its end, and killed at random.

Afterwards everything of others is there, byte for byte. The machine is a virtual one with Debian's
kernel, which has modules, and on its clock the harness's own work takes time.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import qjump_mn
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import plan
from qjump_mn.steps import asbuilt, openvswitch, readback
from qjump_mn.toolbox import build
from qjump_mn.toolbox.image import python_package
from tests.guest import trees
from tests.guest.command import experiment
from tests.guest.vm import Image, Job, Setup, prepare, run

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

JOBS = Path(__file__).with_name("host_jobs")
KILLS = 20
"""So often is a run killed."""
EXPERIMENT = """
title = "Two switches"
topology = "trunk"
warmup = "100ms"
duration = "300ms"
replicates = 1

[link]

[qjump.course]
factors = { 6 = 1, 0 = 30 }

[workloads]
ping = { program = "ping", label = "ping", flows = ["h1>h4"], level = 6, interval = "10ms" }
bulk = { program = "iperf", label = "iperf3", flows = ["h2>h5"], level = 0 }

[arms]
ping = { label = "ping", workloads = ["ping"] }
both = { label = "ping beside iperf3", workloads = ["ping", "bulk"] }
qjump = { label = "QJump", workloads = ["ping", "bulk"], scheme = "qjump" }

[figure]
plot = "latency_cdf"
workload = "ping"
quantity = "round trip"
arms = ["ping", "both"]

[presets.smoke]
about = "all there is"
"""


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Plan]:
    """One a link model; the second needs none of our modules."""
    folder = experiment(tmp_path_factory.mktemp("experiment"), "two", EXPERIMENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QJUMP_MN_PATH", str(folder))
        return {
            "wire": plan("two", "smoke", [], schemes=("dctcp",)),
            "tbf": plan("two", "smoke", ["link.model=tbf", "schemes.qjump.limiter=tbf"]),
            "htb": plan("two", "smoke", ["link.model=htb"]),
        }


@pytest.fixture(scope="module")
def machine() -> Image:
    """A machine that somebody has installed the harness on."""
    tree, package = trees.toolbox(), Path(qjump_mn.__file__).parent
    nodes = build.native_programs(tree, print) | python_package(tree, package, "opt/harness")
    nodes |= python_package(tree, package / "executor", "opt/qjump-mn")
    return prepare(print, extra=nodes)


@pytest.fixture(scope="module")
def out(machine: Image, plans: dict[str, Plan], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What beside_strangers.py leaves."""
    folder = tmp_path_factory.mktemp("out")
    work = {"openvswitch": openvswitch.start(), "plans": [*plans], "kills": KILLS}
    texts: dict[str, object] = {**plans, "work": work}
    files = {f"{name}.json": msgspec.json.encode(each).decode() for name, each in texts.items()}
    files["carry_out.py"] = (JOBS / "carry_out.py").read_text()
    script = (JOBS / "beside_strangers.py").read_text()
    result = run(machine, Setup(), Job(script=script, files=files, virtual_deadline_s=3000), folder)
    assert result.exit_code == 0, (folder / "stderr").read_text()
    print(f"{result.virtual_s:.0f} virtual s, {result.wall_s:.0f} s")
    return folder


@pytest.fixture(scope="module")
def results(out: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((out / "results.json").read_text())
    return told


@pytest.mark.parametrize("name", ["wire", "tbf", "htb"])
def test_run_restores_the_machine_byte_for_byte(
    name: str, results: dict[str, Any], plans: dict[str, Plan], out: Path
) -> None:
    shows = results["whole"][name]
    assert shows["code"] == 0, shows["said"]
    assert shows["left"] == {}
    for trial in plans[name].trials():
        folder = out / "whole" / name / trial.name / readback.BEFORE
        assert asbuilt.differences(folder, trial.arm) == []


@pytest.mark.parametrize("number", range(KILLS))
def test_killed_run_is_removed_and_nothing_else(number: int, results: dict[str, Any]) -> None:
    shows = results["killed"][number]
    assert shows["left"] == {}, shows


def test_runs_are_killed_at_all_stages(results: dict[str, Any]) -> None:
    """Were nothing there when a run was killed, the test above would say nothing."""
    stayed = [set(shows["stayed"]) for shows in results["killed"]]
    for what in ("interfaces", "namespaces", "qdiscs", "bridges", "settings", "modules", "journal"):
        assert sum(what in each for each in stayed) >= len(stayed) // 3, what
    cleaned = "\n".join(line for shows in results["killed"] for line in shows["cleaned"])
    for pattern in (
        r"removed the bridge s\d$",
        r"removed the interface s\d-eth\d$",
        r"removed the namespace h\d$",
        r"removed \d+ rows of QoS from Open vSwitch$",
        r"ended process \d+ \(iperf3\)$",
        r"unloaded the module sch_\w+$",
    ):
        assert re.search(pattern, cleaned, re.M), pattern


def test_second_run_is_refused_with_holder_and_start(results: dict[str, Any]) -> None:
    shows = results["second"]
    whose = rf"a run of root \(pid {shows['pid']}, since 2026-01-01 \d\d:\d\d UTC\) has this machine's network"
    assert shows["other"]["code"] == 3
    (said, clean), words = (shows["other"]["said"], shows["clean"]), "wait for its end, or use"
    assert re.fullmatch(rf"{whose}: {words} --backend guest\n", said), said
    assert len(clean) == 1 and re.fullmatch(rf"{whose}; nothing was removed", clean[0])
    assert shows["running"]


def test_next_run_removes_what_a_killed_run_left(results: dict[str, Any]) -> None:
    shows = results["second"]
    assert shows["third"]["code"] == 0, shows["third"]["said"]
    first, _, _ = shows["third"]["said"].partition("\n")
    left = r"removing what a run of root \(pid \d+, .*\) left when it was killed"
    assert re.fullmatch(left, first)
    assert shows["left"] == {}


def test_conflicting_names_are_reported_and_left_alone(results: dict[str, Any]) -> None:
    shows = results["in the way"]
    said = {
        make.split()[-1] if "dummy" not in make else "s1-eth1": told
        for make, told in shows["told"].items()
    }
    assert {told["code"] for told in said.values()} == {3}
    assert "/run/netns/h2 belongs to another network on this machine: " in said["h2"]["said"]
    assert "/sys/class/net/s1 belongs to another network" in said["s1"]["said"]
    assert "/sys/class/net/s1-eth1 belongs to another network" in said["s1-eth1"]["said"]
    assert shows["left"] == {}
