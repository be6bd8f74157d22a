"""Figures: what is in them, and that the same data make the same bytes."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib.figure
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.patches import Rectangle
from msgspec.structs import replace

import qjump_mn
from qjump_mn import resolve
from qjump_mn.analysis import pipeline
from qjump_mn.errors import UsageError
from qjump_mn.model.experiment import PanelSpec
from qjump_mn.report import drawing
from qjump_mn.report.figures import bars, behind, curves, latency_cdf, marks, notes, registry, style
from qjump_mn.resolve import loading
from qjump_mn.results import formatting
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from tests.support import distributions, pictures, synthetic
from tests.support.processes import execute
from tests.support.user_files import Write

ROOT = Path(qjump_mn.__file__).parents[1]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    made = synthetic.make(tmp_path_factory.mktemp("plots"), replicates=2)
    pipeline.read_trials(made, made.manifest)
    return made


@pytest.fixture(scope="module")
def manifest(run: RunDirectory) -> Manifest:
    return run.manifest


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e6), max_size=200), st.integers(0, 100))
def test_a_cdf_ends_at_one_minus_loss(values: list[float], lost: int) -> None:
    sent = len(values) + lost
    x, y = style.cdf(values, sent)
    assert list(x) == sorted(values)
    assert np.all(np.diff(y) > 0)
    if values:
        assert y[-1] == pytest.approx(1 - lost / sent)


@settings(deadline=None)
@given(st.integers(1, 20000))
def test_thinning_keeps_the_ends_and_the_order(count: int) -> None:
    kept = style.thinned(count)
    assert kept[0] == 0
    assert kept[-1] == count - 1
    assert np.all(np.diff(kept) > 0)
    assert len(kept) <= 650
    assert set(range(max(0, count - 200), count)) <= set(kept)


def test_every_arm_of_every_figure_has_a_look_of_its_own() -> None:
    plan = resolve.plan("fig3a", "course", [])
    found = style.looks(plan)
    assert set(found) == {arm.name for arm in plan.arms}
    main = [found[name] for name in plan.shown.figure.arms]
    others = [
        found[arm.name]
        for arm in plan.arms
        if arm.name not in plan.shown.figure.arms or arm.name == "idle"
    ]
    for looks in (main, others):
        assert (
            len({look.colour for look in looks})
            == len({str(look.dashes) + look.marker for look in looks})
            == len(looks)
        )


def test_every_scheme_has_a_look_of_its_own_on_every_figure() -> None:
    names = loading.names("schemes")
    looks = [loading.scheme(name).look for name in names]
    assert (
        len({look.colour for look in looks})
        == len({(look.marker, look.dashes) for look in looks})
        == len(names)
    )
    others = [
        name
        for name in names
        if name
        not in ("none", "ideal", "priorities", "qjump", "qjump-drop", "window", "qjump-2015")
    ]
    for experiment in ("fig3a", "fig5"):
        found = style.looks(resolve.plan(experiment, "course", [], schemes=others))
        for name in others:
            assert found[name.replace("-", "_")].colour == loading.scheme(name).look.colour


def loss(run: RunDirectory, arm: str) -> float:
    """The share of lost requests, by ping's own summary, over all seeds."""
    counts = [
        re.search(r"(\d+) packets transmitted, (\d+) received", path.read_text())
        for path in run.path.glob(f"trials/{arm}/*/raw/*.ping.txt")
    ]
    sent, received = (sum(int(count[index]) for count in counts if count) for index in (1, 2))
    return 1 - received / sent


def test_figures_show_every_arm_and_the_loss(run: RunDirectory, manifest: Manifest) -> None:
    figures = latency_cdf.draw(run, manifest, [])
    assert [figure.name for figure in figures] == ["latency_cdf", "latency_cdf_others"]
    labels = [
        [text.get_text() for legend in figure.figure.legends for text in legend.get_texts()]
        for figure in figures
    ]
    arms = {arm.name: arm.label for arm in manifest.plan.arms}
    assert [label.split(": ")[0] for label in labels[0]] == [
        arms[name] for name in manifest.plan.shown.figure.arms
    ]
    assert {label.split(": ")[0] for shown in labels for label in shown} == set(arms.values())
    lost = {arms[name]: loss(run, name) for name in ("limiter_delay", "limiter_drop")}
    assert {
        label.split(": ")[0]: label.split(", ")[-1] for label in labels[1] if "lost" in label
    } == {label: f"{share * 100:.3g} % lost" for label, share in lost.items()}


