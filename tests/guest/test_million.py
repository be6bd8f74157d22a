"""A million urgent packets at 10 Gb/s, beside bulk traffic that is offered more than every port on their way
carries: each frame at each switch port against its bound (qjump_mn/model/guarantee.py). A hundredth of them
every day.

Nine hosts send a packet to one host in each epoch of n·P/R, which is the shortest that has a bound, and a
frame's time: a packet that waits for a frame of its own host leaves late, and its epoch begins then.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from qjump_mn.model import guarantee, hooks, ports
from qjump_mn.model.plan import Trial
from qjump_mn.results import directory, links, outcome
from qjump_mn.results.directory import RunDirectory
from tests.guest.command import experiment, succeeds

pytestmark = [pytest.mark.guest, pytest.mark.smoke]

FULL_NS = 1_233.6
"""Of a full-size frame."""

EXPERIMENT = """
title = "Urgent packets by the million"
topology = "paper12"
warmup = "200us"
duration = "2500us"
replicates = 1
link = { rate = "10Gbit" }

[workloads.urgent]
program = "fanin"
label = "one packet an epoch from each of nine hosts, at random phases"
level = 7
flows = ["h1..h9>h10"]
interval = "4us"

[workloads.together]
program = "fanin"
label = "the same, all at once"
level = 7
flows = ["h1..h9>h10"]
interval = "4us"
phase = "0ns"

# 60 of the 100 frames that a host's link carries in an interval. Two such flows meet at each switch's way up and at s0>s3.
[workloads.bulk]
program = "noise"
label = "full-size datagrams"
level = 0
flows = ["h7>h1", "h2>h9", "h3>h11", "h8>h12", "h11>h10"]
interval = "123360ns"
burst = 60

# Of 300 B on the wire: nine of them are 2.16 us.
[qjump.shortest]
budget_packet = "300B"
epoch = "2160ns"
factors = { 7 = 1 }

[arms.random]
label = "at random phases"
workloads = ["urgent", "bulk"]
scheme = "qjump"
qjump = "shortest"

[arms.at_once]
label = "all at once"
workloads = ["together", "bulk"]
scheme = "qjump"
qjump = "shortest"

[figure]
plot = "latency_cdf"
workload = "urgent"
arms = ["random"]

[claims.no_loss]
statement = "None is lost"
source = "NSDI'15: guaranteed delivery at factor 1"
predicate = "random.urgent.loss == 0 and at_once.together.loss == 0"

[presets.daily]
about = "a hundredth"

[presets.nightly]
about = "a million, in ten trials of 113,000"
duration = "50ms"
replicates = 5
"""


def check(folder: Path, preset: str, least: int, last: float) -> None:
    """Run a preset, in which so many packets are sent, and compare every frame of each trial; ``last``: how much
    of a frame some packet must have met at the last port."""
    experiment(folder, "million", EXPERIMENT)
    succeeds("million", "--preset", preset, "--out", "runs", cwd=folder)
    run = directory.existing(folder / "runs/last")
    trials = run.manifest.plan.trials()
    sent = {trial.name: _sent(run, trial) for trial in trials}
    assert sum(sent.values()) >= least
    found = outcome.read(run.path)
    (told,) = (one for one in found.checks if one.name == "bound")
    assert told.status == "pass", told.text
    # Each crosses three switch ports, and every frame of them is counted.
    frames = re.search(r"none of (\d+) frames", told.text)
    assert frames and int(frames[1]) >= 3 * sum(sent.values())
    nearest: Counter[ports.Port] = Counter()
    for trial in trials:
        bounds = guarantee.of_arm(trial.arm).waits_ns
        crossed = {port for port, _ in bounds}
        assert crossed == {("s1", "s0"), ("s2", "s0"), ("s0", "s3"), ("s3", "h10")}
        waits = links.waits(trial.arm.network, run.asbuilt(trial.name).parent)
        for (port, level), bound_ns in bounds.items():
            assert waits[port][level].frames >= sent[trial.name] / 4
            # Without the allowance for what the processor hands over late, which the run's own check has.
            assert waits[port][level].longest_ns <= bound_ns, port
            nearest[port] = max(nearest[port], waits[port][level].longest_ns)
            assert waits[port][0].longest_ns > 20 * FULL_NS, f"{port} was not full"
    # Had none met a frame of bulk that had just begun, this would say little. At the last port few
    # can: the link before it is as fast. Of 11,000 packets 0.34 of a frame was the most there.
    assert nearest.pop(("s3", "h10")) > last * FULL_NS
    assert min(nearest.values()) > 0.95 * FULL_NS
    # Five packets of 240 ns besides that frame, and two.
    assert nearest["s1", "s0"] > 0.85 * (5 * 240 + FULL_NS)
    assert nearest["s2", "s0"] > 0.85 * (2 * 240 + FULL_NS)


def _sent(run: RunDirectory, trial: Trial) -> int:
    """How many urgent packets were sent."""
    (urgent,) = (workload for workload in trial.arm.workloads if not hooks.is_background(workload))
    rows: int = pq.read_metadata(run.data(trial.name) / f"{urgent.name}.parquet").num_rows
    return rows


def test_none_of_ten_thousand_urgent_packets_waits_longer_than_its_bound(tmp_path: Path) -> None:
    check(tmp_path, "daily", 11_000, 0.25)


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_none_of_a_million_urgent_packets_waits_longer_than_its_bound(tmp_path: Path) -> None:
    check(tmp_path, "nightly", 10**6, 0.5)
