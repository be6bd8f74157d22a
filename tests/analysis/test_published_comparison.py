"""One quantity by theory, emulated, simulated, as published: both directions, and what the files
say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from qjump_mn import resolve
from qjump_mn.analysis import __main__ as analysis
from qjump_mn.analysis import claims, pipeline, published_comparison
from qjump_mn.cli import explain
from qjump_mn.errors import UsageError
from qjump_mn.resolve import loading
from qjump_mn.results import formatting, outcome, reference, result_tables
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import Comparison
from tests.support import synthetic
from tests.support.screen import Screen
from tests.support.user_files import FIG3A, Write

EMULATED = (
    "theory, 10Mbit",
    "emulation, 10Mbit, this run",
    "theory, 10Gbit",
    "simulation, 10Gbit, reference run",
    "published, 10Gbit",
)
SIMULATED = (
    "theory, 10Mbit",
    "emulation, 10Mbit, reference run",
    "theory, 10Gbit",
    "simulation, 10Gbit, this run",
    "published, 10Gbit",
)


def entered(folder: Path, preset: str, values: dict[str, dict[str, dict[str, float]]]) -> None:
    path = folder / "experiments" / "reference" / f"fig3a-{preset}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = {"plan_sha256": "x", "results_sha256": "z", "trials": {}, "values": values}
    path.write_text(json.dumps(entries))


def compared(
    comparison: Comparison | None, heads: tuple[str, ...]
) -> dict[str, tuple[float | None, ...]]:
    assert comparison is not None and comparison.heads == heads
    return {row.what: row.values for row in comparison.rows}


def simulated_run(folder: Path) -> Manifest:
    """A manifest of a simulated run; whoever made its trials."""
    plan = resolve.plan("fig3a", "10g", [])
    return replace(synthetic.create(folder, plan).manifest, backend="simulator")


def summary(name: str, **medians: float) -> outcome.ArmSummary:
    values = {measure: [value - 1, value, value + 5] for measure, value in medians.items()}
    return synthetic.summary(name, {"ping": values}, scheme="s", planned=3, done=3)


@pytest.mark.usefixtures("own")
def test_an_emulated_run_stands_beside_the_simulators_reference(tmp_path: Path) -> None:
    entered(
        tmp_path,
        "10g",
        {
            "idle": {"ping": {"p50_ms": 0.0007296}},
            "contended": {"ping": {"p50_ms": 2.0}},
            "qjump": {"ping": {"p50_ms": 0.0025}},
        },
    )
    run = synthetic.make(tmp_path / "runs")
    found = compared(
        published_comparison.compare(
            run.manifest, (summary("idle", p50_ms=7.0), summary("contended", p50_ms=100.0))
        ),
        EMULATED,
    )
    # By hand: 114 B with their preamble over eight links; 84 B of echo request are a frame of 106.
    assert found["ping alone, median"] == pytest.approx((0.7296, 7.0, 0.000728, 0.0007296, 0.085))
    assert found["ping + iperf, median"] == (None, 100.0, None, 2.0, 0.9)
    assert found["QJump, median"] == (None, None, None, 0.0025, 0.003)
    # Three ports with data, 1542 B each, and three with acknowledgements of up to 122 B.
    bound = found["QJump, slowest; theory: idle and what is in transmission on each port"]
    wait_ms = 3 * 1.2336 + 3 * 0.0976
    assert bound == pytest.approx(
        (0.7296 + wait_ms, None, 0.000728 + wait_ms / 1000, None, None), abs=1e-6
    )
    assert found["median without QJump over that with it"] == (None, None, None, 800.0, 300)


@pytest.mark.usefixtures("own")
def test_a_simulated_run_stands_beside_the_emulations_reference(tmp_path: Path) -> None:
    entered(tmp_path, "course", {"idle": {"ping": {"p50_ms": 0.778}}})
    found = compared(
        published_comparison.compare(
            simulated_run(tmp_path / "runs"), (summary("idle", p50_ms=7.0),)
        ),
        SIMULATED,
    )
    assert found["ping alone, median"] == pytest.approx((0.7296, 0.778, 0.000728, 7.0, 0.085))
    # A reference without the values of any arm.
    entered(tmp_path, "course", {})
    comparison = published_comparison.compare(
        simulated_run(tmp_path / "runs"), (summary("idle", p50_ms=7.0),)
    )
    assert compared(comparison, SIMULATED)["ping alone, median"] == pytest.approx(
        (None, None, 0.000728, 7.0, 0.085)
    )


def test_cells_have_their_unit_and_frames() -> None:
    rows = (
        outcome.Quantity(what="time", unit="ms", values=(None, 1.2336, 0.000728, None, 0.9)),
        outcome.Quantity(what="ratio", unit="times", values=(None, 46.0, None, None, 300)),
        outcome.Quantity(what="alone", unit="ms", values=(None, None, 0.1, None, None)),
    )
    shown = Comparison(
        heads=EMULATED,
        frames_ms=(1.2336, 1.2336, 0.0012336, 0.0012336, 0.0012336),
        rows=rows,
        source="",
    )
    assert result_tables.compared_heads(shown) == [EMULATED[1], EMULATED[2], EMULATED[4]]
    none = formatting.NONE
    assert result_tables.compared(shown) == [
        ["time", "1.234 ms (1)", "0.728 us (0.5901)", "900 us (729.6)"],
        ["ratio", "46", none, "300"],
    ]


@pytest.mark.usefixtures("own")
def test_a_run_becomes_a_reference_with_its_medians(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = synthetic.make(tmp_path / "runs", settings=["duration=4s"], replicates=3)
    (folder := tmp_path / "experiments" / "reference").mkdir(parents=True)
    analysis.main([str(run.path), "--reference", str(folder)])
    written = folder / "fig3a-smoke.json"
    assert str(written) in capsys.readouterr().out
    made = reference.read(written)
    assert pipeline.analyse(run.path).outcome.reference.startswith("identical to the reference run")
    arm = outcome.read(run.path).arm("contended")
    assert arm is not None
    assert made.values["contended"]["ping"]["p50_ms"] == arm.measures["ping"]["p50_ms"].median
    assert made.values["contended"]["bulk"].keys() == arm.measures["bulk"].keys()
    for page in ("report.html", "report.md"):
        assert "emulation, 10Mbit, this run" in (run.path / page).read_text()


def test_an_incomplete_run_is_no_reference(tmp_path: Path) -> None:
    run = synthetic.create(tmp_path, resolve.plan("fig3a", "smoke", []))
    with pytest.raises(UsageError, match="9 of 9 trials are missing: resume the run"):
        analysed = pipeline.analyse(run.path)
        reference.write(tmp_path, run.manifest, analysed.outcome, analysed.results)


WITH = [
    name for name in loading.names("experiments") if published_comparison.spec(name) is not None
]


def test_the_figures_of_the_testbed_are_compared() -> None:
    assert {"fig3a", "fig7", "fig11"} <= set(WITH) and "fig9" not in WITH


@pytest.mark.parametrize("name", WITH)
def test_every_expression_is_of_its_plan(name: str) -> None:
    asked = published_comparison.spec(name)
    assert asked is not None
    plans = [resolve.plan(name, preset, []) for preset in (asked.emulation, asked.simulation)]
    assert [plan.shown.backends[0] for plan in plans] == ["guest", "simulator"]
    for row in asked.rows:
        for plan, of in zip(plans, (row.of, row.simulated or row.of), strict=True):
            for text in filter(None, (of, row.theory)):
                claims.parse(text, "number", plan, row.what)


def test_bad_row_is_refused_with_its_place(tmp_path: Path, own: Write) -> None:
    own("experiments/fig3a.toml", FIG3A.replace('published = "900us"', 'published = "900 bananas"'))
    with pytest.raises(
        UsageError,
        match=r"^experiment 'fig3a': beside: ping \+ iperf, median: published: '900 bananas' is not a duration",
    ):
        explain.explain("fig3a", "smoke", [], Screen())
    # Of a run that there is already.
    assert published_comparison.compare(simulated_run(tmp_path), ()) is None
    own("experiments/fig3a.toml", FIG3A.replace("[[beside.rows]]", "[[beside.columns]]"))
    with pytest.raises(UsageError, match=r"^experiment 'fig3a': beside: "):
        published_comparison.spec("fig3a")
