"""Figures of experiments of one's own, which have arms of a sweep, and arms that measured
nothing."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib.colors
import matplotlib.figure
import numpy as np
import pytest
from msgspec.structs import replace

import qjump_mn
from qjump_mn.model.experiment import PanelSpec
from qjump_mn.report import drawing as drawings
from qjump_mn.report import missing_figures, original
from qjump_mn.report.figures import curves, latency_cdf, registry, style, sweep
from qjump_mn.results import formatting
from qjump_mn.results import outcome as outcomes
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import Outcome
from tests.support import synthetic
from tests.support.processes import cli

ROOT = Path(qjump_mn.__file__).parents[1]
EXPERIMENT = """
title = "A ping beside a copy"
backends = ["simulator"]
compare = "contended"
warmup = "50ms"
duration = "200ms"
schemes.none.simulator.like = "linux"
link.rate = "10Mbit"
workloads.ping = { program = "ping", flows = ["h8>h10"] }
workloads.rare = { program = "memcached", rate = 0.1, flows = ["h8>h10"] }
workloads.bulk = { program = "iperf", flows = ["h7>h10"] }
arms.idle = { workloads = ["ping"] }
arms.silent = { workloads = ["rare"] }
arms.contended = { workloads = ["ping", "bulk"], sweep = "buffer" }

[sweeps.buffer]
sets = ["link.buffer"]
values = ["16kB", "32kB", "64kB"]
label = "buffer of a port, kB"

[claims.delayed]
statement = "Bulk traffic makes the ping later"
source = "a test"
predicate = "contended.ping.p50_ms > idle.ping.p50_ms"
"""
SWEPT = ["contended_16kB", "contended_32kB", "contended_64kB"]


def called(folder: Path, *arguments: str) -> str:
    """What qjump-mn says, in a folder with the experiment."""
    done = cli(*arguments, cwd=folder)
    assert done.returncode < 2, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    folder = tmp_path_factory.mktemp("own")
    (folder / "experiments").mkdir()
    (folder / "experiments/own.toml").write_text(EXPERIMENT)
    assert "Traceback" not in called(folder, "run", "own")
    return RunDirectory((folder / "results/last").resolve())


def shown(run: RunDirectory, **entries: Any) -> Manifest:
    return synthetic.redrawn(run.manifest, **entries)


def legend(figure: style.Figure) -> list[str]:
    """The arms that a figure's legend names."""
    return [
        text.get_text().split(": ")[0]
        for each in figure.figure.legends
        for text in each.get_texts()
    ]


def test_an_arm_without_requests_is_named_and_not_drawn(run: RunDirectory) -> None:
    figure = latency_cdf.draw(run, run.manifest, [])[0]
    assert "silent" not in legend(figure)
    assert "; no requests: silent" in figure.caption
    assert "; no requests: silent" in " ".join(
        text.get_text() for text in figure.figure.texts
    ).replace("\n", " ")


def test_a_run_without_any_request_is_analysed(run: RunDirectory) -> None:
    folder = run.path.parents[1]
    said = called(folder, "run", "own", "--arms", "silent", "--out", "silent")
    assert "Traceback" not in said
    assert not list((folder / "silent/last/fig").glob("latency_cdf*"))
    report = (folder / "silent/last/report.md").read_text()
    assert "There is no figure: no trial that is done has requests with latencies." in report
    assert "This experiment is one's own: it reproduces no published result." in report
    assert "10 Mb/s, " in report
    assert "0.01 Gb/s" not in report


def title(figure: style.Figure) -> str:
    return figure.figure.get_axes()[0].get_title("left")


def test_arms_of_a_sweep_are_among_all_arms(run: RunDirectory) -> None:
    (figure,) = latency_cdf.draw(run, run.manifest, [])
    assert set(map(str.strip, legend(figure))) == {
        arm.label for arm in run.manifest.plan.arms if arm.name != "silent"
    }
    assert title(figure).startswith("All arms")


def test_a_figure_of_a_sweep_alone_leaves_the_others_to_another(run: RunDirectory) -> None:
    main, others = latency_cdf.draw(run, shown(run, arms=["contended"]), [])
    assert len(legend(main)) == len(SWEPT)
    assert title(main).startswith("The main arms")
    assert legend(others) == ["idle"]


def test_every_arm_of_a_sweep_has_a_look_of_its_own(run: RunDirectory) -> None:
    plan = run.manifest.plan
    found = [curves.of_arm(run, plan, arm) for arm in plan.arms if arm.name in SWEPT]
    looks = [curve.look for curve in found if curve]
    assert (
        len({look.colour for look in looks}) == len({look.dashes for look in looks}) == len(SWEPT)
    )
    assert len({look.marker for look in looks}) == 1


PANEL = PanelSpec(measures=["bulk.goodput_mbps"], label="bulk, Mb/s")


