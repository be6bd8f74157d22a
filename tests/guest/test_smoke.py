"""The smoke preset of every experiment, by the command line, as a user calls it: whole every night;
else those of ``WHOLE``, and of each other experiment one arm."""

from __future__ import annotations

import statistics
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench import run_directory
from qjump_mn import resolve
from qjump_mn.resolve import loading
from qjump_mn.results import directory, outcome
from qjump_mn.results.directory import RunDirectory
from tests.guest.command import SAME, qjump_mn
from tests.support.nights import nightly

pytestmark = [pytest.mark.guest, pytest.mark.smoke]


def ran(experiment: str, out: Path, *options: str) -> int:
    """Runs it, and returns the exit code; `out`/last is the run directory."""
    return qjump_mn(experiment, "--preset", "smoke", "--out", out, *options).returncode


def smoke(experiment: str, out: Path, *settings: str) -> RunDirectory:
    """The run directory of a smoke run whose claims hold, but for those known not to."""
    code = ran(experiment, out, *settings)
    refuted = NOT_REPRODUCED.get(experiment, set())
    assert code == (1 if refuted else 0)
    run = directory.existing(out / "last")
    manifest, found = run.manifest, outcome.read(run.path)
    assert all(record.status == "done" for record in manifest.trials.values())
    expected = dict.fromkeys(refuted, "NOT REPRODUCED")
    expected |= dict.fromkeys(DIRECTION_ONLY.get(experiment, ()), "DIRECTION ONLY")
    verdicts = {row.claim: row.verdict for row in found.verdicts}
    assert expected.items() <= verdicts.items()
    assert {verdicts[claim] for claim in verdicts.keys() - expected.keys()} == {"REPRODUCED"}
    left = [path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file()]
    assert [path for path in left if run_directory.entry(path) is None] == []
    assert (run.path / "report.html").stat().st_size > 50_000
    drawn = [file for drawing in found.drawings for file in drawing.files.items()]
    sizes = {name: (run.path / name).stat().st_size for _, name in drawn}
    assert drawn and all(sizes[name] >= FIGURE_BYTES[ending] for ending, name in drawn), sizes
    return run


FIGURE_BYTES = {"png": 30_000, "svg": 25_000, "pdf": 10_000, "csv": 400}
"""Twice or three times what empty axes have; the least figure here has twice as much again. Of
numbers, a head and some rows."""


NOT_REPRODUCED = {
    "fig7": {"dctcp_job", "ecn", "pause_ptp"},
    "fig9": {"search_dctcp_published"},
    "hadoop": {"c07", "c08", "c09"},
    "hadoop-codel": {"c11", "c12", "ece_enough"},
    "hadoop-sensitivity": {"gains"},
}
"""Published claims that do not hold here, and why is said in the experiment's remarks; one that
begins to hold must be told so too. ECN's RMS in `fig7` (0.69 of the contended one, half is claimed)
and DCTCP's 99th percentile in `fig9` (2.4 times at a load of 0.5, 2.5 are claimed) are near the
border with one seed of a few seconds, or of 300 flows."""

DIRECTION_ONLY = {
    "fig3a": {"order"},
    "fig3b": {"contended", "better"},
    "fig3c": {"contended", "better"},
    "fig5": {"disturbed", "offset", "memcached_better"},
    "fig9": {"mining_long", "search_dctcp"},
    "hadoop": {"c03", "c10"},
    "table1": {"tail"},
}
"""Claims whose numbers are not of the published size: at 10 Mb/s for the reasons in
docs/similarity.md, in the simulator for those in the experiment's remarks."""


WHOLE = {"collectives", "fig3a", "hadoop-ect", "rivals", "scale"}
"""Run whole always: what README shows, and what takes less than a minute. Of the others it is an
hour of a core."""
LONG = {
    *("bound", "course16", "fig3c", "fig5", "fig6", "fig7", "fig10", "fig11"),
    *("links", "ratelimit", "schemes", "table1", "thresholds"),
}
"""Nor an arm of these, which takes a minute and more."""
EVERY = loading.names("experiments")


@pytest.mark.parametrize("experiment", nightly(EVERY, but=WHOLE))
def test_the_verdicts_of_the_smoke_run_are_known(experiment: str, tmp_path: Path) -> None:
    said = compared(smoke(experiment, tmp_path))
    assert said.startswith("identical to the reference run"), said


@pytest.mark.parametrize(
    "experiment", nightly([name for name in EVERY if name not in WHOLE], but=set(EVERY) - LONG)
)
def test_an_arm_of_the_smoke_run_has_the_bits_of_the_reference_run(
    experiment: str, tmp_path: Path
) -> None:
    """The last that the figure draws, which most often has QJump or most at once."""
    plan = resolve.plan(experiment, "smoke", [])
    arm = [arm.name for arm in plan.arms if (arm.series or arm.name) in plan.shown.figure.arms][-1]
    assert ran(experiment, tmp_path, "--arms", arm) == 0
    said = compared(directory.existing(tmp_path / "last"))
    assert said.startswith(SAME), said


def compared(run: RunDirectory) -> str:
    """What the run says of the reference run; skips on a machine of other packages, whose bits may
    differ."""
    said = outcome.read(run.path).reference
    others = run.manifest.machine.get("differences")
    if others is not None and not said.startswith(("identical", "the results are those")):
        pytest.skip(
            f"its results are not compared, for the guest is not of the locked packages: {others}"
        )
    return said


@pytest.mark.nightly
def test_a_first_ping_takes_no_longer_than_the_others(tmp_path: Path) -> None:
    run = smoke("fig3a", tmp_path)
    latencies = pq.read_table(run.data("idle/1") / "ping.parquet")["latency_us"].to_pylist()
    over = [latency - statistics.median(latencies) for latency in latencies]
    assert over[0] < 100, "a switch's daemon takes 400 us and more"
    assert max(over) < 300, "what the kernel does beside is less"


@pytest.mark.nightly
def test_ptp4l_takes_the_place_of_ptpd(tmp_path: Path) -> None:
    run = smoke("fig5", tmp_path, "-s", "workloads.ptp.implementation=ptp4l")
    arm = outcome.read(run.path).arm("idle")
    assert arm is not None
    idle = arm.measures["ptp"]
    analytic_ms = run.manifest.plan.judged.constants["ptp_analytic_ms"]
    assert 0 < idle["delay_p50_ms"].median - analytic_ms < 0.05, "15 us up and 36 us down"
    assert abs(idle["offset_mean_ms"].median) < 0.05
