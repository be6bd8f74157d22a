"""Hosts that draw how long they take: both backends are told the same of them, and what is put in
comes out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from qjump_mn import resolve, theory
from qjump_mn.links import registry
from qjump_mn.model.plan import Plan
from qjump_mn.model.topology import Network
from qjump_mn.results import tables
from qjump_mn.toolbox import simulator
from tests.guest import trees

pytestmark = pytest.mark.guest

BOTH = 'backends=["guest", "simulator"]'
TOLD = """
import json, sys
import msgspec
from qjump_mn.model.topology import Network
from qjump_mn.simulation.scenario import topology

made = topology(msgspec.json.decode(sys.stdin.buffer.read(), type=Network))
cables = {below: (cable.delay, cable.rate) for _, below, cable in getattr(made, "cables", ())}
print(json.dumps([{host: by.points for host, by in made.jitter}, cables]))
"""
POINT = re.compile(r"([0-9.]+):([0-9]+)ns")


@pytest.fixture(scope="module")
def package() -> Path:
    trees.toolbox()
    return simulator.package(print)


def python(package: Path, arguments: list[str], text: msgspec.Struct) -> bytes:
    path = os.pathsep.join([str(package), str(Path(__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, *arguments],
        input=msgspec.json.encode(text),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def told(package: Path, network: Network) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the simulator gets: by host the (per cent, ps) that it draws, by node the ps and the
    rate of the cable above it."""
    drawn, cables = msgspec.json.decode(python(package, ["-c", TOLD], network))
    points_of = {host: [tuple(point) for point in points] for host, points in drawn.items()}
    return points_of, {node: tuple(cable) for node, cable in cables.items()}


def wires(network: Network) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same of the lines by which the emulation makes its wires, from ns."""
    drawn: dict[str, Any] = {}
    cables: dict[str, Any] = {}
    for (_, port), (below, _) in network.ports():
        (line,) = (
            registry.of("wire").shape(network.by_device()[port], port, on_switch=True, seed=1).tc
        )
        wire = re.search(r" rate ([0-9]+)bit .* delay ([0-9]+)ns ", line)
        assert wire is not None
        cables[below] = int(wire[2]) * 1000, int(wire[1])
        if jitter := re.search(r" jitter (\S+) seed 1$", line):
            drawn[below] = [
                (float(percent), int(ns) * 1000) for percent, ns in POINT.findall(jitter[1])
            ]
    return drawn, cables


def papers(
    experiment: str, *settings: str, only: tuple[str, ...] = (), backend: str = "simulator"
) -> Plan:
    return resolve.plan(
        experiment, "paper", [BOTH, *settings], only=only, backend=backend, replicates=1
    )


@pytest.mark.parametrize(
    ("experiment", "drawing"),
    [("table1", {"h1"}), ("fig3b", {"h3"}), ("fig3c", set()), ("fig5", {"h3", "h6", "h9"})],
)
def test_both_backends_are_told_the_same_of_hosts(
    experiment: str, drawing: set[str], package: Path
) -> None:
    emulated, simulated = (
        papers(experiment, "link.tolerance=200ppm", backend=backend)
        for backend in ("guest", "simulator")
    )
    network, other = (plan.trials()[0].network for plan in (emulated, simulated))
    assert network == other and network.faster_ppb
    assert network.link.host_ns > 0 and wires(network)[0].keys() == drawing
    assert told(package, network) == wires(network)


def test_hosts_of_a_fabric_are_told_by_number(package: Path) -> None:
    setting = "link.host_jitter_of.h17=0:1us,99.9:2us,100:5us"
    network = resolve.plan("fig9", "smoke", [setting]).arms[0].network
    assert told(package, network)[0] == {"16": [(0, 10**6), (99.9, 2 * 10**6), (100, 5 * 10**6)]}


def test_idle_pings_take_the_wire_and_what_was_published(package: Path, tmp_path: Path) -> None:
    """20,000 pings so far apart that none is held up by the one before: the shares of those below
    any time differ from the put in ones by more than 0.02 with a probability of 2 exp(-16)
    (Dvoretzky, Kiefer, Wolfowitz)."""
    settings = ("workloads.ping.interval=700us", "duration=14s")
    plan = papers("table1", *settings, only=("idle",))
    (trial,) = plan.trials()
    python(package, ["-m", "qjump_mn.simulation", str(tmp_path)], trial)
    (ping,) = trial.arm.workloads
    latencies_us = np.sort(tables.table(ping, trial, tmp_path / "raw")["latency_us"].to_numpy())
    assert len(latencies_us) == 20_000
    network = trial.network
    points = np.array(network.by_device()["h1-eth0"].host_jitter)
    frame = theory.frame_bytes(theory.PING_HEADERS_BYTES + 56)
    ways = (network.speeds("h1", "h4"), network.speeds("h4", "h1"))
    constant_us = sum(theory.one_way_ns(frame, way) for way in ways) / 1e3 - points[0, 1] / 1e3
    assert constant_us == pytest.approx(20, abs=1)  # four times host_time, and next to it the wire
    drawn_ns = (latencies_us - constant_us) * 1e3
    assert points[0, 1] - 1 <= drawn_ns[0] and drawn_ns[-1] <= points[-1, 1] + 1
    shares = np.interp(drawn_ns, points[:, 1], points[:, 0]) / 100
    assert np.abs(shares - (np.arange(20_000) + 0.5) / 20_000).max() < 0.02
