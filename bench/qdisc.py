"""What each queueing discipline costs a packet, in instructions, on every kernel of the tests. Prints Markdown tables.

    python bench/qdisc.py [--write]

`--write` replaces the tables between the two marks in docs/qdisc-cost.md, and bench/qdisc.json, against which tests/guest/test_qdisc.py
compares. The figures are those of tests/guest/qdisc/checks/qdisc_cost.py: exact for an image, so they are measured once.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.guest.test_qdisc import SUITES, measured

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- bench/qdisc begin -->", "<!-- bench/qdisc end -->"
CHECK = "qdisc_cost"
DOCUMENT, FIGURES = ROOT / "docs/qdisc-cost.md", ROOT / "bench/qdisc.json"
TITLES = {"qdiscs": "a packet that leaves at once", "paths": "a packet that does not leave", "udp": "the same by a loop of sendto()"}

Figures = dict[str, dict[str, Any]]


def main() -> None:
    """Measure, print and, if asked, write."""
    figures = {kernel: measure(kernel) for kernel in SUITES}
    text = "\n\n".join([", ".join(f"Linux {figures[k]['release']}: noqueue {figures[k]['noqueue']:.0f}" for k in figures), *tables(figures)])
    print(text)
    if sys.argv[1:] == ["--write"]:
        before, _, rest = DOCUMENT.read_text().partition(BEGIN)
        DOCUMENT.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")


def measure(kernel: str) -> dict[str, Any]:
    """The figures of a kernel, with its release."""
    with tempfile.TemporaryDirectory() as scratch:
        guest = measured(kernel, [[CHECK]], Path(scratch))
        return {"release": guest.results["release"], **guest.values(CHECK)}


def tables(figures: Figures) -> list[str]:
    """A table for each group: instructions above noqueue on each kernel, and by what they exceed pfifo's of the same group."""
    blocks = []
    for group, title in TITLES.items():
        names = list(next(iter(figures.values()))[group])
        times = "pfifo" in names
        heads = [head for kernel in figures for head in ([kernel, "x pfifo"] if times else [kernel])]
        rows = [f"| {title} | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
        for name in names:
            cells: list[str] = []
            for kernel in figures:
                value, pfifo = figures[kernel][group][name], figures[kernel][group].get("pfifo")
                cells += [f"{value:.0f}"] + ([f"{value / pfifo:.2f}"] if times else [])
            rows.append(f"| `{name}` | {' | '.join(cells)} |")
        blocks.append("\n".join(rows))
    return blocks


if __name__ == "__main__":
    main()
