"""Writes README's table of Figure 3a from the committed reference run, and copies its figure.

    python3 bench/readme.py [--write] [RUN_DIRECTORY]

Without `--write` the table goes to standard output. With a run directory, that of the reference run, its
figure becomes docs/fig3a.png.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from rich.console import Console

from bench import marks
from qjump_mn.analysis import terminal
from qjump_mn.model import loading, resolve
from qjump_mn.results import directory, outcome, reference
from qjump_mn.results.outcome import ArmSummary, Spread

EXPERIMENT = "fig3a"
WIDTH = 80


def main(arguments: list[str]) -> None:
    """Print or write."""
    text = f"```\n{table()}\n```"
    if "--write" not in arguments:
        print(text)
        return
    marks.write(ROOT / "README.md", "readme", text)
    for folder in (Path(argument) for argument in arguments if not argument.startswith("--")):
        run = directory.existing(folder)
        drawing = outcome.read(run.path).drawings[0]
        shutil.copyfile(run.path / drawing.files["png"], ROOT / "docs/fig3a.png")


def table() -> str:
    """What a run ends with: its arms, as the terminal shows them."""
    plan = resolve.plan(EXPERIMENT, loading.DEFAULT_PRESET, [])
    path = reference.find(EXPERIMENT, loading.DEFAULT_PRESET)
    assert path is not None
    values = reference.read(path).values
    arms = [
        ArmSummary(
            name=arm.name,
            label=arm.label,
            scheme=plan.schemes[arm.scheme.name].label,
            planned=1,
            done=1,
            measures={
                workload: {measure: Spread.of({1: value}) for measure, value in measured.items()}
                for workload, measured in values[arm.name].items()
            },
            flows={},
        )
        for arm in plan.arms_run
    ]
    page = io.StringIO()
    Console(file=page, width=WIDTH, highlight=False, markup=False).print(terminal.arms_table(plan, arms))
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    return "\n".join(lines[1:])  # without the title


if __name__ == "__main__":
    main(sys.argv[1:])
