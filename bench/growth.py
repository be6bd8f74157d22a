"""Measure how the simulator's cost of a packet-hop grows with the network: leaf-spine networks of
144, 1,008 and 10,000 hosts with Figure 9's cables, every scheme. Print a Markdown table.

    python bench/growth.py [--write]

One run ends once the network carries a steady load, another some milliseconds later. The cost is
the difference of their times over the difference of their packet-hops. Each time is the least of
several rounds of all schemes and networks. `--write` replaces the table in
docs/simulator-validation.md. Takes twenty minutes of a quiet machine.

A large network lies in the caches that processors share, so other work makes the growth larger. The
last row shows that effect by memory reads alone.
"""

from __future__ import annotations

import math
import random
import sys
import time
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import machine, marks
from bench.cores import fabric_of
from bench.simulator import DOCUMENT
from qjump_mn.toolbox import simulator

if TYPE_CHECKING:
    from qjump_sim import LeafSpine

FABRICS = ((9, 16, 4, 60), (42, 24, 6, 16), (250, 40, 10, 11))
"""Racks, hosts in each, spines, and the end of the second run in milliseconds."""
STEADY = 8
"""The end of the first run in milliseconds; the mean flow takes 1.3 at the rate of its link."""
SCHEMES = {
    "dctcp": "DCTCP",
    "tcp": "TCP",
    "pfabric": "pFabric",
    "qjump-script": "priorities and QJump's limiters by flow",
    "qjump-paper": "priorities and QJump's limiters by host",
    "swift": "Swift",
    "homa": "Homa",
}
LOAD, ROUNDS = 0.5, 6
READS, MEGABYTES = 1_000_000, (0.1, 16, 48)
"""The number of timed reads, and their memory: a processor's own cache, a shared one, and what
10,000 hosts take."""


@dataclass
class Run:
    """The least CPU seconds of all rounds, and the packet-hops of each."""

    seconds: float = math.inf
    hops: int = 0

    def took(self, seconds: float, hops: int) -> None:
        """Add another round."""
        self.seconds, self.hops = min(self.seconds, seconds), hops


def main() -> None:
    """Measure, print and, if asked, write."""
    sys.path.insert(0, str(simulator.package()))
    fabrics = [(fabric_of(racks, hosts, spines), until) for racks, hosts, spines, until in FABRICS]
    rings = [ring(int(size * 2**20) // 8) for size in MEGABYTES]
    runs = {name: [[Run(), Run()] for _ in fabrics] for name in SCHEMES}
    reads = [math.inf for _ in rings]
    for _ in range(ROUNDS):
        for name, of in runs.items():
            for (fabric, until), (early, late) in zip(fabrics, of, strict=True):
                early.took(*timed(name, fabric, until, STEADY))
                late.took(*timed(name, fabric, until, until))
            reads = [min(least, reading(each)) for least, each in zip(reads, rings, strict=True)]
    rows = [row(SCHEMES[name], [cost(*pair) for pair in of]) for name, of in runs.items()]
    sizes = ", ".join(f"{size:g}" for size in MEGABYTES)
    rows.append(row(f"dependent reads of {sizes} MB", reads))
    text = table(rows)
    print(text)
    if sys.argv[1:] == ["--write"]:
        marks.write(DOCUMENT, "growth", text)


def ring(places: int) -> array[int]:
    """Return numbers of 8 bytes, each the place of the next, in a random circle through all
    places."""
    order = list(range(places))
    random.Random(1).shuffle(order)
    following = array("q", bytes(8 * places))
    for place, after in zip(order, order[1:] + order[:1], strict=True):
        following[place] = after
    return following


def reading(following: array[int]) -> float:
    """Return the CPU nanoseconds of a read that depends on the one before, with the interpreter's
    own, which are the same for every size."""
    place, began = 0, time.process_time()
    for _ in range(READS):
        place = following[place]
    return (time.process_time() - began) * 1e9 / READS


def cost(early: Run, late: Run) -> float:
    """Return the CPU nanoseconds of a packet-hop, of those that only the later run has."""
    return (late.seconds - early.seconds) * 1e9 / (late.hops - early.hops)


def timed(scheme: str, fabric: LeafSpine, until: int, stop: int) -> tuple[float, int]:
    """Return CPU seconds and packet-hops of a run of web search that ends at ``stop``; both times
    in milliseconds."""
    from qjump_sim import Poisson, Scenario, ms, run

    count = fabric.racks * fabric.hosts_per_rack * until // 2  # a host begins a flow in 2.7 ms
    flows = Poisson("search", load=LOAD, count=count)
    scenario = Scenario(fabric, scheme, flows, seed=1, stop=ms(stop))
    began = time.process_time()
    outcome = run(scenario)
    return time.process_time() - began, outcome.counters["hops"]


def row(title: str, of: list[float]) -> str:
    """Return the row of a scheme."""
    cells = " | ".join(f"{nanoseconds:.0f} ns" for nanoseconds in of)
    return f"| {title} | {cells} | {of[-1] / of[0]:.2f} |"


def table(rows: list[str]) -> str:
    """Return the table, with a row for each scheme."""
    hosts = " | ".join(f"{racks * of:,} hosts" for racks, of, _, _ in FABRICS)
    return "\n".join(
        [
            f"{machine.description()}; web search at load {LOAD}, from {STEADY} ms on:",
            "",
            f"| | {hosts} | growth |",
            "|---" * (len(FABRICS) + 2) + "|",
            *rows,
        ]
    )


if __name__ == "__main__":
    main()
