"""Perturbed runs in the simulator, by the command line: a claim that hangs by a buffer's last 2 %
is told so, and what was interrupted goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from qjump_mn.results import directory, outcome
from tests.simulator.short import command
from tests.support.processes import cli, execute
from tests.support.user_files import Write

EXPERIMENT = """
title = "A ping behind a buffer"
reproduces = "nothing"
question = "How much buffer is there?"
topology = "four"
backends = ["simulator"]
warmup = "200ms"
duration = "500ms"
replicates = 1
workloads.ping = { program = "ping", flows = ["h4>h3"], level = 0, interval = "1ms" }
workloads.bulk = { program = "iperf", label = "iperf3", flows = ["h1>h3", "h2>h3"], level = 0 }
schemes.none.simulator.like = "linux"
arms.contended = { label = "ping + iperf3", workloads = ["ping", "bulk"] }
figure = { plot = "latency_cdf", workload = "ping", arms = ["contended"] }
presets.smoke.about = "it"

# The buffer is full at times, and then a ping waits for all of it: 6.12 ms.
[claims.whole]
statement = "Once at least a ping waits for a buffer of 50 frames"
source = "arithmetic"
predicate = "contended.ping.max_ms >= 6.1"

[claims.its_own]
statement = "Once at least a ping waits for the buffer that there is"
source = "arithmetic"
predicate = "contended.ping.max_ms >= 0.99 * buffer_ms"
"""
TOPOLOGY = """
description = "Two senders, a ping and a receiver on one switch"
mtu = "1500B"

[switches]
s1 = ["h1", "h2", "h3", "h4"]

[link]
model = "wire"
rate = "100Mbit"
buffer = "76.1kB"
delay = "0ns"
"""
WHATS = [
    "another seed",
    "buffer + 2 %",
    "propagation + 20 ns",
    "full-size packets - 4 B",
    "another seed",
    "buffer - 2 %",
]


@pytest.fixture
def arguments(own: Write) -> tuple[str, ...]:
    own("experiments/edge.toml", EXPERIMENT)
    own("topologies/four.toml", TOPOLOGY)
    return ("edge", "--preset", "smoke", "--perturb", "6")


def test_claim_that_a_buffer_decides_is_told_so(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = execute(command(tmp_path, *arguments, "-v"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 arm x 1 seed and 6 perturbed runs" in done.stdout
    assert "holds in 5 of 6 perturbed runs; first broken by: buffer - 2 %" in " ".join(
        done.stdout.split()
    )
    found = directory.existing(tmp_path / "last")
    assert [one.what for one in found.manifest.plan.run.perturbations] == WHATS
    whole, its_own = outcome.read(found.path).verdicts
    assert whole.perturbed == outcome.Perturbed(
        planned=6, checked=(1, 2, 3, 4, 5, 6), held=(1, 2, 3, 4, 5), broken_by="buffer - 2 %"
    )
    assert its_own.perturbed is not None and its_own.perturbed.held == (1, 2, 3, 4, 5, 6)
    assert {row.verdict for row in (whole, its_own)} == {"REPRODUCED"}

    # Perturbed runs are resumed as others are, and by nothing but their plan.
    before = found.manifest.files
    for name in ("contended/perturbed2", "contended/perturbed6"):
        shutil.rmtree(found.trial(name))
    gone = cli("report", "-v", found.path)
    flat = " ".join(gone.stdout.split())
    assert gone.returncode == 0 and "Missing: 2 of 7 trials" in gone.stdout
    assert "holds in 4 of 4 perturbed runs (2 of 6 changed nothing or cannot be judged)" in flat
    resumed = cli("resume", found.path)
    assert "2 of 7 trials are left" in resumed.stdout and resumed.returncode == 0
    assert found.manifest.files == before
    assert outcome.read(found.path).verdicts[0] == whole
    simulated = json.loads((found.asbuilt("contended/perturbed6") / "scenario.json").read_text())
    assert simulated["seed"] == 2
