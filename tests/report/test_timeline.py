"""The drawing of what happens as time goes by, on made-up output in the programs' formats: no
number here was measured."""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qjump_mn import resolve
from qjump_mn.analysis import measures, pipeline
from qjump_mn.model.plan import Trial
from qjump_mn.programs.memcached.measures import means
from qjump_mn.report.figures import timeline
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import TrialRecord
from tests.support import pictures, synthetic

BEGAN_NS, BEGAN_UTC_NS = 10**11, 1767225700 * 10**9
SETS_PER_S = 40


def write(run: RunDirectory, trial: Trial) -> None:
    """A SET every 25 ms, of 1 ms, in the contended arm of 100 ms in every second second; a Sync
    every second with an offset like that."""
    run.prepare(trial.name)
    raw = run.raw(trial.name)
    raw.mkdir()
    contended = trial.arm.name == "contended"
    seconds = trial.duration_ns // 10**9

    def late_ms(second: int) -> int:
        return 100 if contended and second % 2 else 1

    sets = [
        (BEGAN_NS + number * 10**9 // SETS_PER_S, late_ms(number // SETS_PER_S))
        for number in range(seconds * SETS_PER_S)
    ]
    lines = [f"{due} {due} {due + late * 10**6} 1 0 0" for due, late in sets]
    ends = f"# end rows={len(lines)} early=0"
    text = "\n".join(
        [
            "# memload 1 rate=40",
            "# columns due_ns sent_ns done_ns op connection status",
            *lines,
            ends,
        ]
    )
    (raw / "memcached-h3-h11.load.txt").write_text(text + "\n")
    rows = []
    for second in range(-2, seconds + 2):
        at = datetime.datetime.fromtimestamp(BEGAN_UTC_NS / 1e9 + second + 0.5, datetime.UTC)
        late = late_ms(second) / 1e3
        rows.append(
            f"{at:%Y-%m-%d %H:%M:%S.%f}, slv, 0/1, 0, {late / 2:.9f}, 0, 0, 0, S, "
            f"0, 0, 0, 0, 0, 0, {late:.9f}, 0.0"
        )
    (raw / "ptp-h9.ptpd.csv").write_text(
        "# Timestamp, State\n" + "\n".join(rows) + "\n2026-01-02 00:00:00.000000, dsbl, \n"
    )
    round_ = f"0 3 0 0 1000 {BEGAN_NS} {BEGAN_NS + 10**9}"
    columns = "# columns round step source destination bytes start_ns end_ns"
    text = f"# shuffle 1 rounds=0\n{columns}\n{round_}\n# end rows=1 early=0\n"
    (raw / "job-h2.shuffle.txt").write_text(text)
    synthetic.write_asbuilt(run.asbuilt(trial.name) / "before", trial)
    facts = {
        "cpu_busy": 0.1,
        "window_s": [3.0, 3.0 + seconds],
        "began_ns": BEGAN_NS,
        "began_utc_ns": BEGAN_UTC_NS,
    }
    (run.trial(trial.name) / "trial.json").write_text(json.dumps(facts))
    run.finish(trial.name, TrialRecord(status="done", exit_code=0))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    plan = resolve.plan("fig5", "smoke", [], replicates=2)
    made = synthetic.create(tmp_path_factory.mktemp("timeline"), plan)
    for trial in plan.trials():
        write(made, trial)
    return made


def test_each_arm_has_a_panel_on_the_same_axes(run: RunDirectory) -> None:
    manifest = run.manifest
    plan = manifest.plan
    data, missing = pipeline.read_trials(run, manifest)
    assert not missing
    figures = timeline.draw(
        run, manifest, measures.summarise(plan, [measures.measure(one) for one in data])
    )
    assert [figure.name for figure in figures] == ["timeline", "timeline_detail", "timeline_offset"]
    main: Any  # of their titles, the texts are private
    detail: Any
    main, detail, offset = (figure.figure for figure in figures)
    labels = {arm.name: arm.label for arm in plan.arms}
    assert [axis._left_title.get_text()[3:] for axis in main.axes] == [
        labels[name] for name in ("idle", "contended", "qjump")
    ]
    assert [axis._left_title.get_text()[3:] for axis in detail.axes] == [
        labels[name] for name in ("idle", "qjump")
    ]
    assert (
        len({axis.get_ylim() for axis in main.axes}) == 1
        and main.axes[0].get_ylim()[1] > 100 > 3 > detail.axes[0].get_ylim()[1]
    )
    ptp, memcached = main.axes[1].lines[:2]
    assert (ptp.get_label(), memcached.get_label()) == (
        "PTP offset",
        "memcached, mean of SET latencies",
    )
    assert list(ptp.get_xdata()) == pytest.approx([second + 0.5 for second in range(10)]), (
        "from when the measurement began until it ended"
    )
    assert list(ptp.get_ydata()) == pytest.approx([0.5, 50] * 5)
    assert list(memcached.get_ydata()) == pytest.approx(([1] * 4 + [100] * 4) * 5)
    assert "offset RMS 35.4 ms, mean SET 50.5 ms (drawn: of 0.25 s each)" in {
        axis._right_title.get_text() for axis in main.axes
    }
    assert [line.get_label() for line in offset.axes[0].lines][:3] == [
        labels[name] for name in ("idle", "contended", "qjump")
    ]
    for figure in figures:
        assert (
            "drawn: seed 1" in figure.caption
            and "2 replicates" in figure.caption
            and "virtual clock" in figure.caption
        )


def test_nothing_is_drawn_of_nothing(tmp_path: Path) -> None:
    plan = resolve.plan("fig5", "smoke", [])
    made = synthetic.create(tmp_path, plan)
    assert timeline.draw(made, made.manifest, measures.summarise(plan, [])) == []


def test_no_text_leaves_the_picture(run: RunDirectory) -> None:
    manifest = run.manifest
    data, _ = pipeline.read_trials(run, manifest)
    for drawn in timeline.draw(
        run, manifest, measures.summarise(manifest.plan, [measures.measure(one) for one in data])
    ):
        pictures.assert_texts_inside(drawn)


def test_a_bin_without_a_value_is_a_gap() -> None:
    x, y = means(np.array([0.1, 0.2, 0.9]), np.array([1.0, 3.0, 5.0]), 0.25, 1.0)
    assert list(x) == pytest.approx([0.125, 0.375, 0.625, 0.875])
    assert (y[0], y[3]) == (2, 5) and math.isnan(y[1]) and math.isnan(y[2])
