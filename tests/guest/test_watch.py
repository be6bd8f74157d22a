"""Watched trials: their results are those of trials that are not, and their frames are all that the
wires counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qjump_mn.results import directory, frames, links, packets, tables
from qjump_mn.results.directory import RunDirectory
from qjump_mn.theory import AROUND_FRAME_BYTES
from tests.guest.command import qjump_mn
from tests.support.watched import check_only_frames_are_added

pytestmark = pytest.mark.guest

ARMS = ("contended", "qjump")


def ran(out: Path, *options: str) -> RunDirectory:
    done = qjump_mn("fig3a", "--preset", "smoke", "--arms", ",".join(ARMS), "--out", out, *options)
    assert done.returncode in (0, 1)
    return directory.existing(out / "last")


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return ran(tmp_path_factory.mktemp("watched"), "--watch", "0s:4s")


def test_results_are_those_of_a_run_that_is_not_watched(
    watched: RunDirectory, tmp_path: Path
) -> None:
    check_only_frames_are_added(watched, ran(tmp_path), len(ARMS))


@pytest.mark.parametrize("arm", ARMS)
def test_frames_are_what_the_wires_counted(watched: RunDirectory, arm: str) -> None:
    (trial,) = (one for one in watched.manifest.plan.trials() if one.arm.name == arm)
    found = frames.read(watched.trial(trial.name))
    assert found is not None and found.lost == 0
    read_ns = tables.facts(watched, trial).read_ns
    assert read_ns is not None
    counted = links.carried(trial.network, watched.trial(trial.name), "began", "ended")
    began, ended = (
        min(ns for name, ns in read_ns.items() if name.startswith(f"asbuilt/{when}/tc-"))
        for when in ("began", "ended")
    )
    # A measurement ends with its last answer, a little later than the recording.
    late = (ended - found.to_ns) * trial.network.link.rate_bps // (8 * 10**9)
    full = trial.network.mtu_bytes + 50
    devices, frame_counts = trial.network.interfaces(), [0, 0]
    for way, levels in counted.items():
        assert devices[way] in found.devices or not any(count.frames for count in levels.values())
        of_port = np.array([device == devices[way] for device in found.devices])[found.device]
        for level, count in levels.items():
            rows = of_port & (found.level == level)
            sent = rows & ~found.dropped & (found.start >= began) & (found.start <= ended)
            size = int(found.length[sent].sum() + AROUND_FRAME_BYTES * sent.sum())
            assert -full <= count.bytes - size <= late + full, (way, level)
            dropped = int((rows & found.dropped).sum())
            assert 0 <= count.drops - dropped <= max(0, late // full), (way, level)
            frame_counts = [frame_counts[0] + int(sent.sum()), frame_counts[1] + count.frames]
    assert frame_counts[0] == pytest.approx(frame_counts[1], rel=0.04 if late > full else 0.001)
    assert frame_counts[1] > 20_000


@pytest.mark.parametrize("arm", ARMS)
def test_each_hop_begins_when_the_last_one_ended(watched: RunDirectory, arm: str) -> None:
    (trial,) = (one for one in watched.manifest.plan.trials() if one.arm.name == arm)
    found = frames.read(watched.trial(trial.name))
    assert found is not None
    ends = trial.network.ways()
    packet = packets.follow(found, ends)
    order = np.lexsort((found.arrival, packet))
    same = packet[order][1:] == packet[order][:-1]
    assert same.sum() > 10_000
    assert (found.handover[order][:-1][same] == found.arrival[order][1:][same]).all()
    # No packet has more hops than the longest way, and most have all of one.
    hops = np.bincount(packet)
    assert hops.max() == 4 and (hops == 4).mean() > 0.9
