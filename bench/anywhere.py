"""Run one arm of Figure 3a's smoke preset in plain chroots, as tests/install/test_anywhere.py does,
and print a Markdown table.

    python bench/anywhere.py [--write] MACHINE_FILE

`--write` replaces the table between the two marks in docs/machine.md. Needs root.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import pytest

from bench import marks
from tests.install.test_anywhere import ONE_TRIAL
from tests.support import chroots

MOST_OTHERS = 2


def main() -> None:
    """Try each system, print the table and, if asked, write it."""
    *options, machine = sys.argv[1:]
    rows = ["| system | Python | against the reference run |", "|---|---|---|"]
    for system in (*chroots.SYSTEMS.values(), *chroots.others()[:MOST_OTHERS]):
        rows.append(f"| {system.title} | {system.python} | {result(system, Path(machine))} |")
        print(rows[-1], file=sys.stderr, flush=True)
    system, title = chroots.SYSTEMS["debian13"], "a container without privileges (bubblewrap)"
    said = result(system, Path(machine), is_container=True)
    rows.append(f"| {system.title}, in {title} | {system.python} | {said} |")
    print("\n".join(rows))
    if options == ["--write"]:
        marks.write(ROOT / "docs/machine.md", "anywhere", "\n".join(rows))


def result(system: chroots.System, machine: Path, *, is_container: bool = False) -> str:
    """Compare the results with the reference run's, or say why there are none."""
    try:
        tried = chroots.tried(system, machine, ["idle"], is_container=is_container)
        found = tried.reference.partition(" (")[0]
        return found.replace(ONE_TRIAL, "the same results")
    except AssertionError as error:
        return f"no: {str(error).strip().splitlines()[-1]}"
    except pytest.skip.Exception as skipped:
        return f"not tried: {skipped}"


if __name__ == "__main__":
    main()
