"""The data behind sections of docs/figures.md: docs/figures/SECTION.csv, with a row for each measure of each
arm of the run, and a column for each seed. A test judges them anew and compares the page."""

from __future__ import annotations

import csv
from pathlib import Path

from bench import anew
from qjump_mn.analysis import verdicts
from qjump_mn.analysis.measures import TrialMeasures
from qjump_mn.results import directory, outcome
from qjump_mn.results.outcome import VerdictRow

KEYS = ("arm", "workload", "measure")
DIGITS = 9
"""So many of a number are kept; the page has no more than four."""


def write(run: Path, path: Path) -> None:
    """What was measured in ``run``, into ``path``; a cell is empty where a seed has no such number."""
    seeds = directory.existing(run).manifest.plan.seeds
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*KEYS, *seeds])
        for arm in outcome.read(run).arms:
            for workload, measures in arm.measures.items():
                for measure, spread in measures.items():
                    by_seed = dict(zip(spread.seeds, spread.values, strict=True))
                    values = [f"{by_seed[seed]:.{DIGITS}g}" if seed in by_seed else "" for seed in seeds]
                    rows.writerow([arm.name, workload, measure, *values])


def read(path: Path) -> list[TrialMeasures]:
    """The measures of each trial."""
    found: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            arm, workload, measure = (row.pop(key) for key in KEYS)
            for seed, value in row.items():
                if value:
                    found.setdefault((arm, int(seed)), {}).setdefault(workload, {})[measure] = float(value)
    return [TrialMeasures(arm, seed, values, {}) for (arm, seed), values in found.items()]


def judged(path: Path, experiment: str, preset: str, argv: list[str]) -> tuple[VerdictRow, ...]:
    """What today's claims say of the data of the run that ``argv`` is the command of."""
    return verdicts.judge(anew.asked(experiment, preset, argv), read(path), [])
