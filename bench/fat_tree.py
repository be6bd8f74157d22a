"""Measure the simulator on large networks: fat-trees of up to 101,306 hosts at load 0.6. Print a
Markdown table.

    python bench/fat_tree.py [--write]

`--write` replaces the table in docs/simulator-validation.md. Exit with 1 if the largest takes more
than 16 GB. CPU seconds are the whole program's; a run of no time shows the cost of building the
network and its routes. Takes some minutes; needs `cargo`, or exits with 3.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import machine, marks
from bench.simulator import DOCUMENT, Run, program, run

PORTS, MICROSECONDS = (16, 36, 74), 3000
MOST_MB = 16_000


def main() -> None:
    """Measure, print and, if asked, write."""
    simulator = program()
    runs = [measured(simulator, ports, MICROSECONDS) for ports in PORTS]
    text = table(runs)
    print(text)
    if sys.argv[1:] == ["--write"]:
        marks.write(DOCUMENT, "fat-tree", text)
    if most_mb(runs) > MOST_MB:
        raise SystemExit(f"the largest network takes {most_mb(runs)} MB, more than {MOST_MB}")


def measured(simulator: str, ports: int, microseconds: int) -> tuple[Run, Run]:
    """Build a fat-tree, then build and run it; return both results."""
    command = [simulator, "bench-fat-tree", "--ports", str(ports), "--microseconds"]
    return run([*command, "0"]), run([*command, str(microseconds)])


def most_mb(runs: list[tuple[Run, Run]]) -> int:
    """Return the peak memory, in MB."""
    return max(int(said["max_rss_MB"]) for _, (said, _) in runs)


def table(runs: list[tuple[Run, Run]]) -> str:
    """Return the table, with a row for each network."""
    rows = []
    for (_, built), (said, cpu) in runs:
        hosts, flows, finished, hops = (
            int(said[name]) for name in ("hosts", "flows", "finished", "hops")
        )
        rows.append(
            f"| {hosts:,} | {flows:,} | {finished:,} | {hops / 1e6:.1f} M | "
            f"{int(said['in_flight']):,} | {built:.1f} s | {cpu:.1f} s | "
            f"{(cpu - built) * 1e9 / hops:.0f} ns | {said['max_rss_MB']} MB |"
        )
    return "\n".join(
        [
            f"{machine.description()}; the first {MICROSECONDS / 1000:g} ms of web search at load "
            "0.6 with DCTCP, all links at 10 Gb/s:",
            "",
            "| hosts | flows started | finished | packet-hops | packets in flight at the end | "
            "CPU to build | total CPU | per packet-hop | memory |",
            "|---|---|---|---|---|---|---|---|---|",
            *rows,
        ]
    )


if __name__ == "__main__":
    main()
