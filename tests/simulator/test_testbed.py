"""The paper's testbed at 10 Gb/s, for a moment: the presets run where they can, and what is published at that
scale holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qjump_mn.results import directory, outcome
from qjump_mn.results.directory import RunDirectory
from tests.simulator.short import command
from tests.support.processes import execute

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("package")]

SHORT = {
    "fig3a": ("-s", "duration=1s", "-s", "workloads.ping.interval=500us"),
    "fig7": ("-s", "duration=30ms", "-s", "workloads.job.map_size=16MB", "--replicates", "1"),
    "fig11": ("-s", "duration=3ms", "-s", 'sweeps.epoch.values=["10us", "21us", "25us"]'),
}


def run(out: Path, experiment: str) -> tuple[RunDirectory, str]:
    done = execute(command(out, experiment, "--preset", "10g", "-v", *SHORT[experiment]))
    found = directory.existing(out / "last")
    assert found.manifest.trials, done.stderr
    assert {record.status for record in found.manifest.trials.values()} == {"done"}, (
        done.stdout + done.stderr
    )
    assert found.manifest.backend == "simulator"
    return found, done.stdout


def verdicts(found: RunDirectory) -> dict[str, str]:
    return {row.claim: row.verdict for row in outcome.read(found.path).verdicts}


def test_figure_3a_holds_with_the_papers_numbers(tmp_path: Path) -> None:
    found, said = run(tmp_path, "fig3a")
    held = verdicts(found)
    assert held["ratio"] == "REPRODUCED"
    assert held.pop("order") == "DIRECTION ONLY", (
        "two ports are full here, and one was where it was published"
    )
    assert set(held.values()) == {"REPRODUCED"}
    idle = outcome.read(found.path).arm("idle")
    assert idle is not None and idle.measures["ping"]["max_ms"].median == pytest.approx(
        8 * 114 * 8e-7, abs=1e-12
    )
    assert "Side by side" in said
    page = (found.path / "report.md").read_text()
    emulated = r"729.6 us \(0.5914\) \| \d+ us \(0.59\d+\)"
    assert re.search(
        rf"\| ping alone, median \| {emulated} \| 0.728 us \(0.5904\) \| 0.7296 us \(0.5917\) \| 85 us "
        r"\(68.94\) \|",
        page,
    )


def test_figure_7_has_six_schemes(tmp_path: Path) -> None:
    found, _ = run(tmp_path, "fig7")
    held = verdicts(found)
    names = "contended pause_memcached ecn dctcp qjump_best qjump_published contended_published"
    assert {held[name] for name in names.split()} == {"REPRODUCED"}
    measured = {arm.name: arm.measures for arm in outcome.read(found.path).arms}
    # 128 connections that think for 460 us: what the paper's clients got alone, within 3 %.
    assert measured["memcached_alone"]["memcached"]["requests_per_s"].median == pytest.approx(
        128 / 468e-6, rel=0.03
    )
    # Nothing is lost where ports pause each other.
    assert (
        measured["pause"]["job"]["dropped"].median,
        measured["pause"]["memcached"]["loss"].median,
    ) == (0, 0)


def test_figure_11_keeps_its_bound(tmp_path: Path) -> None:
    found, _ = run(tmp_path, "fig11")
    assert set(verdicts(found).values()) == {"REPRODUCED"}
    measured = {arm.name: arm.measures for arm in outcome.read(found.path).arms}
    arms = {name: measures["urgent"] for name, measures in measured.items() if "urgent" in measures}
    together = measured["equal"]["together"]["max_ms"].median
    assert (
        max(values["max_ms"].median for name, values in arms.items() if name == "levels_25us")
        < together
    )
    assert arms["levels_25us"]["sent"].median == 60 * 120
    assert arms["levels_25us"]["loss"].median == 0
    # Six streams of 300 B on each of ten hosts every 10 us are 1.44 times what the receiver's link carries.
    assert arms["levels_10us"]["loss"].median > 0
