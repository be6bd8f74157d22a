"""Write docs/run-directory.md from the types that write a run: its files, and every key of the JSON
files.

    python3 bench/run_directory.py [--write]

Without `--write`, print it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import marks, reference
from qjump_mn.model.plan import Plan
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.results import links
from qjump_mn.results.manifest import CommandManifest, Manifest
from qjump_mn.results.outcome import Outcome
from qjump_mn.results.series import Series

PAGE = ROOT / "docs/run-directory.md"
JSON = {
    "`manifest.json`": Manifest,
    "`manifest.json` of a command": CommandManifest,
    "`trials/ARM/SEED/trial.json`": TrialFacts,
    "`trials/ARM/SEED/series.json`": Series,
    "`verdicts.json`": Outcome,
}
OF_RUN = {
    "manifest.json": (
        "the plan, where and with what it ran, how trials ended, the SHA-256 of every file"
    ),
    "verdicts.json": (
        "the results: measures, verdicts, fidelity; the report is written from this file"
    ),
    "report.html, report.md": "the report; the HTML is one file that needs no network",
    "fig/NAME.png, fig/NAME.svg, fig/NAME.pdf": "each figure in three formats",
    "fig/NAME.csv": "the figure's numbers, if it provides them",
    "fig/network.svg": "the network and its flows",
    "timeline/*": "a zoomable time line for each trial",
    "player.html": "with `--watch`: the network, in which recorded frames travel and wait",
    "report.pdf": "with `--pdf`: the report, printed by a browser",
    "notes.md, *.png, *.jpg, *.svg": "your own text about the run, and its pictures",
    "own/*": (
        "your experiment, topologies, schemes, programs and extensions, as they were at the run"
    ),
    "log.jsonl": "the events of the run: one JSON object per line, with `utc` and `event`",
}
OF_TRIAL = {
    "DONE": "written last: the digest of the trial's files. `resume` runs a trial without it again",
    "trial.json": "when the measurement began and ended, and how busy the processor was",
    "agent.json": (
        "in the guest: the SHA-256 of the setup and the job that its process 1 got, and of each "
        "file that they left"
    ),
    "console.log": "the console of the guest's kernel",
    "raw/*": "the output of every program, verbatim, by workload and host or flow",
    "data/WORKLOAD.parquet": "the same as a table: [measures](measures.md)",
    "data/links.parquet": "the load of each link, level by level; not in the simulator",
    "asbuilt/before/*": "the network read back after it was built: `tc`, `ip`, `ethtool`, flows",
    "asbuilt/began/*, "
    "asbuilt/ended/*": "counters at the beginning and at the end of the measurement",
    "asbuilt/after/*": "counters after all programs had ended",
    "asbuilt/queues.json": "in the guest: how many bytes waited at ports, in 500 windows",
    "asbuilt/frames.json": (
        "with `--watch`, of the first seed: every frame of a part of the measurement, at every port"
    ),
    "series.json": "in the simulator: queue lengths, drops and marks over time",
    "asbuilt/scenario.json": "in the simulator: the scenario that was simulated",
}
"""Files of trials/ARM/SEED/; words in capitals and ``*`` stand for any name."""
OF_COMMAND = {
    "manifest.json": "the command, where and with what it ran, how it ended, every file's SHA-256",
    "own/folder.tar": "the folder that went in",
    "own/packages.lock": "the packages that were added to the machine, with their versions",
    "own/typed": "what was typed",
    "own/mininet.tar": "the Mininet that replaced the machine's",
    "trials/mn/SEED/raw/output": "what the command printed",
    "trials/mn/SEED/raw/end.json": "its exit code, and how long it took on the machine's clock",
    "trials/mn/SEED/raw/ports-N.json": "where packets waited and were dropped, port by port",
    "trials/mn/SEED/raw/files/*": "what the command wrote or changed in its folder",
}
"""What only the run of a command has, or has otherwise."""


def main(arguments: list[str]) -> None:
    """Print the page, or write it."""
    text = "\n".join(page()).strip("\n")
    if "--write" in arguments:
        marks.write(PAGE, "run_directory", text)
    else:
        print(text)


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield "## Files\n"
    yield from _table(OF_RUN)
    yield (
        "Each trial has a folder `trials/ARM/SEED/` (`trials/ARM/perturbedN/` with `--perturb`):\n"
    )
    yield from _table(OF_TRIAL)
    yield "## A command's run\n"
    yield (
        "The run of a command is `results/mn-UTC-HASH/`, with a folder `trials/mn/SEED/` for each "
        "seed. It has `log.jsonl`, and in each trial `DONE`, `agent.json` and `console.log`, as "
        "above, and:\n"
    )
    yield from _table(OF_COMMAND)
    yield "## `data/links.parquet`\n"
    columns = ", ".join(f"`{field.name}` ({field.type})" for field in links.SCHEMA)
    yield f"It has one row for each directed link and level: {columns}.\n"
    seen: set[type] = {Plan}  # internals, which `explain --json` prints
    for title, spec in JSON.items():
        yield from reference.section(2, title, spec, seen)


def _table(files: dict[str, str]) -> Iterator[str]:
    yield "| file | content |"
    yield "|---|---|"
    for names, about in files.items():
        shown = ", ".join(f"`{name}`" for name in names.split(", "))
        yield f"| {shown} | {about} |"
    yield ""


def entry(path: str) -> str | None:
    """Return the entry of the tables for a file of a run, by its path in the run directory."""
    of_trial = re.fullmatch(r"trials/[^/]+/[^/]+/(.+)", path)
    entries, name = (OF_TRIAL, of_trial[1]) if of_trial else (OF_RUN, path)
    return next((names for names in _narrowest(entries) if _fits(names, name)), None)


def _narrowest(entries: Iterable[str]) -> list[str]:
    """Return entries for a single name first."""
    return sorted(entries, key=lambda names: bool(re.search(r"\*|WORKLOAD|NAME", names)))


def _fits(names: str, name: str) -> bool:
    patterns = (re.escape(one).replace(r"\*", ".+") for one in names.split(", "))
    return any(
        re.fullmatch(re.sub("WORKLOAD|NAME", "[^/]+", pattern), name) for pattern in patterns
    )


if __name__ == "__main__":
    main(sys.argv[1:])
