"""Keep the results of schemes on Figures 3a, 5 and 7 in bench/schemes.json, and write the tables of
docs/schemes.md and docs/figures/schemes.png from them.

    python3 bench/schemes.py [--write] [RUN_DIRECTORY | EXPERIMENT/PRESET ...]

Add the arms of run directories, and of the reference runs of presets, to the file: each with its
kernel and commit, the last one of each arm. Without `--write`, print the tables.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import msgspec

from bench import marks
from bench.readme import reference_values
from qjump_mn import resolve
from qjump_mn.model.plan import Plan
from qjump_mn.report.figures import style
from qjump_mn.resolve import loading
from qjump_mn.results import formatting, manifest, outcome, reference
from qjump_mn.toolbox import lock, um

PAGE = ROOT / "docs/schemes.md"
FILE = Path(__file__).with_suffix(".json")
FIGURE = ROOT / "docs/figures/schemes.png"
EXPERIMENT, PRESET = "schemes", "smoke"
TIMES = ("p50_ms", "p99_ms", "max_ms")


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An arm: its scheme, kernel and commit, and medians over its seeds,
    ``values[workload][measure]``."""

    scheme: str
    seeds: int
    linux: str
    commit: str
    values: dict[str, dict[str, float]]


class Column(NamedTuple):
    """A measure, to be divided by its value in the arm ``alone``."""

    head: str
    figure: str
    workload: str
    measures: tuple[str, ...]
    alone: str


FIGURE_OF = {"schemes": "fig3a", "fig3a": "fig3a", "fig5": "fig5", "fig7": "fig7"}
COLUMNS = (
    Column("3a: ping, p99", "fig3a", "ping", ("p99_ms",), "idle"),
    Column("5: PTP, slowest", "fig5", "ptp", ("delay_max_ms",), "idle"),
    Column("5: memcached, p99", "fig5", "memcached", ("p99_ms",), "idle"),
    Column("7: PTP, p99", "fig7", "ptp", ("delay_p99_ms",), "ptp_alone"),
    Column("7: memcached, RMS", "fig7", "memcached", ("rms_ms",), "memcached_alone"),
    # The simulator has one round, and says how long it took.
    Column("7: job", "fig7", "job", ("round_rms_ms", "runtime_s"), "job_alone"),
)

REFUSED = {("10 Gb/s, simulated", "window", "fig7"): "no windows"}
"""Combinations of scale, scheme and figure that cannot run: the simulator's jobs have no windows of
their own."""

STALLED = "job stalled"
"""The disturbing job completed no round, so the others' numbers mean nothing."""

Kept = dict[str, dict[str, Measured]]
"""Keys are an experiment and preset, such as "fig5/smoke", then an arm."""


def main(arguments: list[str]) -> None:
    """Print or write."""
    found = renewed(kept(), [argument for argument in arguments if not argument.startswith("--")])
    if "--write" not in arguments:
        print(table(), everywhere(found), sep="\n\n")
        return
    FILE.write_bytes(
        msgspec.json.format(msgspec.json.encode(found, order="sorted"), indent=1) + b"\n"
    )
    found = kept()  # in the file's order, which the tables then have
    marks.write(PAGE, "schemes", table())
    marks.write(PAGE, "everywhere", everywhere(found))
    draw(found)


def kept() -> Kept:
    """Read the file."""
    return msgspec.json.decode(FILE.read_bytes(), type=Kept) if FILE.exists() else {}


def renewed(before: Kept, sources: Sequence[str]) -> Kept:
    """Return the kept arms with those of runs and reference runs added."""
    found = {name: dict(arms) for name, arms in before.items()}
    for source in sources:
        name, arms = (
            _of_run(Path(source)) if Path(source).is_dir() else (source, _of_reference(source))
        )
        found.setdefault(name, {}).update(arms)
    return found


