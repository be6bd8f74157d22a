"""Watched trials of the simulator: the frames are the trace's, and results are as without them."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as parquet
import pytest

from qjump_mn import resolve, theory
from qjump_mn.model.plan import Trial
from qjump_mn.results import contents, directory, frames, packets
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.frames import Frames
from tests.simulator.short import command
from tests.support.processes import execute
from tests.support.watched import check_only_frames_are_added

pytestmark = pytest.mark.guest

SHORT = ("fig3a", "--preset", "10g", "-s", "warmup=20ms", "-s", "duration=60ms")
ARMS = ("contended", "qjump")
GAP_PS = 8 * theory.INTERFRAME_GAP_BYTES * theory.PS_PER_S // 10**10


def ran(out: Path, *options: str) -> RunDirectory:
    done = execute(command(out, *SHORT, "--arms", ",".join(ARMS), *options))
    assert done.returncode in (0, 1, 4), done.stderr  # so short a run is not believed
    return directory.existing(out / "last")


@pytest.fixture(scope="module")
def watched(package: Path, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return ran(tmp_path_factory.mktemp("watched"), "--watch", "5ms:10ms")


def trial_of(run: RunDirectory, arm: str) -> Trial:
    (trial,) = (one for one in run.manifest.plan.trials() if one.arm.name == arm)
    return trial


def frames_of(run: RunDirectory, arm: str) -> Frames:
    found = frames.read(run.trial(trial_of(run, arm).name))
    assert found is not None
    return found


def test_results_are_those_of_a_run_that_is_not_watched(
    watched: RunDirectory, tmp_path: Path
) -> None:
    check_only_frames_are_added(watched, ran(tmp_path), len(ARMS))
    assert "What waits in a host" in (watched.path / contents.PLAYER).read_text()


@pytest.mark.parametrize("arm", ARMS)
def test_waits_on_a_pings_way_make_its_round_trip(watched: RunDirectory, arm: str) -> None:
    """Each is the trace's; the round trip is the application's."""
    trial, found = trial_of(watched, arm), frames_of(watched, arm)
    by_number: dict[int, list[tuple[int, int]]] = {}
    for head, arrival, handover in zip(found.head, found.arrival, found.handover, strict=True):
        header = packets.header(found.heads[head])
        if header.protocol == "ICMP":
            by_number.setdefault(header.number, []).append((int(arrival), int(handover)))
    table = parquet.read_table(watched.trial(trial.name) / "data/ping.parquet").to_pydict()
    round_trips = dict(zip(table["sequence"], table["latency_us"], strict=True))
    complete = [number for number, hops in by_number.items() if len(hops) == 8]
    assert len(complete) >= 7
    for number in complete:
        hops = sorted(by_number[number])
        assert all(one[1] == other[0] for one, other in itertools.pairwise(hops))
        took_ns = hops[-1][1] - hops[0][0] - 8 * GAP_PS / 1e3
        assert took_ns == pytest.approx(1e3 * round_trips[number], abs=2)


@pytest.mark.parametrize("arm", ARMS)
def test_a_port_sends_one_frame_after_another_and_keeps_the_order_of_levels(
    watched: RunDirectory, arm: str
) -> None:
    found, network = frames_of(watched, arm), trial_of(watched, arm).network
    hosts = {network.interfaces()[host, above] for above, host in network.edges
             if host in network.hosts}  # fmt: skip
    sent = ~found.dropped
    assert sent.sum() > 30_000
    for number, device in enumerate(found.devices):
        rows = np.flatnonzero(sent & (found.device == number))
        rows = rows[np.argsort(found.start[rows], kind="stable")]
        free_ns = found.start[rows] + (found.length[rows] + theory.AROUND_FRAME_BYTES) * 0.8
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
    checked = 0
    order = np.lexsort((found.arrival, packet))
    for rows in np.split(order, np.flatnonzero(np.diff(packet[order])) + 1):
        header = packets.header(found.heads[found.head[rows[0]]])
        way = network.path(addresses[header.source], addresses[header.destination])
        taken = tuple(ends[found.devices[device]] for device in found.device[rows])
        # Those at the beginning and the end of the recording are there in part.
        assert taken in {way[i:j] for i in range(5) for j in range(i + 1, 5)}
        assert np.all(found.handover[rows][:-1] == found.arrival[rows][1:])
        checked += taken == way
    assert checked > 5_000


def recorded(package: Path, folder: Path, change: str, part: str) -> Frames:
    """The frames of the contended arm, with a constant of the recording changed."""
    plan = resolve.plan("fig3a", "10g", [*SHORT[4::2]], only=ARMS, watched=part)
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


def test_what_waits_when_the_trace_ends_is_there_but_in_no_export(
    package: Path, watched: RunDirectory, tmp_path: Path
) -> None:
    found = recorded(package, tmp_path, "_AFTER = 0", "5ms:2ms")
    waits = found.crossed < 0
    assert waits.sum() > 100
    assert np.all(found.start[waits] >= found.to_ns) and not found.dropped[waits].any()
    assert len(found.known().device) == len(found.device) - waits.sum()

    def rows(these: Frames, some: Any) -> set[tuple[str, int, bytes]]:
        columns = zip(these.device[some], these.arrival[some], these.head[some], strict=True)
        return {(these.devices[one], int(at), these.heads[head]) for one, at, head in columns}

    # A longer recording has them too, and there they are sent later.
    whole = frames_of(watched, "contended")
    late = (whole.start >= found.to_ns) & (whole.arrival < found.to_ns) & ~whole.dropped
    assert rows(found, (found.start >= found.to_ns) & ~found.dropped) == rows(whole, late)


def test_a_part_whose_trace_would_be_too_long_is_refused(tmp_path: Path) -> None:
    long = ("fig3a", "--preset", "10g", "--arms", "contended", "--watch", "4s:1ms")
    done = execute(command(tmp_path, *long))
    assert done.returncode == 2
    assert "--watch: the simulator's trace begins with the trial, and before this" in done.stderr
    assert "more than 4 million" in done.stderr
    assert not any(tmp_path.iterdir())
