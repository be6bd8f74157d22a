"""Figures at the published rate: the published axes, what is drawn behind, and what the axes leave
out. The data are made up: no number here was measured."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from qjump_mn import resolve
from qjump_mn.errors import UsageError
from qjump_mn.model import hooks
from qjump_mn.model.plan import Plan
from qjump_mn.programs import registry
from qjump_mn.report.figures import bars, behind, latency_cdf, published, style, sweep, timeline
from qjump_mn.report.figures.style import Figure
from qjump_mn.resolve import loading
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import TrialRecord
from qjump_mn.results.outcome import ArmSummary
from tests.support import pictures, synthetic
from tests.support.user_files import Write

BEGAN_NS, BEGAN_UTC_NS = 10**11, 1767225700 * 10**9
AT_PUBLISHED_RATE = [
    (name, preset)
    for name in loading.names("experiments")
    for preset in loading.presets(name)
    if behind.of(resolve.plan(name, preset, []))
]


def at_paper(name: str, settings: Sequence[str] = ()) -> Plan:
    return resolve.plan(name, "paper", list(settings), replicates=1)


def panels(figure: Figure) -> list[Any]:
    """The axes of a figure, whose artists' kinds are known here."""
    return list(figure.figure.axes)


def ranges(axes: Sequence[Any], which: str = "x") -> list[tuple[float, float]]:
    """From where to where each axis goes."""
    ends = [axis.get_xlim() if which == "x" else axis.get_ylim() for axis in axes]
    return [(round(float(low), 6), round(float(high), 6)) for low, high in ends]


def texts(figure: Figure) -> str:
    """All that is written in the panels."""
    return "\n".join(text.get_text() for axis in panels(figure) for text in axis.texts)


def legend(figure: Figure) -> list[str]:
    """What is told in all legends."""
    legends = [*figure.figure.legends, *(axis.get_legend() for axis in panels(figure))]
    return [text.get_text() for one in legends if one for text in one.get_texts()]


