"""The numbers behind every figure: a CSV file beside it, and some of its rows in the report."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from qjump_mn import resolve
from qjump_mn.analysis import pipeline
from qjump_mn.report.figures import numbers
from qjump_mn.report.figures.numbers import MOST_ROWS, Numbers
from tests.report import test_ratios
from tests.support import synthetic


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> pipeline.Analysed:
    return pipeline.analyse(
        synthetic.make(tmp_path_factory.mktemp("numbers") / "results", replicates=2).path
    )


def test_every_figure_has_a_file_that_the_report_names(analysed: pipeline.Analysed) -> None:
    page = (analysed.run.path / "report.html").read_text()
    text = (analysed.run.path / "report.md").read_text()
    assert len(analysed.outcome.drawings) == 2
    for drawing in analysed.outcome.drawings:
        path = drawing.files["csv"]
        excerpt = numbers.read(analysed.run.path / path)
        assert len(excerpt.rows) == MOST_ROWS < excerpt.all
        sentence = f"{MOST_ROWS} of {excerpt.all} rows, evenly spaced; all are in"
        assert f'{sentence} <a href="{path}">' in page
        assert f"{sentence} [{path}]({path})" in text


def test_a_curve_in_the_file_is_that_of_the_tables(analysed: pipeline.Analysed) -> None:
    path = analysed.run.path / analysed.outcome.drawings[0].files["csv"]
    rows = [row for row in csv.DictReader(path.open()) if row["name"] == "contended"]
    tables = [
        pq.read_table(analysed.run.data(f"contended/{seed}") / "ping.parquet")
        for seed in analysed.manifest.plan.run.seeds
    ]
    latencies = np.sort(
        np.concatenate([table["latency_us"].drop_null().to_numpy() for table in tables]) / 1e3
    )
    sent = sum(table.num_rows for table in tables)
    assert len(rows) > 100
    for row in rows:
        at_most = np.searchsorted(latencies, float(row["latency, ms"]) * (1 + 1e-9), side="right")
        before = np.searchsorted(latencies, float(row["latency, ms"]) * (1 - 1e-9), side="left")
        assert before < round(float(row["fraction of requests"]) * sent) <= at_most


def test_text_and_values_that_are_not_there_come_back(tmp_path: Path) -> None:
    written = Numbers(("a, b", "c"), (('x "y", z', 1 / 3), ("", None), ("=1+1\n", float("nan"))))
    numbers.write(written, tmp_path / "a.csv")
    read = numbers.read(tmp_path / "a.csv", most=2)
    assert read == (("a, b", "c"), (('x "y", z', "0.3333333333"), ("=1+1\n", "")), 3)
    assert numbers.read(tmp_path / "a.csv").rows[1] == ("", "")


def test_a_panel_of_ratios_has_each_arm_with_its_value_of_the_sweep() -> None:
    plan = resolve.plan("hadoop-sensitivity", "smoke", [], replicates=2)
    found = numbers.of_panels(
        plan, list(test_ratios.summaries(plan, test_ratios.RUNTIMES).values())
    )
    rows = {row[1]: dict(zip(found.heads, row, strict=True)) for row in found.rows}
    assert rows.keys() < test_ratios.RUNTIMES.keys(), "what they are relative to is none of them"
    chosen = rows["ecn_ack_as_chosen"]
    assert (chosen["median"], chosen["least"], chosen["greatest"], chosen["seeds"]) == (
        0.625,
        0.5,
        0.75,
        2,
    )
    assert (chosen["measure"], chosen["relative to"]) == ("job.runtime_s", "droptail")
    assert {row["x"] for row in rows.values()} == {
        arm.x for arm in plan.run.arms if arm.name in rows
    }
