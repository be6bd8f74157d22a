"""Writes docs/schemes.md's table of all schemes from the committed reference run of `schemes`.

    python3 bench/schemes.py [--write]

Without `--write` the table goes to standard output.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import marks
from bench.readme import reference_values
from qjump_mn import toolbox
from qjump_mn.model import resolve
from qjump_mn.results import wording
from qjump_mn.toolbox import lock

PAGE = ROOT / "docs/schemes.md"
EXPERIMENT, PRESET = "schemes", "smoke"
TIMES = ("p50_ms", "p99_ms", "max_ms")


def main(arguments: list[str]) -> None:
    """Print or write."""
    if "--write" not in arguments:
        print(table())
        return
    marks.write(PAGE, "schemes", table())


def table() -> str:
    """A row for each arm: the ping's round trip and its loss, and the bulk traffic."""
    plan, values = resolve.plan(EXPERIMENT, PRESET, []), reference_values(EXPERIMENT, PRESET)
    rows = [
        "| scheme | levels | ping: median | p99 | slowest, ms | lost | iperf3, Mb/s |",
        "|---|---|---|---|---|---|---|",
    ]
    for arm in plan.arms_run:
        ping, bulk = values[arm.name]["ping"], values[arm.name].get("bulk")
        cells = [
            arm.label if arm.name == "idle" else f"{arm.label} (`{arm.scheme.name}`)",
            "yes" if arm.uses_levels else "",
            *(wording.time(ping[name]) for name in TIMES),
            f"{100 * ping['loss']:.1f} %",
            f"{bulk['goodput_mbps']:.2f}" if bulk else "",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    rows += ["", f"{plan.network.told_links}, preset `{PRESET}`, one seed, Linux {linux()}."]
    return "\n".join(rows)


def linux() -> str:
    """The release of the guest's own kernel, by its lock."""
    names = (one.package.name for one in lock.read(toolbox.NAME).have)
    return next(match[1] for name in names if (match := re.fullmatch(r"linux-image-(\d.*)", name)))


if __name__ == "__main__":
    main(sys.argv[1:])
