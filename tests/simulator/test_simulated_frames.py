"""Watched trials of the simulator: the frames are the trace's, and results are as without them."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow.parquet as parquet
import pytest

from qjump_mn import resolve, theory
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.results import contents, directory, frames, packets
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.frames import Frames
from tests.report.test_pages import CUT, OUTSIDE
from tests.report.test_player import SIZES
from tests.simulator.short import command
from tests.support.browser import Browser
from tests.support.processes import execute
from tests.support.user_files import Write
from tests.support.watched import check_only_frames_are_added

pytestmark = pytest.mark.guest

SHORT = ("fig3a", "--preset", "10g", "-s", "warmup=20ms", "-s", "duration=60ms")
ARMS = ("contended", "qjump")
SPINES = """
description = "three racks, and two spines to which they have slow links"
mtu = "1500B"
fabric = { racks = 3, hosts_per_rack = 4, spines = 2 }
[link]
model = "wire"
rate = "10Gbit"
buffer = "1522kB"
delay = "1us"
trunk_rate = "4Gbit"
trunk_buffer = "304.4kB"
"""
NETWORKS = ("paper12", "spines")
WIRES = """sides[0].arm.ports.map(port => {
  const place = placeOf(sides[0].arm, port), at = x => wireAt(place, x).y;
  return [at(place.from), at((place.from + place.to) / 2), at(place.to)];
})"""


def ran(out: Path, network: str, *options: str) -> RunDirectory:
    (out / "topologies").mkdir()
    (out / "topologies/spines.toml").write_text(SPINES)
    only = ("-s", f"topology={network}", "--arms", ",".join(ARMS))
    done = execute(command(out, *SHORT, *only, *options), cwd=out)
    assert done.returncode in (0, 1, 4), done.stderr  # so short a run is not believed
    return directory.existing(out / "last")


@pytest.fixture(scope="module", params=NETWORKS)
def watched(
    package: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> RunDirectory:
    return ran(tmp_path_factory.mktemp("watched"), request.param, "--watch", "5ms:10ms")


def trial_of(run: RunDirectory, arm: str) -> Trial:
    (trial,) = (one for one in run.manifest.plan.trials() if one.arm.name == arm)
    return trial


def byte_times(trial: Trial, found: Frames) -> npt.NDArray[np.float64]:
    """The time that a byte of each frame takes, in ns."""
    links = trial.network.by_device()
    rates = np.array([links[device].rate_bps for device in found.devices])
    return 8e9 / rates[found.device]


def paths(network: Network, source: str, destination: str) -> set[tuple[tuple[str, str], ...]]:
    """The ways from one host to another, by each spine."""
    one = network.path(source, destination)
    spines = network.fabric.spines if network.fabric else 1
    return {
        tuple(
            (
                begin.replace("spine1", f"spine{spine + 1}"),
                end.replace("spine1", f"spine{spine + 1}"),
            )
            for begin, end in one
        )
        for spine in range(spines)
    }


def frames_of(run: RunDirectory, arm: str) -> Frames:
    found = frames.read(run.trial(trial_of(run, arm).name))
    assert found is not None
    return found


def test_results_are_those_of_a_run_that_is_not_watched(
    watched: RunDirectory, tmp_path: Path
) -> None:
    network = watched.manifest.plan.shown.network.topology
    check_only_frames_are_added(watched, ran(tmp_path, network), len(ARMS))
    assert "What waits in a host" in (watched.path / contents.PLAYER).read_text()


@pytest.mark.parametrize("arm", ARMS)
def test_waits_on_a_pings_way_make_its_round_trip(watched: RunDirectory, arm: str) -> None:
    """Each is the trace's; the round trip is the application's."""
    trial, found = trial_of(watched, arm), frames_of(watched, arm)
    byte_ns = byte_times(trial, found)
    by_number: dict[int, list[tuple[int, int, float]]] = {}
    for row, head in enumerate(found.head):
        header = packets.header(found.heads[head])
        if header.protocol == "ICMP":
            gap_ns = theory.INTERFRAME_GAP_BYTES * byte_ns[row]
            hop = int(found.arrival[row]), int(found.handover[row]), gap_ns
            by_number.setdefault(header.number, []).append(hop)
    table = parquet.read_table(watched.trial(trial.name) / "data/ping.parquet").to_pydict()
    round_trips = dict(zip(table["sequence"], table["latency_us"], strict=True))
    complete = [number for number, hops in by_number.items() if len(hops) == 8]
    assert len(complete) >= 7
    for number in complete:
        hops = sorted(by_number[number])
        assert all(one[1] == other[0] for one, other in itertools.pairwise(hops))
        took_ns = hops[-1][1] - hops[0][0] - sum(gap_ns for *_, gap_ns in hops)
        assert took_ns == pytest.approx(1e3 * round_trips[number], abs=2)


@pytest.mark.parametrize("arm", ARMS)
def test_a_port_sends_one_frame_after_another_and_keeps_the_order_of_levels(
    watched: RunDirectory, arm: str
) -> None:
    found, network = frames_of(watched, arm), trial_of(watched, arm).network
    hosts = {device for (node, _), device in network.interfaces().items() if node in network.hosts}
    byte_ns = byte_times(trial_of(watched, arm), found)
    sent = ~found.dropped & (found.crossed >= 0)
    assert sent.sum() > 30_000
    for number, device in enumerate(found.devices):
        rows = np.flatnonzero(sent & (found.device == number))
        rows = rows[np.argsort(found.start[rows], kind="stable")]
        free_ns = (
            found.start[rows] + (found.length[rows] + theory.AROUND_FRAME_BYTES) * byte_ns[rows]
        )
        assert np.all(found.start[rows][1:] > free_ns[:-1] - 2)
        assert device not in hosts or not found.waited[rows].any()
        for level in np.unique(found.level[rows]):
            # The simulator serves ACKs first within a level.
            lane = rows[(found.level[rows] == level) & (found.length[rows] > 200)]
            assert np.all(np.diff(found.arrival[lane]) >= 0)
    assert {*found.level.tolist()} == ({0} if arm == "contended" else {0, 7})


@pytest.mark.parametrize("arm", ARMS)
def test_packets_are_followed_from_port_to_port(watched: RunDirectory, arm: str) -> None:
    found, network = frames_of(watched, arm), trial_of(watched, arm).network
    ends = network.ways()
    packet = packets.follow(found, ends)
    addresses = {address: host for host, address in network.addresses.items()}
    complete = Counter[tuple[tuple[str, str], ...]]()
    order = np.lexsort((found.arrival, packet))
    for rows in np.split(order, np.flatnonzero(np.diff(packet[order])) + 1):
        header = packets.header(found.heads[found.head[rows[0]]])
        ways = paths(network, addresses[header.source], addresses[header.destination])
        taken = tuple(ends[found.devices[device]] for device in found.device[rows])
        # Those at the beginning and the end of the recording are there in part.
        assert taken in {way[i:j] for way in ways for i in range(5) for j in range(i + 1, 5)}
        sent = rows[~found.dropped[rows]]  # of a drop only its time is known
        assert np.all(found.handover[sent][:-1] == found.arrival[sent][1:])
        complete.update(ways & {taken})
    assert complete.total() > 5_000
    crossed = {node for way in complete for _, node in way}
    assert crossed >= set(network.switches) - {"rack1", "s1"}


def recorded(
    package: Path, folder: Path, change: str, part: str, network: str = "paper12"
) -> Frames:
    """The frames of the contended arm, with a constant of the recording changed."""
    settings = [*SHORT[4::2], f"topology={network}"]
    plan = resolve.plan("fig3a", "10g", settings, only=ARMS, watched=part)
    script = (
        "import sys; from qjump_mn.simulation import recording, __main__ as main\n"
        f"recording.{change}\nsys.exit(main.main())"
    )
    path = os.pathsep.join([str(package), str(Path(__file__).parents[2])])
    subprocess.run(
        [sys.executable, "-c", script, str(folder)], check=True,
        input=msgspec.json.encode(plan.trials()[0]), env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    found = frames.read(folder)
    assert found is not None
    return found


def test_the_recording_ends_with_the_last_frame_for_which_there_is_room(
    package: Path, tmp_path: Path
) -> None:
    found = recorded(package, tmp_path, "MAX_FRAMES = 20_000", "0s:60ms")
    # What waits at the end is there too, in three queues of at most 1,000 packets.
    assert 20_000 <= len(found.device) < 23_000 and not found.lost
    # Several may start at the last instant.
    assert np.sum(found.start <= found.to_ns) == pytest.approx(20_000, abs=10)
    assert 2e6 < found.to_ns - found.from_ns < 20e6


def identified(found: Frames, some: Any) -> set[tuple[str, int, bytes]]:
    """Port, arrival and first bytes of these rows."""
    columns = zip(found.device[some], found.arrival[some], found.head[some], strict=True)
    return {(found.devices[one], int(at), found.heads[head]) for one, at, head in columns}


@pytest.mark.parametrize("watched", ["spines"], indirect=True)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_player_shows_all_paths_and_frames_follow_them(
    watched: RunDirectory, browser: Browser, width: int, dark: bool
) -> None:
    browser.open(watched.path / contents.PLAYER, width, dark=dark)
    browser.press("n")
    assert browser.errors() == [] and browser.run(OUTSIDE) == [] and browser.run(CUT) == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(SIZES) == [[True, True, True, 0, 0]] * 2
    wires = browser.run(WIRES)
    assert len(wires) == 2 * (12 + 6) and sum(middle != begin for begin, middle, _ in wires) >= 8
    assert all(begin <= middle <= end or begin >= middle >= end for begin, middle, end in wires)


@pytest.mark.parametrize("watched", ["paper12"], indirect=True)
def test_what_waits_when_the_trace_ends_is_there_but_in_no_export(
    package: Path, watched: RunDirectory, tmp_path: Path
) -> None:
    found = recorded(package, tmp_path, "_AFTER = 0", "5ms:2ms")
    waits = found.crossed < 0
    assert waits.sum() > 100
    assert np.all(found.start[waits] >= found.to_ns) and not found.dropped[waits].any()
    assert len(found.known().device) == len(found.device) - waits.sum()

    # A longer recording has them too, and there they are sent later.
    whole = frames_of(watched, "contended")
    late = (whole.start >= found.to_ns) & (whole.arrival < found.to_ns) & ~whole.dropped
    sent_late = (found.start >= found.to_ns) & ~found.dropped
    assert identified(found, sent_late) == identified(whole, late)


@pytest.mark.parametrize("watched", ["spines"], indirect=True)
def test_what_still_waits_at_an_unknown_port_is_left_out(
    package: Path, watched: RunDirectory, own: Write, tmp_path: Path
) -> None:
    own("topologies/spines.toml", SPINES)
    found = recorded(package, tmp_path, "_AFTER = 0", "5ms:6ms", "spines")
    whole, ends = frames_of(watched, "contended"), trial_of(watched, "contended").network.ways()
    before = (whole.arrival < found.to_ns) & (whole.handover >= found.from_ns)
    missing = identified(whole, before) - identified(found, slice(None))
    assert identified(found, slice(None)) < identified(whole, before) and len(missing) > 50
    assert {ends[device][0] for device, *_ in missing} == {"rack2"}, "which has two ways on"
    sent = found.crossed >= 0
    assert not missing & identified(whole, before & (whole.handover < found.handover[sent].max()))


def test_a_part_whose_trace_would_be_too_long_is_refused(tmp_path: Path) -> None:
    long = ("fig3a", "--preset", "10g", "--arms", "contended", "--watch", "4s:1ms")
    done = execute(command(tmp_path, *long))
    assert done.returncode == 2
    assert "--watch: the simulator's trace begins with the trial, and before this" in done.stderr
    assert "more than 4 million" in done.stderr
    assert not any(tmp_path.iterdir())
