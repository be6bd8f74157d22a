"""Write the results of the debug kernels (tests/guest/test_kernels.py) and of the torture of each
kernel (test_torture.py) into kmod-patches/debug-kernels.md.

    pytest tests/guest/test_kernels.py tests/guest/test_torture.py -m slow --basetemp FOLDER
    python bench/torture.py FOLDER [FOLDER ...] [--write]

Search each FOLDER for results of guests; the longest torture of each kernel counts. The clock is
the host's, so counts never repeat. A kernel without results keeps its row.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import marks
from tests.guest.checks import EXPECTED_LOG, of_note
from tests.guest.races import races

PAGE = ROOT / "kmod-patches/debug-kernels.md"
ALWAYS = "wire_serialisation"
"""A check that only the guest with all checks runs."""
HEAD = """\
| kernel | packets | operations | pauses sent, as dumps saw | left waiting | log |
|---|---|---|---|---|---|"""


def main() -> None:
    """Read the results, and print or write the tables."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("folders", nargs="+", type=Path)
    arguments.add_argument("--write", action="store_true")
    args = arguments.parse_args()
    texts = {
        "debug-suite": said(found(args.folders, "kernel_health"), marks.read(PAGE, "debug-suite")),
        "torture": table(found(args.folders, "smp_torture"), marks.read(PAGE, "torture")),
    }
    for name, text in texts.items():
        if args.write:
            marks.write(PAGE, name, text)
        else:
            print(text, end="\n\n")


def found(folders: Iterable[Path], check: str) -> list[Path]:
    """Return the folders below `folders` in which a guest has left the results of a check."""
    return [path.parent for folder in folders for path in folder.rglob(f"{check}.json")]


def said(guests: Iterable[Path], before: str) -> str:
    """Format kernel, log and health of the guest that ran all checks; without one, return
    `before`."""
    for folder in guests:
        results = json.loads((folder / "results.json").read_text())
        if ALWAYS not in results["checks"]:  # broken.c, or torture
            continue
        lines = [
            f"{line}{f'    ({times} times)' * (times > 1)}"
            for line, times in Counter(results["log"]).items()
        ]
        health = json.loads((folder / "kernel_health.json").read_text())
        rows = [f"kernel        {results['release']}, {len(results['checks']) - 1} checks"]
        rows += [f"{'' if place else 'log':14}{line}" for place, line in enumerate(lines)]
        return "\n".join(["```", *rows, f"kernel_health {json.dumps(health)}", "```"])
    return before


def table(guests: Iterable[Path], before: str) -> str:
    """Return the table, sorted by kernel, from the guests' folders; other kernels keep their
    rows."""
    rows = {line.split("|")[1].strip(): line for line in before.splitlines()[2:]}
    longest: dict[str, tuple[dict[str, Any], list[str]]] = {}
    for folder in guests:
        results = json.loads((folder / "results.json").read_text())
        values = json.loads((folder / "smp_torture.json").read_text())
        release = results["release"]
        if release not in longest or values["passed"] > longest[release][0]["passed"]:
            longest[release] = values, results["log"]
    rows |= {release: row(release, *found) for release, found in longest.items()}
    return "\n".join([HEAD, *(rows[release] for release in sorted(rows))])


def row(release: str, values: dict[str, Any], log: list[str]) -> str:
    """Return a guest's row; the log is clean if it has only the usual lines."""
    done = values["operations"]
    kinds = ", ".join(
        f"{count:,} {kind}" for kind, count in sorted(done.items(), key=lambda item: -item[1])
    )
    reported = races(log)
    rest = [line for line in of_note(reported.rest) if line not in EXPECTED_LOG]
    bad = len(rest) + len(reported.ours)
    verdict = f"not clean: {bad} line{'s' * (bad > 1)}" if bad else "clean"
    if reported.others:
        verdict += (
            f"; {len(reported.others)} race{'s' * (len(reported.others) > 1)} of the kernel's own"
        )
    if watched := values["kcsan"].get("setup_watchpoints"):
        verdict += f"; {watched:,} accesses watched"
    stuck = ", ".join(map(str, values["stuck"])) or "nothing"
    cells = (
        release,
        f"{values['passed']:,}",
        f"{sum(done.values()):,}: {kinds}",
        values["pauses"][0],
        stuck,
        verdict,
    )
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