def hollow(axis: Any) -> list[tuple[float, float]]:
    """Where hollow dots are."""
    return [
        (round(float(x), 6), round(float(y), 6))
        for line in axis.get_lines()
        if line.get_marker() == "o" and line.get_markerfacecolor() == "white"
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def checked(figures: list[Figure]) -> list[Figure]:
    """Figures that are whole."""
    for figure in figures:
        pictures.assert_texts_inside(figure)
    return figures


# Distribution functions.


def latencies(tmp_path: Path, plan: Plan, by_arm: Mapping[str, Sequence[float]]) -> list[Figure]:
    """The figures of a run with these latencies, in us, of the figure's workload."""
    run = synthetic.create(tmp_path, plan)
    for trial in plan.trials():
        if trial.arm.name in by_arm:
            run.prepare(trial.name)
            run.data(trial.name).mkdir(parents=True)
            table = pa.table({"latency_us": pa.array(by_arm[trial.arm.name], pa.float64())})
            pq.write_table(table, run.data(trial.name) / f"{plan.shown.figure.workload}.parquet")
            run.finish(trial.name, TrialRecord(status="done", exit_code=0))
    return checked(latency_cdf.draw(run, run.manifest, []))


SWITCH = {"idle": [0.1] * 10, "contended": [1000.0 + k for k in range(10)], "qjump": [0.9] * 10}


def test_figure_3a_has_the_published_medians_on_a_logarithmic_axis(tmp_path: Path) -> None:
    (figure,) = latencies(tmp_path, at_paper("fig3a"), SWITCH)
    whole, tail = panels(figure)
    ((low, high),) = ranges([whole])
    assert low < 1e-4 and high > 1.009 and whole.get_xscale() == "log"
    assert sorted(hollow(whole)) == [(0.003, 0.5), (0.9, 0.5)]
    assert legend(figure)[-1] == "hollow: published median"
    assert "outside" not in texts(figure)
    for part in (
        "The published axis is broken, 0 to 5 and 6 to 1350 us; here it is logarithmic.",
        "ping + iperf3: median 900 us; ping + iperf3, QJump: median 3 us.",
        "Not published as numbers (QJump (NSDI'15), Figure 3a): ping alone.",
        "CS244'15",
    ):
        assert part in figure.caption
    assert tail.get_title(loc="left").endswith("(not published)")


def test_a_logarithmic_axis_leaves_nothing_out(tmp_path: Path) -> None:
    beyond = {**SWITCH, "contended": [1000.0] * 9 + [203_000.0], "qjump": [0.9] * 8 + [5.5, 5.6]}
    (figure,) = latencies(tmp_path, at_paper("fig3a"), beyond)
    ((_, high),) = ranges(panels(figure)[:1])
    assert high > 203 and "outside" not in texts(figure)


def test_what_an_axis_leaves_out_is_told(tmp_path: Path) -> None:
    plan = at_paper("fig3b")
    beyond = {arm: [400.0] * 10 for arm in plan.shown.figure.arms}
    beyond["contended"] = [400.0] * 9 + [203_000.0]
    (figure,) = latencies(tmp_path, plan, beyond)
    assert "10 % outside, to 203000 us" in texts(figure)


def test_an_axis_that_would_hide_most_of_a_curve_is_longer_and_says_so(tmp_path: Path) -> None:
    plan = at_paper("fig3b")
    long = {arm: [400.0] * 10 for arm in plan.shown.figure.arms}
    (figure,) = latencies(tmp_path, plan, {**long, "contended": [4000.0] * 10})
    assert ranges(panels(figure)[:1]) == [(0, 4.2)]
    assert "The axis is from 0 to 4200, the published one from 0 to 2250." in figure.caption


@pytest.mark.parametrize(
    ("name", "dots", "words"),
    [
        ("fig3b", [(0.779, 0.99), (1.196, 0.99)],
         "memcached + MapReduce, QJump: the job's effects are less."),
        ("fig3c", [(0.5, 0.99), (1.1, 0.99), (1.5, 0.99)],
         "QJump: nearly as without interference."),
    ],
)  # fmt: skip
def test_figures_3b_and_3c_have_a_tail_from_90_to_100_percent(
    name: str, dots: list[tuple[float, float]], words: str, tmp_path: Path
) -> None:
    plan = at_paper(name)
    (figure,) = latencies(
        tmp_path, plan, {arm: [400.0 + k for k in range(10)] for arm in plan.shown.figure.arms}
    )
    whole, tail = panels(figure)
    assert ranges([whole, tail]) == [(0, 2.25)] * 2
    assert ranges([tail], "y") == [(0.9, 1)] and tail.get_yscale() == "linear"
    assert hollow(tail) == dots and set(dots) <= set(hollow(whole))
    assert "Published in words: " in figure.caption and words in figure.caption
    drawn = {line.get_color() for line in tail.get_lines() if line.get_drawstyle() == "steps-post"}
    assert {style.looks(plan)[arm].colour for arm in plan.shown.figure.arms} == drawn


def test_at_another_rate_axes_are_those_of_the_data() -> None:
    slow = resolve.plan("fig3a", "course", [])
    assert (found := behind.of(slow)) is not None and found.scale == 1000
    assert found.panel(0) is None and not found.x.parts
    assert found.values["qjump.ping.p50_ms"] == pytest.approx((3, 3))
    for name in ("fig3b", "fig5", "fig6", "fig7", "fig10", "table1"):
        assert behind.of(resolve.plan(name, "course", [])) is None
    for name in ("fig3b", "fig5", "fig7"):
        assert behind.of(at_paper(name, ["link.rate=1Gbit"])) is None


# What goes on as time goes by.


def write_timeline(run: RunDirectory, offset_us: float, set_us: float) -> None:
    """Ten Syncs with an offset of 10 us, and one of ``offset_us``; SETs of 450 us, and a bin of
    ``set_us``."""
    for trial in run.manifest.plan.trials():
        run.prepare(trial.name)
        run.data(trial.name).mkdir(parents=True)
        step = trial.duration_ns // 12
        offsets = [10.0] * 10 + [offset_us]
        rows = {
            "at_ns": [BEGAN_UTC_NS + step * k for k in range(11)],
            "master_to_slave_us": offsets,
            "slave_to_master_us": pa.array([None] * 11, pa.float64()),
            "offset_us": offsets,
        }
        pq.write_table(pa.table(rows), run.data(trial.name) / "ptp.parquet")
        due = [BEGAN_NS + trial.duration_ns * k // 240 for k in range(240)]
        latency = [450.0] * 230 + [set_us] * 10
        sets = {"op": ["SET"] * 240, "due_ns": due, "latency_us": latency}
        pq.write_table(pa.table(sets), run.data(trial.name) / "memcached.parquet")
        facts = {
            "cpu_busy": 0.1,
            "window_s": [0.1, 0.7],
            "began_ns": BEGAN_NS,
            "began_utc_ns": BEGAN_UTC_NS,
        }
        (run.trial(trial.name) / "trial.json").write_text(json.dumps(facts))
        run.finish(trial.name, TrialRecord(status="done", exit_code=0))


def drawn_timeline(tmp_path: Path, offset_us: float, set_us: float) -> list[Figure]:
    plan = at_paper("fig5", ["duration=600ms"])
    run = synthetic.create(tmp_path, plan)
    write_timeline(run, offset_us, set_us)
    measured = {"ptp": {"offset_rms_ms": 0.02}, "memcached": {"set_mean_ms": 0.45}}
    arms = synthetic.summaries(plan, dict.fromkeys(plan.shown.figure.arms, measured))
    return checked(timeline.draw(run, run.manifest, arms))


def test_figures_5_and_1a_have_the_published_axes_of_values(tmp_path: Path) -> None:
    stacked, offsets = drawn_timeline(tmp_path, 20, 450)
    assert ranges(panels(stacked), "y") == [(-0.2, 1.4)] * 3
    assert [round(float(tick), 6) for tick in panels(stacked)[0].get_yticks()] == [
        -0.2,
        0.2,
        0.6,
        1.0,
        1.4,
    ]
    assert ranges(panels(stacked)) == [(0, 0.6)] * 3
    assert "an excerpt: published 150 to 375 s" in panels(stacked)[-1].get_xlabel()
    contended = panels(stacked)[1]
    bands = sorted(
        tuple(round(float(end), 6) for end in (patch.get_y(), patch.get_y() + patch.get_height()))
        for patch in contended.patches
    )
    assert bands == [(-0.175, 0.383), (0.32, 1.2)]
    assert "published, least to greatest" in legend(stacked)
    assert (
        "offset RMS 20.0 us (published 75), mean SET 450 us (published 554)"
        in contended.texts[0].get_text()
    )
    assert "digitised" in stacked.caption
    assert ranges(panels(offsets), "y") == [(-0.5, 0.75)]
    assert "an excerpt: published 0 to 600 s" in panels(offsets)[0].get_xlabel()
    assert "Not published as numbers (QJump (NSDI'15), Figure 1a): all of it." in offsets.caption


def test_what_leaves_the_axis_of_values_is_told_where_it_does(tmp_path: Path) -> None:
    stacked, offsets = drawn_timeline(tmp_path, -3000, 200_000)
    assert ranges(panels(stacked), "y") == [(-0.2, 1.4)] * 3
    for axis in panels(stacked):
        told = [text.get_text() for text in axis.texts]
        assert any(text.startswith("\N{UPWARDS ARROW}\n") and "200000" in text for text in told)
        assert "-3000\n\N{DOWNWARDS ARROW}" in told
    assert texts(offsets) == "\n".join(["-3000"] * 3 + ["\N{DOWNWARDS ARROW}"])


# Sweeps and bars.


def drawn(tmp_path: Path, plan: Plan, arms: Sequence[ArmSummary], module: Any) -> Figure:
    run = synthetic.create(tmp_path, plan)
    (figure,) = checked(module.draw(run, run.manifest, arms))
    return figure


def swept(plan: Plan, series: str, values: Mapping[float, Mapping[str, float]]) -> list[ArmSummary]:
    """The arms of a series with these measures of their first workload that is no background, by
    x."""
    at = {arm.x: arm for arm in plan.arms if arm.series == series}
    arms = {
        at[x].name: {
            next(one.name for one in at[x].workloads if not hooks.is_background(one)): measured
        }
        for x, measured in values.items()
    }
    return synthetic.summaries(plan, arms)


def test_figure_6_is_in_shares_of_a_switch_s_buffer(tmp_path: Path) -> None:
    plan = at_paper("fig6")
    rates = {x: {"requests_per_s": 12000.0, "max_ms": 0.09} for x in (1.0, 1000.0, 4000.0)}
    figure = drawn(tmp_path, plan, swept(plan, "qjump", rates), sweep)
    rate, slowest = panels(figure)
    assert ranges([rate, slowest]) == [(0.1, 400)] * 2 and rate.get_xscale() == "log"
    assert ranges([rate], "y") == [(0, 14000)]
    assert rate.get_lines()[0].get_xdata().tolist() == [0.1, 100, 400]
    assert slowest.get_xlabel() == "burst, % of a switch's buffer"
    assert slowest.get_title(loc="left") == "b  (not published)"
    assert rate.get_title(loc="left") == "a"
    assert "Not published as numbers (QJump (NSDI'15), Figure 6): all of it." in figure.caption


def test_a_line_is_broken_where_there_is_no_value_and_its_legend_is_whole(tmp_path: Path) -> None:
    plan = at_paper("thresholds")
    measured = {"ptp": {"offset_rms_ms": 0.02}, "memcached": {"rms_ms": 0.5}}
    job = {"job": {"round_rms_ms": 13.0}}
    arms = {
        arm.name: measured if arm.x in (0.08, 0.16) else measured | job for arm in plan.run.arms
    }
    figure = drawn(tmp_path, plan, synthetic.summaries(plan, arms), sweep)
    (axis,) = panels(figure)
    rounds, offsets, *_ = axis.get_lines()
    assert [x for x, y in rounds.get_xydata() if math.isnan(y)] == [0.08, 0.16]
    assert not np.isnan(offsets.get_xydata()).any()
    assert (
        "A line is broken where there is no value: ECN: job: round RMS at 0.08, 0.16."
        in figure.caption
    )
    assert len(legend(figure)) == 6


def test_figure_10_is_against_gigabits_with_the_band_of_the_best_trade_off(tmp_path: Path) -> None:
    plan = at_paper("fig10")
    values = {
        x: {"requests_per_s": rate, "p99_ms": 0.5, "max_ms": 20_000.0 if x == 100 else 1.0}
        for x, rate in ((100.0, 60e3), (500.0, 280e3), (600.0, 280e3), (1000.0, 280e3))
    }
    figure = drawn(tmp_path, plan, swept(plan, "delay", values), sweep)
    rate, latency = panels(figure)
    assert ranges([rate, latency]) == [(0, 10.24)] * 2, "our greatest factor is more than 10 Gb/s"
    assert "The axis below is from 0 to 10.24, the published one from 0 to 10." in figure.caption
    assert ranges([rate], "y") == [(0, 294_000)], "three of four are above the published axis"
    assert "requests/s is from 0 to 294000, the published one from 0 to 200000." in figure.caption
    assert ranges([latency], "y") == [(0.01, 10_000)] and latency.get_yscale() == "log"
    assert "max 20000000" in texts(figure), "one of four is clipped, and told"
    assert [line.get_label() for line in latency.get_lines()[:2]] == [
        "excess waits: p99",
        "excess waits: max",
    ]
    for axis in (rate, latency):
        (band,) = axis.patches
        assert (band.get_x(), band.get_x() + band.get_width()) == (5, 5.5)
    assert "best trade-off" in texts(figure)
    assert "Grey, as published: best trade-off." in figure.caption


def test_figure_11_is_against_the_factor_with_regions_the_bound_and_crosses(tmp_path: Path) -> None:
    plan = at_paper("fig11")
    times = {"mean_ms": 0.002, "p99_ms": 0.003, "max_ms": 0.01}
    values = dict.fromkeys((12.0, 20.0, 25.0, 28.0), times) | {8.0: dict.fromkeys(times, 1.25)}
    figure = drawn(tmp_path, plan, swept(plan, "levels", values), sweep)
    (axis,) = panels(figure)
    assert ranges([axis], "y") == [(0, 0.03)] and axis.get_yscale() == "linear"
    mean, _, slowest = axis.get_lines()[:3]
    assert mean.get_xdata().tolist() == pytest.approx([24.29 / x for x in (28, 25, 20, 12, 8)])
    assert (slowest.get_marker(), slowest.get_linestyle()) == ("x", "None")
    assert mean.get_linestyle() == "-"
    assert 0.02429 in [round(float(line.get_ydata()[0]), 9) for line in axis.get_lines()]
    written = {text.get_text() for text in axis.texts}
    assert {"A", "B", "C", "published bound, 24.29 us"} <= written
    assert "\N{UPWARDS ARROW}\nmean 1250\np99 1250\nmax 1250" in written


def test_many_points_that_leave_an_axis_are_told_together(tmp_path: Path) -> None:
    plan = at_paper("fig11")
    inside = {"mean_ms": 0.002, "p99_ms": 0.003, "max_ms": 0.01}
    late = {"mean_ms": 0.2, "p99_ms": 0.3}
    values = {float(epoch): inside for epoch in range(12, 30)} | {
        epoch: late | {"max_ms": epoch} for epoch in (7.0, 8.0, 9.0, 10.0, 11.0)
    }
    (axis,) = panels(drawn(tmp_path, plan, swept(plan, "levels", values), sweep))
    (told,) = (text for text in axis.texts if "\N{UPWARDS ARROW}" in text.get_text())
    assert told.get_text() == "\N{UPWARDS ARROW}\nmean 200\np99 300\nmax 7000 to 11000"
    assert told.xy[0] == pytest.approx(24.29 / 9)


def test_figure_7_ends_at_3_and_labels_what_is_above(tmp_path: Path) -> None:
    plan = at_paper("fig7")
    rms = {
        "job": {"round_rms_ms": 10.0},
        "ptp": {"offset_rms_ms": 0.02},
        "memcached": {"rms_ms": 0.5},
    }
    arms = dict.fromkeys(
        (*plan.shown.figure.arms, "job_alone", "ptp_alone", "memcached_alone"), rms
    )
    arms["contended"] = {**rms, "ptp": {"offset_rms_ms": 0.106}}
    figure = drawn(tmp_path, plan, synthetic.summaries(plan, arms), bars)
    (axis,) = panels(figure)
    assert ranges([axis], "y") == [(0, 3)] and axis.get_yscale() == "linear"
    (label,) = (text for text in axis.texts if "\N{UPWARDS ARROW}" in text.get_text())
    assert label.get_text() == "\N{UPWARDS ARROW} 5.3" and label.xy[1] == 3
    assert "Not published as numbers (QJump (NSDI'15), Figure 7): all of it." in figure.caption


def test_table_1_has_dots_where_numbers_were_published_and_says_where_not(tmp_path: Path) -> None:
    plan = at_paper("table1")
    arms = {name: {"ping": {"p50_ms": 0.09, "p99_ms": 0.13}} for name in plan.shown.figure.arms}
    figure = drawn(tmp_path, plan, synthetic.summaries(plan, arms), bars)
    (axis,) = panels(figure)
    assert sorted({y for _, y in hollow(axis)}) == [0.085, 0.126, 2.016]
    assert "published" in legend(figure) and axis.get_ylabel() == "round-trip time, us"
    assert "switch queue: p99 2016 us." in figure.caption
    assert "Not published as numbers (QJump (NSDI'15), Table 1): source host, " in figure.caption


def test_labels_that_would_touch_are_tilted_below_the_last_panel(tmp_path: Path) -> None:
    plan = resolve.plan("schemes", "smoke", [])
    measured = {"ping": {"p50_ms": 2.0, "p99_ms": 4.0}, "bulk": {"goodput_mbps": 9.3}}
    figure = drawn(
        tmp_path,
        plan,
        synthetic.summaries(plan, dict.fromkeys(plan.shown.figure.arms, measured)),
        bars,
    ).figure
    figure.draw_without_rendering()
    above, last = figure.axes
    assert not any(label.get_visible() and label.get_text() for label in above.get_xticklabels())
    labels = last.get_xticklabels()
    assert [label.get_text() for label in labels] == [
        arm.label for name in plan.shown.figure.arms for arm in plan.arms if arm.name == name
    ]
    (footer,) = (text for text in figure.texts if "virtual clock" in text.get_text())
    lowest = min(label.get_window_extent().y0 for label in labels)
    assert {round(label.get_rotation()) for label in labels} == {30}
    assert lowest > footer.get_window_extent().y1


# The files.


def test_every_preset_of_the_paper_has_its_published_figure() -> None:
    named = {name for name, preset in AT_PUBLISHED_RATE if preset == "paper"}
    assert named >= {"fig3a", "fig3b", "fig3c", "fig5", "fig6", "fig7", "fig10", "fig11", "table1"}


@pytest.mark.parametrize(("name", "preset"), AT_PUBLISHED_RATE)
def test_published_figures_are_about_what_the_experiment_has(name: str, preset: str) -> None:
    plan = resolve.plan(name, preset, [])
    arms = {arm.name: {one.name for one in arm.workloads} for arm in plan.arms}
    for figure in map(published.read, plan.shown.figure.published):
        assert figure.source and figure.title.startswith("QJump (NSDI'15), ")
        assert set(figure.words) <= set(plan.judged.published)
        assert len(figure.panels) <= max(2, len(plan.shown.figure.panels))
        for panel in figure.panels:
            assert all(band.workload in arms[band.arm] for band in panel.bands if band.arm)
            measures = {
                measure
                for arm in plan.arms
                for one in arm.workloads
                for measure in registry.headings(one)
            }
            assert set(panel.crosses) <= measures


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("[0.1, 400]", "[400, 0.1]", "x.parts: 400 to 0.1 is no range: put the lesser end first"),
        ("[0.1, 400]", "[0, 400]", "x.parts: a logarithmic axis has no 0: begin above 0"),
        ("[0.1, 400]", "[0.1, 5], [3, 400]", "x.parts: the second part begins within the first"),
        ("[0.1, 400]", "[1, 2], [3, 4], [5, 6]", "x.parts: an axis is broken once at most"),
        ('"x / 10"', '"y / 10"', "x.of: character 1: 'y' is not known: x is the sweep's value"),
        ("[0, 14000]", "[0, 1]\nbands = [{label = 'a'}]",
         "bands: 'a' lies on one axis: give it x or y"),
        ("[0, 14000]", "[0, 1]\nbands = [{label = 'a', x = [2, 1]}]",
         "bands: 'a': put the lesser end first"),
        ('rate = "10Gbit"', "rate = 10", "rate: 10 is not a rate"),
    ],
)  # fmt: skip
def test_a_published_figure_that_does_not_fit_is_one_sentence(
    before: str, after: str, sentence: str, own: Write
) -> None:
    text = (loading.folders("plots/published")[-1] / "fig6.toml").read_text()
    assert before in text
    own("plots/published/fig6.toml", text.replace(before, after))
    with pytest.raises(UsageError, match=f"^published figure 'fig6': .*{sentence}"):
        published.read("fig6")


def test_how_a_figure_is_drawn_is_no_part_of_what_is_run() -> None:
    plan = at_paper("fig11")
    figure = replace(plan.shown.figure, published=[])
    assert synthetic.altered(plan, shown={"figure": figure}).hash == plan.hash


def test_an_axis_is_longer_only_for_a_line_that_it_would_hide() -> None:
    lines = [np.array([0.5, 0.6, 7.0]), np.array([0.1, np.nan])]
    assert behind.limits((0, 1), lines) == (0, 1)
    assert behind.limits((0, 1), [*lines, np.array([0.5, 2.0])]) == (0, 2.1)
    assert behind.limits((0, 1), [np.array([-1.0, -2.0])]) == (-2, 1)