def test_groups_that_are_far_apart_share_a_logarithmic_axis(
    run: RunDirectory, manifest: Manifest
) -> None:
    figure = latency_cdf.draw(run, manifest, [])[0].figure
    whole, tail = figure.axes
    assert whole.get_xscale() == "log" and 0 < whole.get_xlim()[0] < 25 < 126 < whole.get_xlim()[1]
    assert whole.get_title(loc="left") == "a  The main arms, on a logarithmic axis"
    assert tail.get_yscale() == "log" and tail.get_xscale() == "linear"
    assert tail.get_ylim()[0] > tail.get_ylim()[1]
    assert any("published" in text.get_text() for text in whole.texts)
    assert any("900 ms" in text.get_text() for text in whole.texts)


def test_no_text_leaves_the_picture(run: RunDirectory) -> None:
    figures = latency_cdf.draw(run, run.manifest, [])
    assert figures
    for drawn in figures:
        pictures.assert_texts_inside(drawn)


def test_curves_that_are_close_have_a_linear_axis_from_0(
    run: RunDirectory, manifest: Manifest
) -> None:
    plan = manifest.plan
    near = [
        curve
        for arm in plan.arms
        if arm.name in ("idle", "qjump") and (curve := curves.of_arm(run, plan, arm))
    ]
    assert len(near) == 2
    across = latency_cdf._across(near, curves.reference_lines(plan), None)
    assert not across.log and across.ends[0] == 0


def test_a_logarithmic_axis_begins_above_0_and_names_powers_of_ten_where_it_is_long() -> None:
    instant = np.array([0.0, 0.001, 1e4])
    assert latency_cdf._spread([0.0, 0.01], [instant]) == (0.62 * 0.001, 1.4 * 1e4)
    assert latency_cdf._spread([0.0], []) == (0.62, 1.4)
    for most, names in ((100.0, ["1", "2", "5", "10"]), (1e6, ["1", "10", "100", "1000"])):
        figure = matplotlib.figure.Figure()
        panel = figure.subplots()
        latency_cdf._scale_across(panel, latency_cdf.Across((1.0, most), log=True))
        figure.draw_without_rendering()
        shown = [label.get_text() for label in panel.get_xticklabels()]
        assert [text for text in shown if float(text) >= 1][:4] == names


def test_many_seeds_in_a_row_are_not_counted_out() -> None:
    assert notes.replicates([1]) == "1 replicate (seed 1)"
    assert notes.replicates(range(1, 31)) == "30 replicates (seeds 1 to 30)"
    assert formatting.seeds([9, 1, 2, 3, 4]) == "seeds 1, 2, 3, 4, 9"


def test_the_caption_stands_alone(run: RunDirectory, manifest: Manifest) -> None:
    for figure in latency_cdf.draw(run, manifest, []):
        for part in (
            "virtual clock",
            "10 Mb/s",
            "epoch",
            "28.8 ms",
            "2 replicates (seeds 1,\xa02)",
            " requests each",
            "0.730 ms",
            "4.72 ms",
            "preset smoke",
        ):
            assert part in figure.caption, part
        footer = " ".join(text.get_text() for text in figure.figure.texts)
        assert "virtual clock" in footer
        assert manifest.plan_sha256[:12] in footer
    assert (
        "stretched by the ratio of the link rates, 1000"
        in latency_cdf.draw(run, manifest, [])[0].caption
    )


def test_fast_links_are_told_in_their_units(manifest: Manifest) -> None:
    plan = resolve.plan("fig3a", "paper", [])
    text = notes.scale(replace(manifest, plan=plan), plan.arms)
    assert text.startswith("virtual clock (code takes no time); ")
    assert "epoch 15 us; in full-size frames (1.23 us): " in text


