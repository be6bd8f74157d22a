"""Measure how many frames pass one root qdisc that two processors share, as ratios to a qdisc for
each transmit queue, in several boots. Print a Markdown table.

    python3 bench/transmit_queues.py [--write]

`--write` replaces the table in docs/qdisc-cost.md. It needs two idle cores: the machine is
translated by QEMU, so only the ratios within a boot say anything, and they differ from boot to boot
(tests/guest/qdisc/checks/transmit_queues.py).
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import marks
from tests.guest.checks import job_of, kernel_image, outside
from tests.guest.vm import Setup, machine

DOCUMENT = ROOT / "docs/qdisc-cost.md"
CHECK = "transmit_queues"
BOOTS, ROUNDS = 7, 5
BASE = "mq, pfifo_fast each"


def measure() -> dict[str, list[float]]:
    """Return frames per second by case: of one thread, and of two together."""
    image = kernel_image("6.12")
    data = {"pktgen.ko": outside(image, "net/core/pktgen")}
    job = job_of([[CHECK, str(ROUNDS)]], data, deadline_s=1800)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        machine.run(image, Setup(), job, folder, memory_mb=1024, wall_deadline_s=900, processors=2)
        found: dict[str, list[float]] = json.loads((folder / f"{CHECK}.json").read_text())["pps"]
    return found


def table(boots: list[dict[str, list[float]]]) -> str:
    """Return the rows: each rate relative to the same number of threads with a qdisc each, and how
    much more two threads send than one; the median of the boots, the least and the largest."""
    rows = [
        "| root qdisc | one sender | two senders | two for one |",
        "|---|---|---|---|",
    ]
    for case in boots[0]:
        pairs = [(pps[case], pps[BASE]) for pps in boots]
        columns = (
            [one / base for (one, _), (base, _) in pairs],
            [two / base for (_, two), (_, base) in pairs],
            [two / one for (one, two), _ in pairs],
        )
        rows.append(f"| {case} | {' | '.join(map(ranged, columns))} |")
    return "\n".join(rows)


def ranged(values: list[float]) -> str:
    """Return the median with the least and the largest value."""
    return f"{statistics.median(values):.2f} [{min(values):.2f}..{max(values):.2f}]"


if __name__ == "__main__":
    text = table([measure() for _ in range(BOOTS)])
    print(text)
    if sys.argv[1:] == ["--write"]:
        marks.write(DOCUMENT, "transmit_queues", text)
