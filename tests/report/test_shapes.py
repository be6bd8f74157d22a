"""Figures for a column or a page of a paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qjump_mn.analysis import pipeline
from qjump_mn.cli import options
from qjump_mn.errors import UsageError
from qjump_mn.report.figures import latency_cdf, shapes, style
from qjump_mn.report.figures.shapes import Shape
from qjump_mn.results.directory import RunDirectory
from tests.support import pictures, synthetic
from tests.support.processes import cli

COLUMN = options.WIDTHS["column"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    made = synthetic.make(tmp_path_factory.mktemp("shapes") / "results")
    pipeline.analyse(made.path)
    return made


def size_points(svg: Path) -> tuple[float, float]:
    found = re.search(r'<svg [^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"', svg.read_text())
    assert found is not None
    return float(found[1]), float(found[2])


@pytest.mark.parametrize("width", [COLUMN, 5.0, options.WIDTHS["page"], 10.0])
@pytest.mark.parametrize("note", [True, False])
def test_a_figure_has_the_width_and_text_inside(
    run: RunDirectory, tmp_path: Path, width: float, note: bool
) -> None:
    with shapes.shaped(Shape(width, note=note)):
        for drawn in latency_cdf.draw(run, run.manifest, []):
            files = style.save(drawn, tmp_path)
            wide, high = size_points(files["svg"])
            assert wide == pytest.approx(72 * width, abs=0.1)
            notes = " ".join(" ".join(text.get_text().split()) for text in drawn.figure.texts)
            assert (f"plan {run.manifest.plan_sha256[:12]}" in notes) is note
            pictures.assert_texts_inside(drawn)
            assert high < 72 * 8 * max(1, width / shapes.WIDTH_INCHES)
    assert shapes.current() == Shape()


def test_text_of_a_column_can_be_read(run: RunDirectory) -> None:
    usual = min(sizes(run))
    with shapes.shaped(Shape(COLUMN)):
        assert min(sizes(run)) == pytest.approx(usual * shapes.SMALLEST)
        assert usual * shapes.SMALLEST > 4.9


def sizes(run: RunDirectory) -> list[float]:
    """Return the sizes of all texts in points."""
    figure = latency_cdf.draw(run, run.manifest, [])[0].figure
    return [float(text.get_fontsize()) for panel in figure.get_axes() for text in panel.texts]


def test_the_shape_is_the_usual_one_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), shapes.shaped(Shape(COLUMN)):
        raise ZeroDivisionError
    assert shapes.current() == Shape()


@pytest.mark.parametrize(
    ("typed", "inches"), [("column", 3.33), ("page", 7.0), ("4.5", 4.5), ("20", 20.0)]
)
def test_a_width_is_a_name_or_inches(typed: str, inches: float) -> None:
    assert options.inches(typed) == inches


@pytest.mark.parametrize("typed", ["wide", "2.9", "21", "nan", "-3", "4in"])
def test_another_width_is_refused(typed: str) -> None:
    with pytest.raises(UsageError, match="--width: use column, page or 3 to 20 inches"):
        options.inches(typed)


def test_report_draws_figures_of_that_width(run: RunDirectory) -> None:
    figure = run.figures / "latency_cdf.svg"
    usual = figure.read_bytes()
    done = cli("report", run.path, "--width", "column", "--no-note")
    assert done.returncode in (0, 1), done.stderr
    assert size_points(figure)[0] == pytest.approx(72 * COLUMN, abs=0.1)
    done = cli("report", run.path)
    assert figure.read_bytes() == usual
