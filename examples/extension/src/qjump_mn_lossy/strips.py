"""The figure `strips`: every round trip of the figure's workload in its order, a strip for each
arm."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.axes
import matplotlib.figure
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qjump_mn.model.plan import ArmPlan
from qjump_mn.report.figures import notes, shapes, style
from qjump_mn.report.figures.numbers import Numbers
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary

STRIP_INCHES, AROUND_INCHES = 1.3, 1.2


def draw(run: RunDirectory, manifest: Manifest, arms: Sequence[ArmSummary]) -> list[style.Figure]:
    """The figure, of the first seed that each arm has; nothing where no arm has data."""
    plan = manifest.plan
    tables = {
        arm.name: table for arm in plan.arms if (table := _table(run, manifest, arm)) is not None
    }
    by_name = {arm.name: arm for arm in plan.arms}
    shown = [by_name[name] for name in plan.shown.figure.arms if name in tables]
    if not shown:
        return []
    looks = style.looks(plan)
    with style.applied():
        inches = STRIP_INCHES * len(shown) + AROUND_INCHES
        figure = matplotlib.figure.Figure(figsize=(7.2, inches))
        edges = {
            "left": shapes.LEFT,
            "right": shapes.RIGHT,
            "top": 1 - 0.35 / inches,
            "bottom": 0.85 / inches,
        }
        panels = figure.subplots(
            len(shown), 1, squeeze=False, sharex=True, gridspec_kw={**edges, "hspace": 0.6}
        )[:, 0]
        for panel, arm in zip(panels, shown, strict=True):
            _strip(panel, tables[arm.name], looks[arm.name].colour)
            panel.set_title(arm.label, loc="left")
        panels[-1].set_xlabel("request")
        notes.footer(figure, manifest, notes.scale(manifest, shown))
    caption = (
        f"Round trips of {plan.shown.figure.workload} in ms, in their order; a cross is a request "
        "without a reply. "
        f"The first seed of: {', '.join(arm.label for arm in shown)}; preset {plan.shown.preset}."
    )
    rows = tuple(
        (
            arm.label,
            float(row["sequence"]),
            None if row["latency_us"] is None else row["latency_us"] / 1e3,
        )
        for arm in shown
        for row in tables[arm.name].to_pylist()
    )
    numbers = Numbers(("arm", "request", "latency, ms"), rows)
    return [style.Figure("strips", plan.shown.title, caption, figure, numbers)]


def _table(run: RunDirectory, manifest: Manifest, arm: ArmPlan) -> pa.Table | None:
    for seed in manifest.plan.run.seeds:
        path = run.data(f"{arm.name}/{seed}") / f"{manifest.plan.shown.figure.workload}.parquet"
        if path.is_file() and run.is_done(f"{arm.name}/{seed}"):
            return pq.read_table(path, columns=["sequence", "latency_us"])
    return None


def _strip(panel: matplotlib.axes.Axes, table: pa.Table, colour: str) -> None:
    requests, trips_ms = (
        table[name].to_numpy(zero_copy_only=False) for name in ("sequence", "latency_us")
    )
    trips_ms = trips_ms / 1e3
    lost = np.isnan(trips_ms)
    panel.scatter(requests[~lost], trips_ms[~lost], s=4, color=colour, linewidths=0)
    panel.scatter(
        requests[lost],
        np.zeros(lost.sum()),
        s=14,
        color="#333333",
        marker="x",
        linewidths=0.8,
        clip_on=False,
    )
    panel.set_ylabel("ms")
    panel.set_ylim(0, 1.1 * np.max(trips_ms[~lost], initial=0.1))
