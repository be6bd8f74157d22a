"""How the simulator's cost of a packet-hop grows with the network: leaf-spine networks of 144,
1,008 and 10,000 hosts with Figure 9's cables, every scheme. Prints a Markdown table.

    python bench/growth.py [--write]

A run ends once the network carries a steady load, another some milliseconds later. What the second
takes more is divided by the packet-hops that it has more. Each counts with the least of several
rounds of all schemes and networks, not with its partner's round: else a slow first run would make
the difference small. `--write` replaces the table between the two marks in docs/simulator-speed.md.
Takes twenty minutes of a quiet machine.

A large network lies in the caches that processors have in common, so that growth is this machine's
in this hour as well: neighbours take caches away, for seconds or hours. The last row tells how far,
by reads of memory alone.
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
"""Racks, hosts of each, spines, and when the second run ends, in milliseconds."""
STEADY = 8
"""When the first run ends, in milliseconds: a flow takes 1.3 of them at the rate of its link."""
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
"""How many reads are timed, and of how much memory: what a processor's own cache holds, what a
shared one does, and what 10,000 hosts take."""


@dataclass
class Run:
    """The least CPU seconds of all rounds, and the packet-hops of each."""

    seconds: float = math.inf
    hops: int = 0

    def took(self, seconds: float, hops: int) -> None:
        """Another round."""
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
    """Numbers of 8 bytes, each the place of the next, in a circle of all places without order."""
    order = list(range(places))
    random.Random(1).shuffle(order)
    following = array("q", bytes(8 * places))
    for place, after in zip(order, order[1:] + order[:1], strict=True):
        following[place] = after
    return following


def reading(following: array[int]) -> float:
    """Nanoseconds of CPU that a read takes whose place is what the one before has read; with the
    interpreter's own, which are the same for every size."""
    place, began = 0, time.process_time()
    for _ in range(READS):
        place = following[place]
    return (time.process_time() - began) * 1e9 / READS


def cost(early: Run, late: Run) -> float:
    """Nanoseconds of CPU a packet-hop, of those that only the later one has."""
    return (late.seconds - early.seconds) * 1e9 / (late.hops - early.hops)


def timed(scheme: str, fabric: LeafSpine, until: int, stop: int) -> tuple[float, int]:
    """CPU seconds and packet-hops of a run of web search that ends at ``stop``; both times in
    milliseconds."""
    from qjump_sim import Poisson, Scenario, ms, run

    count = fabric.racks * fabric.hosts_per_rack * until // 2  # a host begins a flow in 2.7 ms
    flows = Poisson("search", load=LOAD, count=count)
    scenario = Scenario(fabric, scheme, flows, seed=1, stop=ms(stop))
    began = time.process_time()
    outcome = run(scenario)
    return time.process_time() - began, outcome.counters["hops"]


def row(title: str, of: list[float]) -> str:
    """A scheme's."""
    cells = " | ".join(f"{nanoseconds:.0f} ns" for nanoseconds in of)
    return f"| {title} | {cells} | {of[-1] / of[0]:.2f} |"


def table(rows: list[str]) -> str:
    """A row a scheme."""
    hosts = " | ".join(f"{racks * of:,} hosts" for racks, of, _, _ in FABRICS)
    return "\n".join(
        [
            f"{machine.told()}; web search at load {LOAD}, from {STEADY} ms on:",
            "",
            f"| | {hosts} | growth |",
            "|---" * (len(FABRICS) + 2) + "|",
            *rows,
        ]
    )


if __name__ == "__main__":
    main()
