"""What a simulated trial samples: its numbers are those of its counters and of its network, and its
time line draws them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from qjump_mn import resolve
from qjump_mn.programs import counters
from qjump_mn.programs.flows.program import LEVELS_PACKETS
from qjump_mn.report.timelines import sampled
from qjump_mn.results import directory, formatting, series
from qjump_mn.toolbox import simulator
from tests.guest import trees
from tests.simulator.short import command, figure_9

pytestmark = pytest.mark.guest
CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    trees.toolbox()
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(simulator.package(print)), str(CHECKOUT)]),
    }


def simulated(arm: str, out: Path, environment: dict[str, str]) -> None:
    plan = resolve.plan("scale", "smoke", [])
    (trial,) = [trial for trial in plan.trials() if trial.arm.name == arm]
    argv = [sys.executable, "-m", "qjump_mn.simulation", str(out)]
    subprocess.run(argv, input=msgspec.json.encode(trial), env=environment, check=True)


def test_samples_are_of_the_measured_time(tmp_path: Path, environment: dict[str, str]) -> None:
    simulated("flat_144_hosts", tmp_path, environment)
    found = series.read(tmp_path)
    assert found is not None
    # 2 ms and 50 ms, without a phase, but for what steps of whole ps leave; the run goes on until
    # the last timeout.
    assert np.all(np.diff(found.at_ps) == found.at_ps[1]) and 52e9 - 500 < found.at_ps[-1] <= 52e9
    assert len(found.at_ps) == 500
    # Eight flows fill the link to h1, whose queue holds 150 packets of 1,538 bytes.
    assert (
        found.ports[0].link == ("rack1", "h1") and 0.9 < max(found.ports[0].queued) / 230_700 <= 1
    )
    assert [max(port.queued) for port in found.ports] == sorted(
        (max(port.queued) for port in found.ports), reverse=True
    )
    counted = counters.read(tmp_path / "raw")
    dropped = sum(counters.total(counted[why]) for why in ("full", "pushed_out", "early"))
    assert 0 < found.dropped[-1] <= dropped and 0 < found.again[-1] <= counters.total(
        counted["retransmitted"]
    )
    began_ns = json.loads((tmp_path / "trial.json").read_text())["began_ns"]
    tracks = list(sampled.tracks(found, began_ns))
    queues = [track for track in tracks if track.kind == "instant"]
    assert [track.label for track in queues] == [formatting.flow(port.link) for port in found.ports]
    assert queues[0].at_ns[0] == -began_ns and list(queues[0].values) == found.ports[0].queued
    drops = next(track for track in tracks if "dropped" in track.what)
    assert drops.values.sum() == found.dropped[-1] and drops.until_ns is not None
    assert not any("marked" in track.what for track in tracks), "nothing is marked"


def test_levels_that_waited_at_a_port_are_kept_and_drawn(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    simulated("levels_144_hosts", tmp_path, environment)
    found = series.read(tmp_path)
    assert found is not None
    for port in found.ports:
        assert all(any(waiting) for waiting in port.levels.values())
        being_sent = np.array(port.queued) - np.sum([*port.levels.values()], axis=0)
        assert np.all((being_sent >= 0) & (being_sent <= 1_542)), port.link
    # Bulk data has level 0, urgent datagrams 7; eight flows fill the link to h1.
    port = found.ports[0]
    assert port.link == ("rack1", "h1") and port.levels.keys() == {"7", "0"}
    assert max(port.levels["0"]) > 0.9 * 230_700 and max(port.levels["7"]) < 0.1 * 230_700
    lines = list(sampled.tracks(found, 0))
    of_first = [
        track for track in lines if track.what.endswith(f"{formatting.flow(port.link)}, by level")
    ]
    assert [track.label for track in of_first] == ["level 7", "level 0"]


def test_a_network_of_many_ports_is_not_sampled(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    simulated("flat_10000_hosts", tmp_path, environment)
    assert series.read(tmp_path) is None


def test_time_lines_draw_queues_and_drops(tmp_path: Path, environment: dict[str, str]) -> None:
    subprocess.run(command(tmp_path, *figure_9(mining=20)), capture_output=True, check=False)
    run = directory.existing(tmp_path / "last")
    pages = sorted((run.path / "timeline").glob("*.html"))
    assert pages
    for page in pages:
        text = page.read_text()
        assert "Bytes that wait at a port" in text and "there is no series.json" not in text


def test_levels_by_size_are_the_simulators(environment: dict[str, str]) -> None:
    script = "import qjump_sim; print(qjump_sim.Scheme.named('qjump-paper', qjump_sim.FIG9).levels)"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(LEVELS_PACKETS)


def test_the_stub_is_the_module(environment: dict[str, str], tmp_path: Path) -> None:
    package = environment["PYTHONPATH"].split(os.pathsep)[0]
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "qjump_sim._native"],
        env={**environment, "MYPYPATH": package}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
