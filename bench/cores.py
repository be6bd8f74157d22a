"""Measure what several cores gain for one run of the simulator in parts, and count in traces what
they could gain. Print two Markdown tables.

    python bench/cores.py [--write]

Time a run in one part, in two parts on one core, in two on two cores, and in two beside a busy
loop on each core, in turn, and take the least of three rounds. This needs two idle cores.

A run in parts advances in windows of the least delay of a cable between two parts; then the parts
wait for each other. In each window all wait for the busiest core, so the largest speedup is all
packet-hops over those of the busiest cores. `--write` replaces the tables in
docs/simulator-validation.md. Takes two minutes and 3 GB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
"""Racks, hosts in each, spines, and microseconds of the trace. Its first half, in which the
network fills, does not count."""
CORES = (2, 4, 8)
LOAD = 0.6
ROUNDS, LONGER = 3, 3
"""Rounds, and the length of a measured run in traces."""


class Hops(NamedTuple):
    """Packet-hops of a trace, in order of time: when each reached its link's end, in ps, and the
    rack whose switch or host is there, or the spine, numbered after the racks; both of shape
    (hops,)."""

    at: NDArray[np.int64]
    node: NDArray[np.int64]


def main() -> None:
    """Measure, print and, if asked, write."""
    sys.path.insert(0, str(simulator.package()))
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("needs two cores; this machine has one")
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
    """Return a fabric with Figure 9's cables."""
    from qjump_sim import FIG9

    return replace(FIG9, racks=racks, hosts_per_rack=hosts, spines=spines)


class Seconds(NamedTuple):
    """Elapsed seconds of a run in one part, in two parts on one core, in two on two cores, and in
    two on two cores that are busy."""

    hosts: int
    hops: int
    one: float
    alone: float
    both: float
    busy: float


def measured(fabric: LeafSpine, microseconds: int) -> Seconds:
    """Return the least seconds of all rounds of a run: web search at load 0.6 with DCTCP. Every
    outcome must be the same."""
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)[:2]
    plan = ((1, cores[:1], False), (2, cores[:1], False), (2, cores, False), (2, cores, True))
    took: list[list[float]] = [[] for _ in plan]
    outcomes = []
    for _ in range(ROUNDS):
        for (parts, on, busy), seconds in zip(plan, took, strict=True):
            os.sched_setaffinity(0, on)
            with busy_loops(on if busy else []):
                began = time.perf_counter()
                outcomes.append(ran(fabric, microseconds, parts))
                seconds.append(time.perf_counter() - began)
    os.sched_setaffinity(0, allowed)
    one = outcomes[0]
    for other in outcomes:
        if other.counters != one.counters or not np.array_equal(other.finish, one.finish):
            raise SystemExit("the number of parts or cores changes the outcome")
    return Seconds(fabric.racks * fabric.hosts_per_rack, one.counters["hops"], *map(min, took))


@contextmanager
def busy_loops(cores: list[int]) -> Iterator[None]:
    """Keep each of these cores busy by a process of its own."""
    loops = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass",
            ]
        )
        for core in cores
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def ran(fabric: LeafSpine, microseconds: int, parts: int, watch: Watch | None = None) -> Outcome:
    """Return the outcome of a run in `parts` parts: web search at load 0.6 with DCTCP."""
    from qjump_sim import Poisson, Scenario, run, us

    hosts = fabric.racks * fabric.hosts_per_rack
    # A host begins one in 2.3 ms.
    flows = Poisson("search", load=LOAD, count=hosts * microseconds // 2000)
    return run(
        Scenario(fabric, "dctcp", flows, seed=1, stop=us(microseconds), parts=parts), watch=watch
    )


def traced(fabric: LeafSpine, microseconds: int) -> Hops:
    """Return what crosses the fabric's links in the second half of that time."""
    from qjump_sim import Watch, us

    outcome = ran(fabric, microseconds, 1, Watch(ports=True, trace="all"))
    trace = outcome.trace
    assert trace is not None
    ends = np.array([node(fabric, port.end) for port in outcome.ports])
    counted = (trace.dropped == 0) & (trace.at > us(microseconds) // 2)
    return Hops(trace.at[counted], ends[trace.link[counted]])


def node(fabric: LeafSpine, end: tuple[str, int]) -> int:
    """Return the rack of a host or of a rack's switch, or the number of a spine, after the
    racks."""
    kind, number = end
    return number // fabric.hosts_per_rack if kind == "host" else number


def busiest(hops: Hops, window: int, core: NDArray[np.int64]) -> int:
    """Return how many packet-hops belong to their window's busiest core; ``core`` has each node's
    core, shape (nodes,)."""
    windows = hops.at // window
    cores = int(core.max()) + 1
    counts = np.bincount((windows - windows.min()) * cores + core[hops.node])
    counts = np.pad(counts, (0, -len(counts) % cores))
    return int(counts.reshape(-1, cores).max(axis=1).sum())


def shared(fabric: LeafSpine, cores: int) -> NDArray[np.int64]:
    """Assign neighbouring racks to one core, and spines in turn; return each node's core, shape
    (nodes,)."""
    racks = np.arange(fabric.racks) * cores // fabric.racks
    return np.concatenate([racks, np.arange(fabric.spines) % cores])


def row(fabric: LeafSpine, hops: Hops) -> str:
    """Return the row of a fabric: packet-hops per window, and the cells for each number of
    cores."""
    window, total = fabric.uplink.delay, len(hops.at)
    windows = (int(hops.at.max()) - int(hops.at.min())) / window
    cells = [f"{fabric.racks * fabric.hosts_per_rack:,}", f"{total / windows:,.0f}"]
    for cores in CORES:
        most = busiest(hops, window, shared(fabric, cores))
        cells.append(f"{total / most:.2f} ({(total - most) / windows:,.0f})")
    return "| " + " | ".join(cells) + " |"


def measured_table(runs: list[Seconds]) -> str:
    """Return the table of the measured seconds."""
    return "\n".join(
        [
            f"{machine.description()}; web search at load {LOAD} with DCTCP, elapsed seconds:",
            "",
            "| hosts | packet-hops | in one part | in two, on one core | on two cores | speedup "
            "| on two busy cores |",
            "|---|---|---|---|---|---|---|",
            *(
                f"| {of.hosts:,} | {of.hops / 1e6:.1f} M | {of.one:.2f} s | {of.alone:.2f} s | "
                f"{of.both:.2f} s | {of.one / of.both:.2f} | {of.busy:.2f} s |"
                for of in runs
            ),
        ]
    )


def table(rows: list[str]) -> str:
    """Return the table of the largest possible speedups."""
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
