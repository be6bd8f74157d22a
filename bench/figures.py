"""Run every experiment and write its page, docs/figures/NAME.md: each figure with its command and
verdicts; and the table of all pages in docs/figures.md.

    python bench/figures.py [--preset PRESET] [--out FOLDER] [EXPERIMENT ...] [--write]
    python bench/figures.py --from FOLDER [EXPERIMENT ...] [--write]

Without `--preset`, run each experiment's default preset. Without `--write`, print the pages. Pages
of experiments that are not named stay as they are. `--out` keeps the run directories.
`--from` runs nothing: it takes the newest complete run of each experiment in a folder, such as
`qjump-mn run all --out FOLDER` leaves them, and judges it by today's claims. An experiment without
one keeps its page.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import anew, figure_data, marks
from qjump_mn.model.plan import Plan
from qjump_mn.report import original
from qjump_mn.resolve import loading
from qjump_mn.results import directory, formatting, outcome, previous_runs, result_tables
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary, Drawing, VerdictRow

PAGE, PAGES = ROOT / "docs/figures.md", ROOT / "docs/figures"
"""The table of all pages; and the folder of the pages, with their pictures and data."""
LEFT_OUT = ("--out", "--engine", "--scheduler", "--preset", "-p")
"""Options with a value that do not change what runs; and the preset, which comes first."""


DATA = "\nData: [{key}.csv]({key}.csv)."
"""The end of a page with data beside its pictures."""

SEVERAL = {
    "collectives": ("collectives", "collectives-ai"),
    "course16": ("course16", "course16-ablation"),
    "fig11": ("fig11", "fig11-10g"),
    "fig3a": ("fig3a", "fig3a-10g", "fig3a-htb2015"),
    "fig5": ("fig5", "fig5-fits"),
    "fig7": ("fig7", "fig7-10g"),
    "rivals": ("rivals", "rivals-mining", "rivals-hadoop"),
}
"""The pages of experiments with more than one."""


def main() -> None:
    """Run, and print or write."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("experiments", nargs="*")
    arguments.add_argument("--preset")
    arguments.add_argument("--write", action="store_true")
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--from", type=Path, dest="folder")
    args = arguments.parse_args()
    if args.folder and (args.preset or args.out):
        arguments.error("--from runs nothing: leave out --preset and --out")
    pages = dict(written())
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.experiments or known():
            if not args.folder:
                out = args.out or Path(scratch)
                pages[name] = of_new_run(*which(name, args.preset or ""), out, keep=args.write)
            elif path := complete(args.folder, name):
                pages[name] = of_run(anew.judged_today(path, Path(scratch)), keep=args.write)
            else:
                print(f"{name}: no complete run in {args.folder}, its page stays", file=sys.stderr)
    kept = {name: pages[name] for name in known() if name in pages}
    if args.write:
        for name, text in kept.items():
            (PAGES / f"{name}.md").write_text(text + "\n")
        marks.write(PAGE, "figures", summary(kept))
    else:
        print("\n\n".join([summary(kept), *kept.values()]))


def known() -> list[str]:
    """Return the names of all pages, in their order."""
    return [key for name in loading.names("experiments") for key in SEVERAL.get(name, (name,))]


def which(key: str, preset: str) -> tuple[str, str]:
    """Return the experiment and the preset of a page: its own preset, or the given one."""
    for name, keys in SEVERAL.items():
        if key in keys and key != name:
            return name, key.removeprefix(f"{name}-")
    return key, preset


def written() -> Iterator[tuple[str, str]]:
    """Yield the pages that there are, by their names."""
    for key in known():
        if (page := PAGES / f"{key}.md").exists():
            yield key, page.read_text().rstrip("\n")


RUN = re.compile(
    r"`qjump-mn run (?P<name>\S+) --preset (?P<preset>.+?)`, exit code \d, "
    r"(?P<trials>\d+ x \d+) trials, (?P<minutes>[\d.]+) minutes"
)
"""A page's sentence about its run, from which the table of all runs is made."""

VERDICT = re.compile(r"^\| ([A-Z][A-Z ]+[A-Z]) \|", re.MULTILINE)


def title(page: str) -> str:
    """Return the title of a page."""
    return page.splitlines()[0].removeprefix("# ")


def verdicts(page: str) -> str:
    """Return the numbers of a page's verdicts."""
    counts = Counter(VERDICT.findall(page))
    return ", ".join(f"{counts[one]} {one}" for one in formatting.MEANINGS if counts[one])


def summary(pages: Mapping[str, str]) -> str:
    """Return the table of all pages, with the numbers of their verdicts."""
    rows = [
        (f"[{title(text)}](figures/{name}.md)", f"`{run['preset']}`", verdicts(text))
        for name, text in pages.items()
        if (run := RUN.search(text))
    ]
    return table(["figure", "preset", "verdicts"], rows)


