"""What several cores gain for one run of the simulator in parts: measured on two, and at most,
counted from traces. Prints two Markdown tables.

    python bench/cores.py [--write]

Measured are elapsed seconds of a run in one part, in two parts on one core and in two on two, in
turn; the least of three rounds. They need two cores with nothing else to do.

A run in parts goes on by windows of the least delay of a cable between two of them; then parts wait
for each other. In each such window all wait for the core with most to do, so that a run is at most
as many times as fast as all packet-hops are those of the busiest cores. `--write` replaces the
tables between the two marks in docs/simulator-speed.md. Takes two minutes and 3 GB.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import machine, marks
from bench.simulator import DOCUMENT
from qjump_mn.toolbox import simulator

if TYPE_CHECKING:
    from qjump_sim import LeafSpine, Outcome, Watch

FABRICS = ((9, 16, 4, 20_000), (42, 24, 6, 8_000), (250, 40, 10, 2_000))
"""Racks, hosts of each, spines, and microseconds of the trace: the first half, in which the network
fills, is left out."""
CORES = (2, 4, 8)
LOAD = 0.6
ROUNDS, LONGER = 3, 3
"""Rounds of what is measured, and how many times as long as a trace that is."""


class Hops(NamedTuple):
    """Packet-hops of a trace, in the order of happening: when each came to its link's end, in ps,
    and the rack whose switch or host is there, or the spine, counted after the racks; both of shape
    (hops,)."""

    at: NDArray[np.int64]
    node: NDArray[np.int64]


def main() -> None:
    """Measure, print and, if asked, write."""
    sys.path.insert(0, str(simulator.package()))
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("there is one core: two are needed")
    fabrics = [
        (fabric_of(racks, hosts, spines), microseconds)
        for racks, hosts, spines, microseconds in FABRICS
    ]
    seconds = [measured(fabric, LONGER * microseconds) for fabric, microseconds in fabrics]
    rows = [row(fabric, traced(fabric, microseconds)) for fabric, microseconds in fabrics]
    text = f"{measured_table(seconds)}\n\n{table(rows)}"
    print(text)
    if sys.argv[1:] == ["--write"]:
        marks.write(DOCUMENT, "cores", text)


def fabric_of(racks: int, hosts: int, spines: int) -> LeafSpine:
    """One with Figure 9's cables."""
    from qjump_sim import FIG9

    return replace(FIG9, racks=racks, hosts_per_rack=hosts, spines=spines)


class Seconds(NamedTuple):
    """Elapsed, of a run in one part, in two parts on one core and in two on two."""

    hosts: int
    hops: int
    one: float
    alone: float
    both: float


def measured(fabric: LeafSpine, microseconds: int) -> Seconds:
    """Of a run of so long: web search at load 0.6 with DCTCP; the least of all rounds. On one core
    and on two the outcome has to be the same."""
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)[:2]
    plan = ((1, cores[:1]), (2, cores[:1]), (2, cores))
    took: list[list[float]] = [[] for _ in plan]
    outcomes = []
    for _ in range(ROUNDS):
        for (parts, on), seconds in zip(plan, took, strict=True):
            os.sched_setaffinity(0, on)
            began = time.perf_counter()
            outcomes.append(ran(fabric, microseconds, parts))
            seconds.append(time.perf_counter() - began)
    os.sched_setaffinity(0, allowed)
    one, alone, both = outcomes[:3]
    if alone.counters != both.counters or not np.array_equal(alone.finish, both.finish):
        raise SystemExit("two cores gave another outcome than one")
    return Seconds(fabric.racks * fabric.hosts_per_rack, one.counters["hops"], *map(min, took))


def ran(fabric: LeafSpine, microseconds: int, parts: int, watch: Watch | None = None) -> Outcome:
    """The outcome of a run in so many parts: web search at load 0.6 with DCTCP."""
    from qjump_sim import Poisson, Scenario, run, us

    hosts = fabric.racks * fabric.hosts_per_rack
    flows = Poisson(
        "search", load=LOAD, count=hosts * microseconds // 2000
    )  # a host begins one in 2.3 ms
    return run(
        Scenario(fabric, "dctcp", flows, seed=1, stop=us(microseconds), parts=parts), watch=watch
    )


def traced(fabric: LeafSpine, microseconds: int) -> Hops:
    """What crosses the links of the fabric in the second half of that time."""
    from qjump_sim import Watch, us

    outcome = ran(fabric, microseconds, 1, Watch(ports=True, trace="all"))
    trace = outcome.trace
    assert trace is not None
    ends = np.array([node(fabric, port.end) for port in outcome.ports])
    counted = (trace.dropped == 0) & (trace.at > us(microseconds) // 2)
    return Hops(trace.at[counted], ends[trace.link[counted]])


def node(fabric: LeafSpine, end: tuple[str, int]) -> int:
    """The rack of a host or of a rack's switch; the number of a spine, which are numbered after the
    racks."""
    kind, number = end
    return number // fabric.hosts_per_rack if kind == "host" else number


def busiest(hops: Hops, window: int, core: NDArray[np.int64]) -> int:
    """How many packet-hops are those of their window's busiest core; ``core`` has each node's,
    shape (nodes,)."""
    windows = hops.at // window
    cores = int(core.max()) + 1
    counts = np.bincount((windows - windows.min()) * cores + core[hops.node])
    counts = np.pad(counts, (0, -len(counts) % cores))
    return int(counts.reshape(-1, cores).max(axis=1).sum())


def shared(fabric: LeafSpine, cores: int) -> NDArray[np.int64]:
    """Racks side by side on one core, spines in turn; each node's core, shape (nodes,)."""
    racks = np.arange(fabric.racks) * cores // fabric.racks
    return np.concatenate([racks, np.arange(fabric.spines) % cores])


def row(fabric: LeafSpine, hops: Hops) -> str:
    """Of one fabric: how many packet-hops a window has, and for each number of cores what the table
    says of it."""
    window, total = fabric.uplink.delay, len(hops.at)
    windows = (int(hops.at.max()) - int(hops.at.min())) / window
    cells = [f"{fabric.racks * fabric.hosts_per_rack:,}", f"{total / windows:,.0f}"]
    for cores in CORES:
        most = busiest(hops, window, shared(fabric, cores))
        cells.append(f"{total / most:.2f} ({(total - most) / windows:,.0f})")
    return "| " + " | ".join(cells) + " |"


def measured_table(runs: list[Seconds]) -> str:
    """What was measured."""
    return "\n".join(
        [
            f"{machine.told()}; web search at load {LOAD} with DCTCP, elapsed seconds:",
            "",
            "| hosts | packet-hops | in one part | in two, on one core | on two cores | speedup |",
            "|---|---|---|---|---|---|",
            *(
                f"| {of.hosts:,} | {of.hops / 1e6:.1f} M | {of.one:.2f} s | {of.alone:.2f} s | "
                f"{of.both:.2f} s | {of.one / of.both:.2f} |"
                for of in runs
            ),
        ]
    )


def table(rows: list[str]) -> str:
    """All of them."""
    heads = " | ".join(f"{cores} cores" for cores in CORES)
    return "\n".join(
        [
            "The largest possible speedup. In brackets: how many packet-hops waiting at the end "
            "of a window may cost before nothing is gained:",
            "",
            f"| hosts | packet-hops per window | {heads} |",
            "|---|---|" + "---|" * len(CORES),
            *rows,
        ]
    )


if __name__ == "__main__":
    main()
