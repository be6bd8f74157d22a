"""Show the effect of declared tolerances and times on Figure 3a's contended arm at 10 Gb/s, run by
run.

    python3 bench/declared.py RUN... [--write]

Each RUN is the directory of a run of fig3a with the arm `contended`, with several seeds:

    qjump-mn run fig3a --preset paper --arms contended --replicates 8 -s duration=1s -s
    link.tolerance=0ppm

`--write` replaces the table in docs/emulation.md; without it, print the table.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import marks
from qjump_mn.results.manifest import Manifest, read

PAGE = Path(__file__).parent.parent / "docs/emulation.md"
ARM = "contended"
LOCKED_OUT = 0.2
"""A host with less of its fair share is locked out."""


COLUMNS = (
    "links",
    "wake-ups take",
    "seeds",
    "median round trip, us",
    "least share of a host (fair: a third)",
    "hosts locked out",
)


class Seed(NamedTuple):
    """A trial: its median round trip in us, and the share of all bulk data that each host sent."""

    median_us: float
    shares: tuple[float, ...]


def main(arguments: list[str]) -> None:
    """Print the table or write it."""
    runs = [Path(word) for word in arguments if word != "--write"]
    text = "\n".join(table(runs))
    if "--write" in arguments:
        marks.write(PAGE, "declared", text)
    else:
        print(text)


def table(runs: list[Path]) -> list[str]:
    """Return the table, with a row for each run."""
    rows = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for run in runs:
        manifest = read(run)
        seeds = [seed(run / "trials" / ARM / str(number)) for number in manifest.plan.run.seeds]
        medians = sorted(one.median_us for one in seeds)
        least = sorted(min(one.shares) for one in seeds)
        hosts = [share * len(one.shares) for one in seeds for share in one.shares]
        out = sum(share < LOCKED_OUT for share in hosts)
        rows.append(
            f"| {' | '.join(declared(manifest))} | {len(seeds)} | {medians[0]:.0f} to "
            f"{medians[-1]:.0f} | {least[0]:.3f} to {least[-1]:.3f} | {out} of {len(hosts)} |"
        )
    return rows


def declared(manifest: Manifest) -> tuple[str, str]:
    """Describe a run's tolerance and wake-ups."""
    (arm,) = manifest.plan.run.arms
    ppb, clock = arm.network.link.tolerance_ppb, arm.clock
    faster = f"up to {ppb / 1e3:g} ppm faster" if ppb else "exact"
    return faster, f"{clock.wakeup_ns / 1e3:g} us on average" if clock else "no time"


def seed(trial: Path) -> Seed:
    """Read a trial's tables."""
    sent: Counter[str] = Counter()
    for row in pq.read_table(trial / "data/bulk.parquet").to_pylist():
        if row["side"] == "receiver":
            sent[row["flow"]] += row["bytes"]
    latencies = pq.read_table(trial / "data/ping.parquet")["latency_us"].drop_null().to_numpy()
    total = sum(sent.values())
    median_us = sorted(latencies)[len(latencies) // 2]
    return Seed(float(median_us), tuple(count / total for count in sent.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