def of_new_run(name: str, preset: str, out: Path, *, keep: bool) -> str:
    """Run an experiment, and return its page."""
    before = (out / "last").resolve()
    options = ["--preset", preset] if preset else []
    command = [sys.executable, "-m", "qjump_mn.run", name, *options, "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if (out / "last").resolve() == before:  # an older run must not pass for this one
        raise SystemExit(f"{name} left no run: exit code {done.returncode}")
    return of_run(out / "last", keep=keep)


def complete(folder: Path, key: str) -> Path | None:
    """Return the newest run for a page in a folder with every trial done and judged."""
    name, preset = which(key, "")
    others = [which(other, "")[1] for other in SEVERAL.get(name, ())]
    for run in previous_runs.newest_first(folder, name):
        its = run.manifest.plan.shown.preset
        if (its == preset if preset else its not in others) and run.outcome is not None:
            return run.directory.path
    return None


def command(manifest: Manifest) -> str:
    """Return the command of a run, with its preset and the options that it had, because defaults
    may change."""
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
    """Say how many trials a run has, their processor time, and how long it took by the clock."""
    plan = manifest.plan
    minutes = sum(trial.cpu_s or 0 for trial in manifest.trials.values()) / 60
    began = datetime.fromisoformat(manifest.started_utc)
    ended = datetime.fromisoformat(manifest.ended_utc or manifest.started_utc)
    return (
        f"{len(plan.run.arms)} x {len(plan.run.seeds)} trials, {_minutes(minutes)} minutes of a "
        f"processor, {_minutes((ended - began).total_seconds() / 60)} by the clock."
    )


def _minutes(count: float) -> str:
    return f"{count:.0f}" if count >= 1 else f"{count:.1g}"


def of_run(path: Path, *, keep: bool) -> str:
    """Return the page of a run; `keep` puts its pictures and data beside the page."""
    run = directory.existing(path)
    found, manifest = outcome.read(run.path), run.manifest
    plan, pictures = manifest.plan, []
    own = f"{plan.shown.experiment}-{plan.shown.preset}"
    key = own if own in SEVERAL.get(plan.shown.experiment, ()) else plan.shown.experiment
    for drawing in found.drawings:
        picture = PAGES / f"{key}-{drawing.name}.png"
        if keep:
            PAGES.mkdir(exist_ok=True)
            shutil.copyfile(run.path / drawing.files["png"], picture)
        pictures.append(picture_text(plan, key, drawing, picture.name))
    claims = [cells(row) for row in found.verdicts]
    if keep:
        figure_data.write(run.path, PAGES / f"{key}.csv")
    return "\n".join(
        [
            f"# {key}: {plan.shown.title}",
            "",
            f"{plan.shown.reproduces}. `{command(manifest)}`,"
            f" exit code {found.exit_code}, {size(manifest)}"
            f"{setting(manifest, found.drawings)}",
            "",
            *pictures,
            *arm_tables(plan, found.arms),
            table(["verdict", "value", "claim", "source, and published number"], claims),
            *([DATA.format(key=key)] if keep else []),
        ]
    )


def picture_text(plan: Plan, key: str, drawing: Drawing, name: str) -> str:
    """Return a picture, named by what its title adds, with what only its caption says."""
    alternative = drawing.title.removeprefix(plan.shown.title).strip(": ") or key
    sentences = own_sentences(drawing.caption)
    return f"![{alternative}]({name})\n\n" + (f"{sentences}\n" if sentences else "")


SETTING = re.compile(r": ([^:]*?)\.(?: What was published is hollow or grey\.)?$")


def setting(manifest: Manifest, drawings: Sequence[Drawing]) -> str:
    """Return the links, the backend and the seeds of a run; nothing if it has no figure."""
    found = SETTING.search(original.lead(manifest, drawings[0])) if drawings else None
    return f" Setting: {found[1]}." if found else ""


DECLARED = "hosts take "
OWN = re.compile(
    r"(?:Recommended|Dashed|Hollow dots|Grey|In each panel|Not published|A line is broken)\b.*",
    re.DOTALL,
)


EVERYWHERE = re.compile(
    r"(?:Dashed: the analytic .*?[mu]s|Panel b .*?|Axis as published, .*?us|The \w+ spans? .*?)"
    r"\.(?: |$)"
)
"""Sentences of many captions, which the head of the page says once."""


def own_sentences(caption: str) -> str:
    """Return what a caption says of declared times of hosts, bounds and publications. It begins
    with settings, which `qjump-mn explain` prints."""
    own = OWN.search(EVERYWHERE.sub("", caption))
    declared = "Hosts take declared times." if DECLARED in caption else ""
    return " ".join(text for text in (declared, own[0].strip() if own else "") if text)


MAX_ROWS = 8
"""A longer table of arms is left out: the picture and the CSV file have the numbers."""


def arm_tables(plan: Plan, arms: Iterable[ArmSummary]) -> list[str]:
    """Return the tables of arms; those of few arms, and without arms that have no value."""
    blocks = result_tables.blocks(plan, [arm for arm in arms if arm.done])
    tables = []
    for block in blocks:
        rows = [[arm.label, *cells] for arm, cells in block.rows if set(cells) != {formatting.NONE}]
        if rows and len(block.rows) <= MAX_ROWS:
            tables.append(table(["arm", *block.heads], rows) + "\n")
    return tables


def cells(row: VerdictRow) -> list[str]:
    """Return a claim's row."""
    number = f"; published: {formatting.size(row)}" if row.published else ""
    return [row.verdict, formatting.value(row), row.statement, row.source + number]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


if __name__ == "__main__":
    main()