@pytest.fixture(scope="module")
def outcome(run: RunDirectory) -> Outcome:
    return outcomes.read(run.path)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"plot": "sweep", "panels": []},
         'plot = "sweep" draws panels, and [figure] of the experiment has none'),
        ({"plot": "bars", "panels": [PANEL], "arms": ["contended"]},
         'plot = "bars" draws no arms of a sweep, and it shows no others that are done'),
        ({"plot": "timeline", "arms": ["contended"]},
         'plot = "timeline" draws no arms of a sweep, and it shows no others that are done'),
        ({"plot": "sweep", "panels": [PANEL], "arms": ["idle"]},
         "no trial that is done has what its panels show, or what that is relative to"),
    ],
)  # fmt: skip
def test_why_there_is_no_figure_is_said(
    run: RunDirectory, outcome: Outcome, entries: dict[str, Any], reason: str
) -> None:
    manifest = shown(run, **entries)
    assert registry.find(manifest.plan.shown.figure.plot)(run, manifest, outcome.arms) == []
    assert missing_figures.why(manifest.plan, outcome) == f"There is no figure: {reason}."
    nothing = replace(outcome, arms=())
    assert missing_figures.why(manifest.plan, nothing) == "There is no figure: no trial is done."


def test_a_sweep_shows_its_greatest_value_whole_and_the_buffers_of_its_arms(
    run: RunDirectory, outcome: Outcome
) -> None:
    manifest = shown(run, plot="sweep", panels=[PANEL], arms=["contended"])
    (figure,) = sweep.draw(run, manifest, outcome.arms)
    (axis,) = figure.figure.get_axes()
    greatest = max(
        arm.measures["bulk"]["goodput_mbps"].median for arm in outcome.arms if arm.name in SWEPT
    )
    assert axis.get_ylim()[0] == 0
    assert axis.get_ylim()[1] >= 1.03 * greatest
    assert "buffer 10.51 to 42.05" in figure.caption


def test_a_series_without_a_label_has_its_name(run: RunDirectory, outcome: Outcome) -> None:
    manifest = shown(run, plot="sweep", panels=[PANEL], arms=["contended"])
    plan = manifest.plan
    arms = tuple(replace(arm, label=arm.label.removeprefix("contended")) for arm in plan.run.arms)
    plan = synthetic.altered(plan, run={"arms": arms})
    (drawn,) = sweep.draw(run, replace(manifest, plan=plan), outcome.arms)
    told = drawn.figure.get_axes()[0].get_legend()
    assert told is not None
    assert [text.get_text() for text in told.get_texts()] == ["contended"]


def test_dollar_in_a_label_stays(run: RunDirectory, tmp_path: Path, outcome: Outcome) -> None:
    label = "5 $ a packet: $x^"
    manifest = shown(run, plot="sweep", panels=[replace(PANEL, label=label)], arms=["contended"])
    (figure,) = sweep.draw(run, manifest, outcome.arms)
    files = style.save(figure, tmp_path)
    assert files["png"].stat().st_size > 0
    (axis,) = figure.figure.get_axes()
    assert label in axis.get_ylabel() and not axis.yaxis.label.get_parse_math()


def test_svg_keeps_its_text_and_writes_microseconds(
    run: RunDirectory, tmp_path: Path, outcome: Outcome
) -> None:
    label = "delay, us: 15us of a bus"
    manifest = shown(run, plot="sweep", panels=[replace(PANEL, label=label)], arms=["contended"])
    (figure,) = sweep.draw(run, manifest, outcome.arms)
    text = style.save(figure, tmp_path)["svg"].read_text()
    assert ">delay, µs: 15µs of a bus</text>" in text
    assert "'DejaVu Sans'" in text and "sans-serif" in text


def test_characters_that_the_font_lacks_are_named(
    run: RunDirectory, tmp_path: Path, outcome: Outcome
) -> None:
    manifest = shown(
        run, plot="sweep", panels=[replace(PANEL, label="延迟 (µs)")], arms=["contended"]
    )
    (drawing,) = drawings.draw(RunDirectory(tmp_path), manifest, outcome.arms)
    assert drawing.missing_glyphs == "延迟"
    sentence = "The font of the figure lacks 延 迟: name one that has"
    assert sentence in original.lead(manifest, drawing)
    assert formatting.missing_glyphs(replace(drawing, missing_glyphs="")) == ""


@pytest.mark.parametrize("colour", ["#D55E00", "#56B4E9", "#B8A800", "#000000"])
def test_text_in_a_colour_is_dark_enough_to_read(colour: str) -> None:
    red, green, blue = matplotlib.colors.to_rgb(style.ink(colour))
    luminance = style._luminance(np.array([red, green, blue]))
    assert 1.05 / (luminance + 0.05) >= 4.5
    assert style.ink("#000000") == "#000000"


def test_no_warning_of_matplotlib_is_shown() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with style.applied():
            matplotlib.figure.Figure().subplots().legend()
    assert not found
