"""Leaf-spine fabrics: what they resolve to, what a transfer takes in one, and who may run it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from qjump_mn import resolve, theory
from qjump_mn.backends import emulated
from qjump_mn.errors import LostError, UsageError
from qjump_mn.model.topology import FabricSpec, Network
from qjump_mn.programs.flows import measures as flows
from qjump_mn.programs.flows.program import FlowsPlan
from qjump_mn.resolve import loading
from qjump_mn.resolve.wiring import check_emulated, resolve_network
from qjump_mn.results import tables


def fabric(**changes: Any) -> Network:
    spec = loading.topology("fabric144")
    assert spec.fabric is not None
    spec = msgspec.structs.replace(spec, fabric=msgspec.structs.replace(spec.fabric, **changes))
    return resolve_network("fabric144", spec, "mine", spec.link)


def test_fabric144_is_the_published_one() -> None:
    network = fabric()
    assert (len(network.hosts), len(network.switches)) == (144, 13)
    assert network.path("h1", "h16") == (("h1", "rack1"), ("rack1", "h16"))
    assert network.path("h1", "h17") == (
        ("h1", "rack1"),
        ("rack1", "spine1"),
        ("spine1", "rack2"),
        ("rack2", "h17"),
    )
    # SIMULATION.md, read off the published scripts: base round trips in and across racks, a flow of
    # six packets.
    assert theory.transfer_ps(network.speeds("h1", "h16"), 1500, 40) == (13_264_000, 1_200_000)
    assert theory.transfer_ps(network.speeds("h144", "h1"), 1500, 40) == (14_680_000, 1_200_000)


def test_completion_times_are_over_those_in_an_empty_network() -> None:
    rows = {
        "source": ["h1", "h1", "h2"],
        "destination": ["h2", "h17", "h3"],
        "packets": [6, 1, 7000],
        "start_ps": [0, 10, 0],
    }
    table = pa.table(
        {**rows, "finish_ps": pa.array([19_264_000, 10 + 2 * 14_680_000, None], pa.int64())}
    )
    assert list(flows.ideal_ps(fabric(), table)) == [
        19_264_000,
        14_680_000,
        13_264_000 + 6999 * 1_200_000,
    ]
    plan = resolve.plan("fig9", "smoke", [])
    trial = plan.trials()[0]
    workload = trial.arm.workloads[0]
    assert isinstance(workload, FlowsPlan)
    found = flows.values(table, workload, trial, None)  # type: ignore[arg-type]
    assert found == {
        "flows": 3,
        "unfinished": 1,
        "short_mean": 1.5,
        "short_p99": 2.0,
        "all_mean": 1.5,
        "all_p99": 2.0,
    }


@pytest.mark.parametrize(("each", "steady"), [(1, False), (2, True)])
def test_a_level_without_a_steady_state_has_no_numbers(each: int, steady: bool) -> None:
    """Flows of 6 packets are 9,000 B, what a host of 144 may send of level 7 in an epoch of 2.0736
    ms: in 20 epochs 2,880 of them are all, and 1,440 half of it. Flows of 7 packets have another
    level."""
    plan = resolve.plan("scale", "smoke", [])
    trial = next(trial for trial in plan.trials() if trial.arm.name == "qjump_144_hosts")
    assert trial.arm.qjump is not None and trial.arm.qjump.epoch_ns == 2_073_600
    count = 20 * 144 // each
    starts = [*np.linspace(0, 20 * 2_073_600_000, count).astype(np.int64).tolist(), 1_000]
    rows = {"source": ["h1"] * len(starts), "destination": ["h2"] * len(starts), "start_ps": starts}
    finishes = [start + 40_000_000 for start in starts]
    table = pa.table({**rows, "packets": [6] * count + [7], "finish_ps": finishes})
    found = flows.values(table, trial.arm.workloads[0], trial, None)  # type: ignore[arg-type]
    assert found["utilisation"] == 1 / each
    percentiles = {name for name in found if name.endswith("p99")}
    assert percentiles == ({"short_p99", "medium_p99", "all_p99"} if steady else {"medium_p99"})


def test_regions_part_at_10_kb_and_10_mb() -> None:
    sizes = np.array([6, 7, 6666, 6667])
    rows = {"source": ["h1"] * 4, "destination": ["h2"] * 4, "packets": sizes, "start_ps": [0] * 4}
    table = pa.table({**rows, "finish_ps": (sizes - 1) * 1_200_000 + 13_264_000})
    plan = resolve.plan("fig9", "smoke", [])
    trial = plan.trials()[0]
    found = flows.values(table, trial.arm.workloads[0], trial, None)  # type: ignore[arg-type]
    assert {name for name in found if name.endswith("mean")} == {
        "short_mean",
        "medium_mean",
        "long_mean",
        "all_mean",
    }
    assert {value for name, value in found.items() if name.endswith(("mean", "p99"))} == {1.0}


def test_flows_that_are_missing_are_lost(tmp_path: Any) -> None:
    trial = resolve.plan("fig9", "smoke", []).trials()[0]
    (tmp_path / "search.csv").write_text(
        "source,destination,packets,start_ps,finish_ps\nh1,h2,3,0,1\n"
    )
    with pytest.raises(LostError, match=r"raw/search\.csv: it has 1 of 300 rows"):
        tables.table(trial.arm.workloads[0], trial, tmp_path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"racks": 0}, "fabric.racks = 0 is out of range: use 1 to 131072"),
        ({"racks": 65_536}, "fabric: 1048576 hosts are too many: use at most 131072"),
        ({"spines": 2000}, "fabric.spines = 2000 is out of range"),
        ({"racks": 1, "hosts_per_rack": 1}, "a network needs at least two hosts"),
    ],
)
def test_a_fabric_that_cannot_be_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        fabric(**changes)


def test_a_fabric_has_no_tree_beside_it() -> None:
    beside = FabricSpec(racks=2, hosts_per_rack=2, spines=1)
    spec = msgspec.structs.replace(loading.topology("single"), fabric=beside)
    with pytest.raises(UsageError, match="fabric and switches exclude each other"):
        resolve_network("single", spec, "mine", spec.link)


def test_what_only_the_simulator_has_is_refused_by_the_emulation() -> None:
    with pytest.raises(UsageError, match="trees only, not a fabric"):
        check_emulated(fabric())
    tree = msgspec.structs.replace(fabric(), fabric=None)
    check_emulated(tree)


@pytest.mark.parametrize("end", ["", "trunk_"])
def test_a_hosts_own_kernel_is_asked_for_10_gbit_at_most(end: str) -> None:
    asked = [f"link.{end}rate=20Gbit", "link.buffer=1MB"]
    emulated.check(resolve.plan("fig3a", "smoke", asked))
    with pytest.raises(
        UsageError, match="20Gbit is out of range for a host's own kernel: use at most 10Gbit"
    ):
        emulated.check(resolve.plan("fig3a", "smoke", asked, backend="host"))


def test_a_simulated_scheme_does_not_run_in_the_guest() -> None:
    with pytest.raises(
        UsageError,
        match=r"arms\.pfabric: scheme 'pfabric' is for the simulator: use --backend simulator",
    ):
        emulated.check(resolve.plan("fig3a", "smoke", [], schemes=["pfabric"]))


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("workloads.search.load=1.5", "workloads.search.load: 1.5 is out of range"),
        (
            "workloads.search.sizes=cache",
            "workloads.search.sizes: there is no distribution 'cache'",
        ),
        ("workloads.search.count=0", "workloads.search.count: 0 is out of range"),
        ("sweeps.load.values=[0.1, 0.1]", "a value is given twice"),
    ],
)
def test_flows_that_cannot_be_are_refused(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        resolve.plan("fig9", "smoke", [setting])
