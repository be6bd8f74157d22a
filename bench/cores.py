"""What several cores could gain for one run of the simulator, which takes one: at most, counted from traces.
Prints a Markdown table.

    python bench/cores.py [--write]

A conservative parallel simulation gives each core some racks and spines, and lets all go on by the lookahead:
the least time that a packet takes from one core's part to another's, which is the delay of a cable between a
rack and a spine and the shortest packet's time on it. Then they wait for each other. In each such window all
wait for the core with most to do, so that a run is at most as many times as fast as all packet-hops are those
of the busiest cores. `--write` replaces the table between the two marks in docs/simulator-speed.md. Takes
half a minute and 3 GB.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import marks
from bench.simulator import DOCUMENT
from qjump_mn.toolbox import simulator

if TYPE_CHECKING:
    from qjump_sim import LeafSpine

FABRICS = ((9, 16, 4, 20_000), (42, 24, 6, 8_000), (250, 40, 10, 2_000))
"""Racks, hosts of each, spines, and microseconds of the trace: the first half, in which the network fills, is
left out."""
CORES = (2, 4, 8)
SHORTEST = 40
"""Bytes of an ACK."""


class Hops(NamedTuple):
    """Packet-hops of a trace, in the order of happening: when each came to its link's end, in ps, and the
    rack whose switch or host is there, or the spine, counted after the racks; both of shape (hops,)."""

    at: NDArray[np.int64]
    node: NDArray[np.int64]


def main() -> None:
    """Measure, print and, if asked, write."""
    sys.path.insert(0, str(simulator.package()))
    rows = []
    for racks, hosts, spines, microseconds in FABRICS:
        fabric = fabric_of(racks, hosts, spines)
        rows.append(row(fabric, traced(fabric, microseconds)))
    text = table(rows)
    print(text)
    if sys.argv[1:] == ["--write"]:
        marks.write(DOCUMENT, "cores", text)


def fabric_of(racks: int, hosts: int, spines: int) -> LeafSpine:
    """One with Figure 9's cables."""
    from qjump_sim import FIG9

    return replace(FIG9, racks=racks, hosts_per_rack=hosts, spines=spines)


def traced(fabric: LeafSpine, microseconds: int) -> Hops:
    """What crosses the links of the fabric in the second half of that time: web search at load 0.6 with
    DCTCP."""
    from qjump_sim import Poisson, Scenario, Watch, run, us

    hosts = fabric.racks * fabric.hosts_per_rack
    flows = Poisson("search", load=0.6, count=hosts * microseconds // 2000)  # a host begins one in 2.3 ms
    scenario = Scenario(fabric, "dctcp", flows, seed=1, stop=us(microseconds))
    outcome = run(scenario, watch=Watch(ports=True, trace="all"))
    trace = outcome.trace
    assert trace is not None
    ends = np.array([node(fabric, port.end) for port in outcome.ports])
    counted = (trace.dropped == 0) & (trace.at > us(microseconds) // 2)
    return Hops(trace.at[counted], ends[trace.link[counted]])


def node(fabric: LeafSpine, end: tuple[str, int]) -> int:
    """The rack of a host or of a rack's switch; the number of a spine, which are numbered after the racks."""
    kind, number = end
    return number // fabric.hosts_per_rack if kind == "host" else number


def lookahead(fabric: LeafSpine) -> int:
    """In ps."""
    return fabric.uplink.delay + SHORTEST * 8 * 10**12 // fabric.uplink.rate


def busiest(hops: Hops, window: int, core: NDArray[np.int64]) -> int:
    """How many packet-hops are those of their window's busiest core; ``core`` has each node's, shape
    (nodes,)."""
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
    """Of one fabric: how many packet-hops a window has, and for each number of cores what the table says of
    it."""
    window, total = lookahead(fabric), len(hops.at)
    windows = (int(hops.at.max()) - int(hops.at.min())) / window
    cells = [f"{fabric.racks * fabric.hosts_per_rack:,}", f"{total / windows:,.0f}"]
    for cores in CORES:
        most = busiest(hops, window, shared(fabric, cores))
        cells.append(f"{total / most:.2f} ({(total - most) / windows:,.0f})")
    return "| " + " | ".join(cells) + " |"


def table(rows: list[str]) -> str:
    """All of them."""
    heads = " | ".join(f"{cores} cores" for cores in CORES)
    return "\n".join(
        [
            "How many times as fast as on one core, at most. In brackets: how long waiting at the end of a "
            "window may take, counted in packet-hops, before nothing is gained:",
            "",
            f"| hosts | packet-hops a window | {heads} |",
            "|---|---|" + "---|" * len(CORES),
            *rows,
        ]
    )


if __name__ == "__main__":
    main()