def test_same_data_make_the_same_bytes_elsewhere(run: RunDirectory, tmp_path: Path) -> None:
    """Whatever the time, the user's matplotlibrc, the locale and Python's hash seed."""
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 7\nsvg.hashsalt: other\n")
    code = f"""
import sys, pathlib
from qjump_mn.report import drawing
from qjump_mn.results import directory
run = directory.existing(pathlib.Path({str(run.path)!r}))
drawing.draw(run, run.manifest, [])
"""
    contents = []
    for extra in (
        {"PYTHONHASHSEED": "1"},
        {
            "PYTHONHASHSEED": "2",
            "MATPLOTLIBRC": str(tmp_path),
            "TZ": "Asia/Tokyo",
            "SOURCE_DATE_EPOCH": "1",
        },
    ):
        env = {**os.environ, **extra}
        execute([sys.executable, "-c", code], check=True, cwd=ROOT, env=env, timeout=120)
        contents.append({path.name: path.read_bytes() for path in sorted(run.figures.iterdir())})
    assert contents[0].keys() == {
        f"{name}.{ending}"
        for name in ("latency_cdf", "latency_cdf_others")
        for ending in ("png", "svg", "pdf", "csv")
    }
    for name, content in contents[0].items():
        assert content == contents[1][name], name
    assert not re.search(
        rb"<dc:date>|CreationDate", contents[0]["latency_cdf.svg"] + contents[0]["latency_cdf.pdf"]
    )


def test_an_unknown_figure_names_the_nearest_and_all(manifest: Manifest) -> None:
    def check(**changes: object) -> None:
        registry.check(replace(manifest.plan.shown.figure, **changes))

    check()
    sentence = (
        r"there is no figure 'latency_cfd': did you mean 'latency_cdf'\? \(all: latency_cdf, "
    )
    with pytest.raises(UsageError, match=sentence):
        check(plot="latency_cfd")
    for name in ("style", "__init__", "../figures/latency_cdf"):
        with pytest.raises(UsageError):
            check(plot=name)
    with pytest.raises(
        UsageError, match="there is no published figure 'fig3aa': did you mean 'fig3a'"
    ):
        check(published=["fig3aa"])


LADDER = """
import matplotlib.figure
from qjump_mn.report.figures.style import Figure

def draw(run, manifest, arms):
    return [Figure("ladder", "A ladder", f"{len(arms)} rungs.", matplotlib.figure.Figure())]

rungs = 7
"""


def test_the_figure_of_another_distribution_is_drawn(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = {"ladder": "ladder_figures:draw", "rungs": "ladder_figures:rungs"}
    folder = distributions.make(
        tmp_path, "ladders", registry.GROUP, points, {"ladder_figures": LADDER}
    )
    monkeypatch.syspath_prepend(str(folder))
    other = synthetic.redrawn(run.manifest, plot="ladder")
    registry.check(other.plan.shown.figure)
    (drawn,) = drawing.draw(run, other, [])
    assert (drawn.title, drawn.caption) == ("A ladder", "0 rungs.")
    assert (run.path / drawn.files["png"]).read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="ladders adds the figure 'rungs', which is no function"):
        registry.find("rungs")


STYLE = ROOT / "plots" / "style.toml"


@pytest.fixture(autouse=True)
def fresh_style() -> Iterator[None]:
    """The style is read once a process."""
    style.sheet.cache_clear()
    yield
    style.sheet.cache_clear()