def _of_run(folder: Path) -> tuple[str, dict[str, Measured]]:
    record = manifest.read(folder)
    plan, kernel = record.plan, record.machine.get("kernel", "")
    linux = kernel if record.backend != "simulator" else ""
    commit = record.git.commit[:8] + ("+" if record.git.dirty else "")
    values = outcome.medians(outcome.read(folder).arms)
    done = Counter(
        trial.arm.name
        for trial in plan.trials()
        if (ended := record.trials.get(trial.name)) and ended.status == "done"
    )
    arms = {
        arm.name: Measured(
            scheme=arm.scheme.name,
            seeds=done[arm.name],
            linux=linux,
            commit=commit,
            values=values[arm.name],
        )
        for arm in plan.run.arms
        if done[arm.name]
    }
    return f"{plan.shown.experiment}/{plan.shown.preset}", arms


def _of_reference(name: str) -> dict[str, Measured]:
    experiment, _, preset = name.partition("/")
    path = reference.find(experiment, preset)
    assert path is not None, name
    plan = resolve.plan(experiment, preset, [])
    # The commit that brought these results.
    last = ("git", "log", "-1", "--format=%h", "--abbrev=8", "--", str(path))
    commit = subprocess.run(
        last, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    values, seeds = reference.read(path).values, len({trial.seed for trial in plan.trials()})
    release = "" if "simulator" in plan.shown.backends else linux()
    return {
        arm.name: Measured(
            scheme=arm.scheme.name,
            seeds=seeds,
            linux=release,
            commit=commit,
            values=values[arm.name],
        )
        for arm in plan.run.arms
    }


def table() -> str:
    """Return the table of Figure 3a's network at 10 Mb/s: each arm's round trips, loss and bulk
    goodput."""
    plan, values = resolve.plan(EXPERIMENT, PRESET, []), reference_values(EXPERIMENT, PRESET)
    rows = [
        "| scheme | levels | ping: median | p99 | slowest, ms | lost | iperf3, Mb/s |",
        "|---|---|---|---|---|---|---|",
    ]
    for arm in plan.run.arms:
        ping, bulk = values[arm.name]["ping"], values[arm.name].get("bulk")
        cells = [
            arm.label if arm.name == "idle" else f"{arm.label} (`{arm.scheme.name}`)",
            "yes" if arm.uses_levels else "",
            *(formatting.time(ping[name]) for name in TIMES),
            f"{100 * ping['loss']:.1f} %",
            f"{bulk['goodput_mbps']:.2f}" if bulk else "",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    rows += ["", f"{plan.shown.network.told_links}, preset `{PRESET}`, one seed, Linux {linux()}."]
    return "\n".join(rows)


class Row(NamedTuple):
    """A scheme at one scale: a number for each column, or why there is none."""

    scale: str
    scheme: str
    label: str
    cells: tuple[float | str, ...]
    measured: tuple[Measured, ...]


def rows(found: Kept) -> list[Row]:
    """Return the rows by scale, slow and emulated first, in the order of the experiment of all
    schemes."""
    scales: dict[tuple[bool, int, str], dict[str, dict[str, Measured]]] = {}
    for name, arms in found.items():
        experiment, _, preset = name.partition("/")
        plan = resolve.plan(experiment, preset, [])
        scales.setdefault(_scale(plan), {}).setdefault(FIGURE_OF[experiment], {}).update(arms)
    order = [arm.scheme.name for arm in resolve.plan(EXPERIMENT, PRESET, []).run.arms]
    return [
        row
        for scale, figures in sorted(scales.items())
        for row in sorted(
            _rows_of(scale[-1], figures),
            key=lambda one: order.index(one.scheme) if one.scheme in order else len(order),
        )
    ]


def _scale(plan: Plan) -> tuple[bool, int, str]:
    simulated = "simulator" in plan.shown.backends
    links = plan.shown.network.told_links.removesuffix(" links")
    return simulated, plan.shown.network.link.rate_bps, links + (", simulated" if simulated else "")


def _rows_of(scale: str, figures: dict[str, dict[str, Measured]]) -> Iterator[Row]:
    alone = {column.alone for column in COLUMNS}
    names = {
        arm.scheme: None
        for arms in figures.values()
        for name, arm in arms.items()
        if name not in alone
    }
    for scheme in names:
        of = {
            figure: next((arm for arm in arms.values() if arm.scheme == scheme), None)
            for figure, arms in figures.items()
        }
        cells = tuple(
            _cell(scale, scheme, column, of.get(column.figure), figures.get(column.figure, {}))
            for column in COLUMNS
        )
        label = loading.scheme(scheme).label
        yield Row(scale, scheme, label, cells, tuple(arm for arm in of.values() if arm is not None))


def _cell(
    scale: str, scheme: str, column: Column, arm: Measured | None, arms: dict[str, Measured]
) -> float | str:
    alone = arms.get(column.alone)
    if arm is None or alone is None:
        usual = "not run" if scale in _scales_of(column.figure) else "no preset"
        return REFUSED.get((scale, scheme, column.figure), usual)
    if arm.values.get("job", {}).get("rounds") == 0:
        return STALLED
    for measure in column.measures:
        ours, theirs = (one.values.get(column.workload, {}).get(measure) for one in (arm, alone))
        if ours is not None and theirs:
            return ours / theirs
    return "none arrived"


@functools.cache
def _scales_of(figure: str) -> frozenset[str]:
    """Return the scales at which a figure can be run."""
    return frozenset(
        _scale(resolve.plan(figure, preset, []))[-1] for preset in loading.presets(figure)
    )


def everywhere(found: Kept) -> str:
    """Return a table for each scale, with a row for each scheme: each measure divided by its value
    when its program is alone."""
    lines: list[str] = []
    heads = ["scheme", *(column.head for column in COLUMNS)]
    for scale, of_scale in itertools.groupby(rows(found), key=lambda row: row.scale):
        lines += ["", f"Links of {scale}:", ""] if lines else [f"Links of {scale}:", ""]
        lines += [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
        for row in of_scale:
            cells = [cell if isinstance(cell, str) else f"{cell:.3g}" for cell in row.cells]
            lines.append(f"| {row.label} (`{row.scheme}`) | {' | '.join(cells)} |")
    return "\n".join(lines)


def digest(found: Kept) -> str:
    """Hash the numbers that the figure draws; the picture's metadata has the hash."""
    drawn = [
        (row.scale, row.scheme, [None if isinstance(cell, str) else cell for cell in row.cells])
        for row in rows(found)
    ]
    return hashlib.sha256(msgspec.json.encode(drawn)).hexdigest()


def draw(found: Kept) -> None:
    """Draw a panel for each column, with the schemes' ratios, each scale with its marker."""
    import matplotlib.pyplot as plt

    drawn = rows(found)
    labels = list(dict.fromkeys(row.label for row in drawn))[::-1]
    scales = list(dict.fromkeys(row.scale for row in drawn))
    with style.applied():
        size = (12, 0.28 * len(labels) + 1.3)
        figure, panels = plt.subplots(
            1, len(COLUMNS), sharey=True, figsize=size, layout="constrained"
        )
        for number, (column, panel) in enumerate(zip(COLUMNS, panels, strict=True)):
            for scale, colour, marker in zip(
                scales, style.sheet().palette[2:], "osD^", strict=False
            ):
                points = [
                    (cell, labels.index(row.label))
                    for row in drawn
                    if row.scale == scale and not isinstance(cell := row.cells[number], str)
                ]
                xs, ys = [x for x, _ in points], [y for _, y in points]
                panel.plot(xs, ys, marker, color=colour, label=scale)
            panel.set(title=column.head, xscale="log")
            known = [cell for row in drawn if not isinstance(cell := row.cells[number], str)]
            style.logarithmic(
                panel.xaxis, *((1.0,) if max(known) > 10 * min(known) else (1.0, 2.0, 5.0))
            )
            panel.axvline(1, color=style.sheet().grey, linewidth=0.8)
        panels[0].set_yticks(range(len(labels)), labels)
        figure.supxlabel("times what it is alone", fontsize="medium")
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(scales)
        )
        figure.savefig(
            FIGURE, dpi=style.sheet().dpi, metadata={"Software": "", "Source": digest(found)}
        )
        plt.close(figure)


def linux() -> str:
    """Return the release of the guest's kernel, from its lock."""
    versions = lock.versions(lock.read(um.LOCK))
    (version,) = (version for name, version in versions.items() if name.startswith("linux-source-"))
    return version.partition("-")[0]


if __name__ == "__main__":
    main(sys.argv[1:])
