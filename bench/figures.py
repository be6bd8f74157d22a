"""Runs every experiment and writes the sections of docs/figures.md: each figure with its command,
the verdicts and the picture.

    python bench/figures.py [--preset PRESET] [--out FOLDER] [EXPERIMENT ...] [--write]
    python bench/figures.py --from FOLDER [EXPERIMENT ...] [--write]

Without `--preset` each runs its usual one. Without `--write` they go to standard output. Where
experiments are named, the others' sections and pictures stay as they are. `--out` is where the run
directories stay. `--from` runs nothing: it takes the newest complete run of each experiment in a
folder, such as `qjump-mn run all --out FOLDER` leaves them, and judges it by today's claims; the
section of an experiment without one stays as it is.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import anew, figure_data, marks
from qjump_mn.model.plan import Plan
from qjump_mn.report import original
from qjump_mn.resolve import loading
from qjump_mn.results import directory, formatting, outcome, previous_runs, result_tables
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary, VerdictRow

PAGE, PICTURES = ROOT / "docs/figures.md", ROOT / "docs/figures"
LEFT_OUT = ("--out", "--engine", "--scheduler", "--preset", "-p")
"""Options with a value that say where a run was and where it went, not what it was; and the preset,
which is told first."""


DATA = "\nWhat was measured in every arm and seed: [{key}.csv](figures/{key}.csv)."
"""The end of a section whose data lie beside its pictures."""

SECTIONS = {
    "course16": ("course16-ablation",),
    "fig11": ("fig11", "fig11-10g"),
    "fig3a": ("fig3a", "fig3a-10g", "fig3a-htb2015"),
    "fig7": ("fig7", "fig7-10g"),
}
"""The sections of an experiment that has not just one of its name. A preset's own says what a
course would have seen with one thing changed, or what the simulator has; its arms are told one by
one."""


def main() -> None:
    """Run, and print or write."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("experiments", nargs="*")
    arguments.add_argument("--preset")
    arguments.add_argument("--write", action="store_true")
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--from", type=Path, dest="folder")
    asked = arguments.parse_args()
    if asked.folder and (asked.preset or asked.out):
        arguments.error("--from runs nothing: leave out --preset and --out")
    known = [key for name in loading.names("experiments") for key in SECTIONS.get(name, (name,))]
    sections = dict(written())
    with tempfile.TemporaryDirectory() as scratch:
        for name in asked.experiments or known:
            if not asked.folder:
                out = asked.out or Path(scratch)
                sections[name] = section(*which(name, asked.preset or ""), out, keep=asked.write)
            elif path := complete(asked.folder, name):
                sections[name] = told(anew.judged_today(path, Path(scratch)), keep=asked.write)
            else:
                print(
                    f"{name}: no complete run in {asked.folder}, its section stays", file=sys.stderr
                )
    kept = [sections[name] for name in known if name in sections]
    text = "\n\n".join([summary(kept), *kept])
    if asked.write:
        marks.write(PAGE, "figures", text)
    else:
        print(text)


def which(key: str, preset: str) -> tuple[str, str]:
    """The experiment and the preset of a section, its own or the given one."""
    for name, keys in SECTIONS.items():
        if key in keys and key != name:
            return name, key.removeprefix(f"{name}-")
    return key, preset


def written() -> list[tuple[str, str]]:
    """The sections that the page has, by their experiments."""
    return re.findall(
        r"^(?=## ([\w-]+):)(.*?)(?=\s*\n## |\s*\Z)",
        marks.read(PAGE, "figures"),
        re.MULTILINE | re.DOTALL,
    )


RUN = re.compile(
    r"`qjump-mn run (?P<name>\S+) --preset (?P<preset>.+?)`, exit code \d: (?P<verdicts>.+?)\. "
    r"(?P<trials>\d+ x \d+) trials, (?P<minutes>[\d.]+) minutes together\."
)
"""What a section says of its run; the table of all of them is read from there."""


def summary(sections: Iterable[str]) -> str:
    """The table of all runs."""
    found = (RUN.search(section) for section in sections)
    rows = [
        (run["name"], f"`{run['preset']}`", run["trials"], run["minutes"], run["verdicts"])
        for run in found
        if run
    ]
    return table(["experiment", "preset", "arms x seeds", "minutes", "verdicts"], rows)


