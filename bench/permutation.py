"""Measure the simulator on a permutation, as in htsim's experiments: every host of a fat-tree sends
2 MB to another one, all at once. Print a Markdown table.

    python bench/permutation.py [--write]

As there: 8,192 hosts, links of 100 Gb/s, packets of 4,000 bytes, queues of 1,000 packets and first
windows of 50. CPU seconds include building the network. `--write` replaces the table in
docs/simulator-validation.md. Takes some minutes.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import machine, marks
from bench.simulator import DOCUMENT
from qjump_mn.toolbox import simulator

if TYPE_CHECKING:
    from qjump_sim import Graph, Queue, Scheme

PORTS = (8, 16, 32)
"""Ports of a switch, for 128, 1,024 and 8,192 hosts."""
RATE, MICROSECOND = 100_000_000_000, 1_000_000
"""The links' rate in bit/s; a microsecond in ps."""
SIZE, PACKET, WINDOW, LIMIT, SMALL = 2_000_000, 4_000, 50, 1_000, 24
"""Bytes of a flow and of a packet; packets of the first window, of a queue, and of pFabric's
queue."""
THRESHOLD = WINDOW
"""DCTCP's marking threshold in packets: a first window, a little more than a round trip holds."""
SCHEMES = {"dctcp": "DCTCP", "pfabric": "pFabric", "homa": "Homa"}


class Run(NamedTuple):
    """A run: hosts, CPU seconds, packet-hops, and when the last flow finished, in ms."""

    hosts: int
    cpu: float
    hops: int
    last: float


def main() -> None:
    """Measure, print and, if asked, write."""
    sys.path.insert(0, str(simulator.package()))
    rows = [row(name, measured(ports, name)) for name in SCHEMES for ports in PORTS]
    text = table(rows)
    print(text)
    if sys.argv[1:] == ["--write"]:
        marks.write(DOCUMENT, "permutation", text)


def measured(ports: int, name: str) -> Run:
    """Run to the end of all flows."""
    from qjump_sim import Cable, Flows, Graph, Scenario, run

    began = time.process_time()
    cable = Cable(RATE, MICROSECOND)
    topology = Graph.fat_tree(ports, cable, cable)
    source = np.random.default_rng(1).permutation(len(topology.hosts))
    flows = Flows(0 * source, source, np.roll(source, 1), 0 * source + SIZE // PACKET)
    outcome = run(Scenario(topology, scheme(topology, name), flows))
    cpu = time.process_time() - began
    if not outcome.finished.all():
        raise SystemExit(f"{name}, {len(source)} hosts: not all flows have finished")
    return Run(len(source), cpu, outcome.counters["hops"], outcome.finish.max() / 1e9)


def scheme(topology: Graph, name: str) -> Scheme:
    """Return the named scheme with htsim's packets, windows and queues; pFabric's are small on
    purpose."""
    from qjump_sim import Bytes, Marking, PFabric, Priority, Scheme

    queues: dict[str, Queue] = {
        "dctcp": Marking(Bytes(LIMIT * PACKET), Bytes(THRESHOLD * PACKET)),
        "pfabric": PFabric(Bytes(SMALL * PACKET)),
        "homa": Priority(Bytes(LIMIT * PACKET)),
    }
    named = Scheme.named(name, topology)
    transport = replace(named.transport, data_bytes=PACKET, initial_window=WINDOW, max_window=LIMIT)
    return replace(
        named, queue=queues[name], host_queue=None, trunk_queue=None, transport=transport
    )


def row(name: str, run: Run) -> str:
    """Return the row of a run."""
    return (
        f"| {SCHEMES[name]} | {run.hosts:,} | {run.last:.3f} ms | {run.hops / 1e6:.1f} M | "
        f"{run.cpu:.2f} s | {run.hops / run.cpu / 1e6:.1f} M |"
    )


def table(rows: list[str]) -> str:
    """Return the table, with a row for each run."""
    least = (SIZE * 8 / RATE) * 1e3
    return "\n".join(
        [
            f"{machine.description()}; a flow alone on its link takes {least:.3f} ms:",
            "",
            "| | hosts | last flow finished at | packet-hops | CPU | packet-hops per CPU second |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
    )


if __name__ == "__main__":
    main()
