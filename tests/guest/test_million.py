"""A million urgent packets at 10 Gb/s, beside bulk traffic that is offered more than every port on their way
carries: each frame at each switch port against its bound (qjump_mn/guarantee.py). A hundredth of them every
day.

Nine hosts send a packet to one host in each epoch of n·P/R, which is the shortest that has a bound, and a
frame's time: a packet that waits for a frame of its own host leaves late, and its epoch begins then.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from qjump_mn import guarantee
from qjump_mn.results import directory, links, outcome

pytestmark = [pytest.mark.guest, pytest.mark.smoke]

SENDERS, INTERVAL_NS = 9, 4_000
"""One packet each, every 4 us."""

EXPERIMENT = """
title = "Urgent packets by the million"
reproduces = "QJump (NSDI'15), Equations 1 and 2"
question = "Does any of them wait for longer than its bound?"
topology = "paper12"
warmup = "200us"
duration = "5ms"
replicates = 1
link = { rate = "10Gbit" }

[workloads.urgent]
program = "fanin"
label = "one packet an epoch from each of nine hosts"
level = 7
flows = ["h1..h9>h10"]
interval = "4us"

# 90 of the 100 frames that a host's link carries in an interval. Two such flows meet at each switch's way up and at s0>s3.
[workloads.bulk]
program = "noise"
label = "full-size datagrams"
level = 0
flows = ["h7>h1", "h2>h9", "h3>h11", "h8>h12", "h11>h10"]
interval = "123360ns"
burst = 90

# Of 258 B with Ethernet's header, 300 B on the wire: nine of them are 2.16 us.
[qjump.shortest]
budget_packet = "272B"
epoch = "2160ns"
factors = { 7 = 1 }

[arms.beside]
label = "beside bulk"
workloads = ["urgent", "bulk"]
scheme = "qjump"
qjump = "shortest"

[figure]
plot = "latency_cdf"
workload = "urgent"
arms = ["beside"]

[claims.no_loss]
statement = "None is lost"
source = "NSDI'15: guaranteed delivery at factor 1"
predicate = "beside.urgent.loss == 0"
shows = "beside.urgent.loss"
"""


def check(folder: Path, duration_ms: int, trials: int) -> None:
    """Run so many trials, and compare every frame of each."""
    (folder / "experiments").mkdir()
    (folder / "experiments/million.toml").write_text(EXPERIMENT)
    settings = ["-s", f"duration={duration_ms}ms", "--replicates", str(trials)]
    argv = [sys.executable, "-m", "qjump_mn.run", "million", "--out", "runs", *settings]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    run = directory.existing(folder / "runs/last")
    sent = trials * SENDERS * (duration_ms * 10**6 // INTERVAL_NS)
    found = outcome.read(run.path)
    (told,) = (one for one in found.checks if one.name == "bound")
    assert told.status == "pass", told.text
    # Each crosses two switch ports at least, and those are counted from the trial's beginning.
    frames = re.search(r"none of (\d+) frames", told.text)
    assert frames is not None
    assert int(frames[1]) >= 2 * sent
    # Were they far from their bounds, or the ports idle, this would say little.
    for trial in run.manifest.plan.trials():
        bounds = guarantee.waits_ns(trial.arm)
        crossed = {port for port, _ in bounds}
        assert crossed == {("s1", "s0"), ("s2", "s0"), ("s0", "s3"), ("s3", "h10")}
        waits = links.waits(trial.arm.network, run.asbuilt(trial.name).parent)
        for (port, level), bound_ns in bounds.items():
            assert waits[port][level].frames >= sent / trials / 3
            assert waits[port][level].longest_ns > bound_ns / 4, port
            assert waits[port][0].longest_ns > 50_000, f"{port}: bulk never waited long"


def test_none_of_ten_thousand_urgent_packets_waits_longer_than_its_bound(tmp_path: Path) -> None:
    check(tmp_path, 5, 1)


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_none_of_a_million_urgent_packets_waits_longer_than_its_bound(tmp_path: Path) -> None:
    check(tmp_path, 50, 9)