def section(name: str, preset: str, out: Path, *, keep: bool) -> str:
    """Run an experiment; what the page says of it."""
    before = (out / "last").resolve()
    asked = ["--preset", preset] if preset else []
    command = [sys.executable, "-m", "qjump_mn.run", name, *asked, "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if (out / "last").resolve() == before:  # an older run must not pass for this one
        raise SystemExit(f"{name} left no run: exit code {done.returncode}")
    return told(out / "last", keep=keep)


def complete(folder: Path, key: str) -> Path | None:
    """The newest run for a section in a folder of which every trial is done and judged."""
    name, preset = which(key, "")
    others = [which(other, "")[1] for other in SECTIONS.get(name, ())]
    for run in previous_runs.newest_first(folder, name):
        its = run.manifest.plan.shown.preset
        if (its == preset if preset else its not in others) and run.outcome is not None:
            return run.directory.path
    return None


def command(manifest: Manifest) -> str:
    """What to type for a run: with the options that it had, for without them it may be another one,
    and with its preset, for the usual one may become another."""
    words = iter(manifest.argv[2 if manifest.argv[1:2] == ("run",) else 1 :])
    options = []
    for word in words:
        if word in LEFT_OUT:
            next(words)
        elif not word.startswith(tuple(f"{option}=" for option in LEFT_OUT)):
            options.append(word)
    plan = manifest.plan
    options = [word for word in options if loading.experiment_called(word) != plan.shown.experiment]
    return shlex.join(
        ["qjump-mn", "run", plan.shown.experiment, "--preset", plan.shown.preset, *options]
    )


def size(manifest: Manifest) -> str:
    """How many trials a run has, and what they took of a processor together; of a run without that
    record, on the clock, each on one core."""
    plan = manifest.plan
    minutes = sum(trial.cpu_s or trial.wall_s or 0 for trial in manifest.trials.values()) / 60
    shown = f"{minutes:.0f}" if minutes >= 1 else f"{minutes:.1g}"
    return f"{len(plan.run.arms)} x {len(plan.run.seeds)} trials, {shown} minutes together."


def told(path: Path, *, keep: bool) -> str:
    """What the page says of a run; `keep` puts its pictures and data beside the page."""
    run = directory.existing(path)
    found, manifest = outcome.read(run.path), run.manifest
    plan, pictures = manifest.plan, []
    own = f"{plan.shown.experiment}-{plan.shown.preset}"
    key = own if own in SECTIONS.get(plan.shown.experiment, ()) else plan.shown.experiment
    for drawing in found.drawings:
        picture = PICTURES / f"{key}-{drawing.name}.png"
        if keep:
            PICTURES.mkdir(exist_ok=True)
            shutil.copyfile(run.path / drawing.files["png"], picture)
        details = (
            "<details><summary>What is drawn, and from "
            f"what</summary>\n\n{drawing.caption}\n\n</details>"
        )
        lead = original.lead(manifest, drawing)
        pictures.append(f"![{drawing.title}](figures/{picture.name})\n\n{lead}\n\n{details}\n")
    claims = [cells(row) for row in found.verdicts]
    if keep:
        figure_data.write(run.path, PICTURES / f"{key}.csv")
    return "\n".join(
        [
            f"## {key}: {plan.shown.title}",
            "",
            f"{plan.shown.reproduces}. `{command(manifest)}`,"
            f" exit code {found.exit_code}: {formatting.verdicts(found)}. {size(manifest)}",
            "",
            *pictures,
            *(arm_tables(plan, found.arms) if key == own else []),
            table(["verdict", "value", "published", "claim", "source"], claims),
            *([DATA.format(key=key)] if keep else []),
        ]
    )


def arm_tables(plan: Plan, arms: Iterable[ArmSummary]) -> list[str]:
    """What the page says of arms, where it tells of each."""
    return [
        table(["arm", *block.heads], [[arm.label, *cells] for arm, cells in block.rows]) + "\n"
        for block in result_tables.blocks(plan, [arm for arm in arms if arm.done])
    ]


def cells(row: VerdictRow) -> list[str]:
    """What the page says of a claim."""
    return [row.verdict, formatting.value(row), formatting.size(row), row.statement, row.source]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """As Markdown has it."""
    lines = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


if __name__ == "__main__":
    main()
