"""Watched trials: their results are those of trials that are not, and their frames are all that the
wires counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qjump_mn.results import contents, directory, frames, links, packets, tables
from qjump_mn.results.directory import RunDirectory
from tests.guest.command import qjump_mn

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
    plain = ran(tmp_path)
    digests = [contents.results(run.path, run.manifest) for run in (plain, watched)]
    assert digests[0] == digests[1] and len(digests[0].trials) == len(ARMS)
    assert (watched.path / contents.PLAYER).is_file()
    assert not (plain.path / contents.PLAYER).exists()


@pytest.mark.parametrize("arm", ARMS)
def test_frames_are_what_the_wires_counted(watched: RunDirectory, arm: str) -> None:
    (trial,) = (one for one in watched.manifest.plan.trials() if one.arm.name == arm)
    found = frames.read(watched.trial(trial.name))
    assert found is not None and found.lost == 0
    read_ns = tables.facts(watched, trial).read_ns
    assert read_ns is not None
    counted = links.carried(trial.network, watched.trial(trial.name), "began", "ended")
    devices = trial.network.interfaces()
    for way, levels in counted.items():
        for level, count in levels.items():
            rows = (found.level == level) & (
                found.device == found.devices.index(devices[way])
                if devices[way] in found.devices
                else np.zeros(len(found.device), dtype=bool)
            )
            began, ended = (
                next(ns for name, ns in read_ns.items() if name.startswith(f"asbuilt/{when}/tc-"))
                for when in ("began", "ended")
            )
            sent = rows & ~found.dropped & (found.start >= began) & (found.start <= ended)
            assert abs(int(sent.sum()) - count.frames) <= 1, (way, level)
            assert int((rows & found.dropped).sum()) == count.drops, (way, level)


@pytest.mark.parametrize("arm", ARMS)
def test_each_hop_begins_when_the_last_one_ended(watched: RunDirectory, arm: str) -> None:
    (trial,) = (one for one in watched.manifest.plan.trials() if one.arm.name == arm)
    found = frames.read(watched.trial(trial.name))
    assert found is not None
    ends = {device: way for way, device in trial.network.interfaces().items()}
    packet = packets.follow(found, ends)
    order = np.lexsort((found.arrival, packet))
    same = packet[order][1:] == packet[order][:-1]
    assert same.sum() > 10_000
    assert (found.handover[order][:-1][same] == found.arrival[order][1:][same]).all()
    # No packet has more hops than the longest way, and most have all of one.
    hops = np.bincount(packet)
    assert hops.max() == 4 and (hops == 4).mean() > 0.9