def test_the_users_style_is_taken_instead(own: Write) -> None:
    assert (style.sheet().dpi, style.sheet().rc["axes.grid"]) == (200, True)
    text = STYLE.read_text().replace("dpi = 200", "dpi = 50")
    own("plots/style.toml", text.replace('"axes.grid" = true', '"axes.grid" = false'))
    style.sheet.cache_clear()
    assert (style.sheet().dpi, style.sheet().rc["axes.grid"]) == (50, False)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('"axes.grid" = true', '"axes.grids" = true', "plots/style.toml: rc: .*axes.grids"),
        ('"font.size" = 8.5', '"font.size" = "tall"', "plots/style.toml: rc: .*font.size.*tall"),
        ("dpi = 200", 'dpi = "fine"', "plots/style.toml: dpi: must be a number \\(got a text\\)"),
        ('"#56B4E9", ', "", "plots/style.toml: give palette and markers one entry each"),
    ],
)
def test_a_style_that_does_not_fit_is_one_sentence(
    before: str, after: str, sentence: str, own: Write
) -> None:
    assert before in STYLE.read_text()
    own("plots/style.toml", STYLE.read_text().replace(before, after))
    with pytest.raises(UsageError, match=sentence):
        style.sheet()


def test_published_medians_need_no_arm_of_their_name(manifest: Manifest) -> None:
    arms = tuple(replace(arm, name=f"my_{arm.name}") for arm in manifest.plan.arms)
    names = tuple(f"my_{name}" for name in manifest.plan.shown.figure.arms)
    plan = synthetic.altered(synthetic.redrawn(manifest, arms=names).plan, run={"arms": arms})
    panel = matplotlib.figure.Figure().subplots()
    panel.set_xlim(0, 1000)
    found = behind.of(plan)
    assert found is not None
    marks.draw_published(panel, found, [])
    bars = panel.get_lines()[::2]  # behind each is the dot of the median
    assert bars and {bar.get_color() for bar in bars} == {style.sheet().grey}


def test_a_published_name_keeps_clear_of_the_curves(manifest: Manifest) -> None:
    found = behind.of(manifest.plan)
    assert found is not None
    entry, (low, high) = next(
        value for value in found.values.items() if value[0].endswith(".p50_ms")
    )
    alone = dataclasses.replace(found, values={entry: (low, high)})

    def side(*shares: float) -> str:
        """Where the name stands with curves so far from the mark, in parts of the axis."""
        panel = matplotlib.figure.Figure().subplots()
        panel.set_xlim(low - 500, high + 500)
        arm = manifest.plan.arms[0]
        reach = high - low + 1000
        values = [np.array([(high if share > 0 else low) + share * reach]) for share in shares]
        look = style.looks(manifest.plan)[arm.name]
        lines = [
            curves.Curve(arm, arm.workloads[0], (1,), (each,), (1,), look, "ms") for each in values
        ]
        marks.draw_published(panel, alone, lines)
        (name,) = panel.texts
        return name.get_horizontalalignment()

    assert [
        side(),
        side(0.1),
        side(-0.1),
        side(0.1, -0.1),
        side(0.4),
    ] == "left right left left left".split()


def test_bars_relative_to_a_missing_arm_are_no_figure(
    run: RunDirectory, manifest: Manifest
) -> None:
    panel = PanelSpec(measures=["ping.p99_ms"], label="times idle", relative_to={"ping": "idle"})
    relative = synthetic.redrawn(
        manifest, plot="bars", arms=["qjump"], panels=[panel], published=[]
    )
    idle, qjump = (
        synthetic.summary(name, {"ping": {"p99_ms": value}})
        for name, value in (("idle", 2.0), ("qjump", 6.0))
    )
    assert bars.draw(run, relative, [qjump]) == []
    (drawn,) = bars.draw(run, relative, [idle, qjump])
    (axis,) = drawn.figure.get_axes()
    assert [bar.get_height() for bar in axis.patches if isinstance(bar, Rectangle)] == [3.0]


def test_what_is_drawn_around_a_median_is_its_interval_from_three_seeds_on() -> None:
    interval = "the 95 % bootstrap interval of the median over 6 seeds"
    assert [notes.spans("band spans", range(many)) for many in (0, 1, 2, 6)] == [
        "", "", " The band spans the replicates.", f" The band spans {interval}."
    ]  # fmt: skip
    assert notes.spans("band spans", range(3)) == (
        " The band spans the replicates: the 95 % bootstrap interval of the median over 3 seeds."
    )
