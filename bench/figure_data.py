"""Read and write the data behind the pages of docs/figures/: NAME.csv, with a row for each measure
of each arm, and a column for each seed. A test judges them and compares the page."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

from qjump_mn.analysis import measures, verdicts
from qjump_mn.analysis.measures import TrialMeasures
from qjump_mn.model.plan import Plan
from qjump_mn.results import directory, outcome
from qjump_mn.results.outcome import ArmSummary, VerdictRow

KEYS = ("arm", "workload", "measure")
DIGITS = 9
"""Significant digits of a number; the page has at most four."""


def write(run: Path, path: Path) -> None:
    """Write the measures of ``run`` to ``path``; a cell is empty where a seed has no such
    number."""
    seeds = directory.existing(run).manifest.plan.run.seeds
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*KEYS, *seeds])
        for arm in outcome.read(run).arms:
            for workload, found in arm.measures.items():
                for measure, spread in found.items():
                    by_seed = dict(zip(spread.seeds, spread.values, strict=True))
                    values = [
                        f"{by_seed[seed]:.{DIGITS}g}" if seed in by_seed else "" for seed in seeds
                    ]
                    rows.writerow([arm.name, workload, measure, *values])


def read(path: Path) -> list[TrialMeasures]:
    """Read the measures of each trial. A workload without any, such as a stream of UDP, has no
    rows."""
    found: dict[tuple[str, int], defaultdict[str, dict[str, float]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            arm, workload, measure = (row.pop(key) for key in KEYS)
            for seed, value in row.items():
                if value:
                    values = found.setdefault((arm, int(seed)), defaultdict(dict))
                    values[workload][measure] = float(value)
    no_flows: defaultdict[str, dict[str, float]] = defaultdict(dict)
    return [TrialMeasures(arm, seed, values, no_flows) for (arm, seed), values in found.items()]


def judged(path: Path, plan: Plan) -> tuple[VerdictRow, ...]:
    """Judge the plan's claims by the data."""
    return verdicts.judge(plan, read(path), [])


def arms(path: Path, plan: Plan) -> tuple[ArmSummary, ...]:
    """Summarise the plan's arms by the data."""
    return measures.summarise(plan, read(path))
