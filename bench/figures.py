"""Runs every experiment and writes the sections of docs/figures.md: each figure with its command, the
verdicts and the picture.

    python bench/figures.py [--preset smoke] [--out FOLDER] [EXPERIMENT ...] [--write]

Without `--write` they go to standard output. Where experiments are named, the others' sections and pictures
stay as they are. `--out` is where the run directories stay.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import marks
from qjump_mn.model import loading
from qjump_mn.results import directory, outcome

PAGE, PICTURES = ROOT / "docs/figures.md", ROOT / "docs/figures"


def main() -> None:
    """Run, and print or write."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("experiments", nargs="*")
    arguments.add_argument("--preset", default="smoke")
    arguments.add_argument("--write", action="store_true")
    arguments.add_argument("--out", type=Path)
    asked = arguments.parse_args()
    known = loading.names("experiments")
    with tempfile.TemporaryDirectory() as scratch:
        sections = dict(written())
        for name in asked.experiments or known:
            sections[name] = section(name, asked.preset, asked.out or Path(scratch), keep=asked.write)
    text = "\n\n".join(sections[name] for name in known if name in sections)
    if asked.write:
        marks.write(PAGE, "figures", text)
    else:
        print(text)


def written() -> list[tuple[str, str]]:
    """The sections that the page has, by their experiments."""
    return re.findall(
        r"^(?=## ([\w-]+):)(.*?)(?=\s*\n## |\s*\Z)", marks.read(PAGE, "figures"), re.MULTILINE | re.DOTALL
    )


def section(name: str, preset: str, out: Path, *, keep: bool) -> str:
    """Run an experiment; what the page says of it."""
    before = (out / "last").resolve()
    command = [sys.executable, "-m", "qjump_mn.run", name, "--preset", preset, "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if (out / "last").resolve() == before:  # an older run must not pass for this one
        raise SystemExit(f"{name} left no run: exit code {done.returncode}")
    return told(out / "last", keep=keep)


def told(path: Path, *, keep: bool) -> str:
    """What the page says of a run; `keep` copies its pictures beside the page."""
    run = directory.existing(path)
    found, plan = outcome.read(run.path), run.manifest.plan
    preset = [] if plan.preset == loading.usual_preset(plan.experiment) else ["--preset", plan.preset]
    pictures = []
    for drawing in found.drawings:
        picture = PICTURES / f"{plan.experiment}-{drawing.name}.png"
        if keep:
            PICTURES.mkdir(exist_ok=True)
            shutil.copyfile(run.path / drawing.files["png"], picture)
        pictures.append(f"![{drawing.title}](figures/{picture.name})\n\n{drawing.caption}\n")
    verdicts = Counter(row.verdict for row in found.verdicts)
    claims = "\n".join(f"| {row.verdict} | {row.statement} | {row.source} |" for row in found.verdicts)
    return "\n".join(
        [
            f"## {plan.experiment}: {plan.title}",
            "",
            f"{plan.reproduces}. `{' '.join(['qjump-mn', 'run', plan.experiment, *preset])}`,"
            f" exit code {found.exit_code}:"
            f" {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}.",
            "",
            *pictures,
            "| verdict | claim | source |",
            "|---|---|---|",
            claims,
        ]
    )


if __name__ == "__main__":
    main()
