"""Compare the simulator with ns-3 at one bottleneck: throughput, waiting, losses, marks and
completion times. Print a Markdown table.

    python bench/ns3.py [--write]

`--write` replaces the table in docs/simulator-validation.md. Exit with 1 if a difference exceeds
its tolerance. Needs `cargo`, `g++` and ns-3 (`apt install libns3-dev`, 3.37), or exits with 3.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import marks, simulator

if TYPE_CHECKING:
    from qjump_sim import Congestion, Flows, Scheme, Tree

ROOT = Path(__file__).parent.parent
DOCUMENT, SOURCE, BINDINGS = (
    ROOT / "docs/simulator-validation.md",
    ROOT / "bench/ns3/bottleneck.cc",
    ROOT / "simulator/python",
)
LIBRARIES = ("applications", "point-to-point", "internet", "traffic-control", "network", "core")
PACKET, ACK, RATE = 1500, 42, 1_000_000_000
IDLE_US = 1.2 + 25 + 12 + 25
"""The time of a data packet on its way when nothing waits."""
TRACES, SHORT, SENDERS = 20, 200, 20
SIZES = (2, 5, 10, 20, 50, 200, 600)


@dataclass(frozen=True)
class Case:
    """A case. `queue`: packets that may wait; `mark`: waiting packets from which on it marks, 0 for
    never. `tolerances`: of each compared quantity, as a share of ns-3's."""

    title: str
    traces: Sequence[str]
    queue: int
    mark: int
    transport: Literal["reno", "ecn", "dctcp"]
    tolerances: dict[str, float]
    sack: bool = True


@dataclass(frozen=True)
class Seen:
    """The results of a trace: completion times in s, mean wait in us, packets."""

    fct: NDArray[np.float64]
    wait: float
    dropped: int
    marked: int
    again: int


def main() -> None:
    """Run both, print and, if asked, write."""
    sys.path.insert(0, str(scratch := Path(tempfile.mkdtemp(prefix="bench-ns3-"))))
    try:
        bindings(scratch)
        ns3 = simulator.ns3_program(SOURCE, LIBRARIES, scratch)
        text, wrong = table(ns3, scratch)
    finally:
        shutil.rmtree(scratch)
    print(text)
    if sys.argv[1:] == ["--write"]:
        marks.write(DOCUMENT, "ns3", text)
    if wrong:
        raise SystemExit("differences beyond their tolerance: " + "; ".join(wrong))


def cases() -> list[Case]:
    """Return the cases with their traces."""
    one, four = long(1, 100_000), long(4, 25_000)
    short = [poisson(seed) for seed in range(TRACES)]
    steady = {"throughput": 0.001, "wait": 0.03}
    times = {"mean": 0.01, "median": 0.01, "90 %": 0.01, "99 %": 0.03}
    return [
        Case(
            "one flow, drop tail of 100",
            [one],
            100,
            0,
            "reno",
            {**steady, "dropped": 0.05, "retransmitted": 0.05},
        ),
        Case(
            "four DCTCP flows, marks from 20", [four], 1000, 20, "dctcp", {**steady, "marked": 0.05}
        ),
        Case(
            "four TCP-ECN flows, marks from 20", [four], 1000, 20, "ecn", {**steady, "marked": 0.15}
        ),
        Case("short flows, queue of 5,000", short, 5000, 0, "reno", times),
        Case(
            "short flows, DCTCP, marks from 20", short, 1000, 20, "dctcp", dict.fromkeys(times, 0.1)
        ),
        Case(
            "short flows, drop tail of 100, no SACK",
            short,
            100,
            0,
            "reno",
            dict.fromkeys(times, 0.1),
            sack=False,
        ),
        Case(
            "short flows, drop tail of 100, SACK", short, 100, 0, "reno", dict.fromkeys(times, 0.2)
        ),
    ]


def long(senders: int, packets: int) -> str:
    """Return flows that begin together."""
    return "".join(f"0 {sender} 0 {packets}\n" for sender in range(1, senders + 1))


def poisson(seed: int) -> str:
    """Return flows of a few sizes at 60 % of the bottleneck's rate, from random senders."""
    draw, now, lines = random.Random(seed), 0.0, []
    each_second = 0.6 * RATE / (8 * PACKET * sum(SIZES) / len(SIZES))
    for _ in range(SHORT):
        now += draw.expovariate(each_second)
        lines.append(f"{now:.9f} {draw.randint(1, SENDERS)} 0 {draw.choice(SIZES)}\n")
    return "".join(lines)


def bindings(folder: Path) -> None:
    """Compile the simulator's Python package into the folder."""
    files = [path for line in simulator.compiled(BINDINGS) for path in line.get("filenames", [])]
    built = [path for path in files if "lib_native." in path]
    shutil.copytree(BINDINGS / "src/qjump_sim", folder / "qjump_sim")
    shutil.copy(built[-1], folder / "qjump_sim/_native.abi3.so")


def by_ns3(program: Path, case: Case, trace: Path) -> Seen:
    """Run a trace in ns-3."""
    socket, ecn = {
        "reno": ("TcpLinuxReno", "Off"),
        "ecn": ("TcpLinuxReno", "On"),
        "dctcp": ("TcpDctcp", "On"),
    }[case.transport]
    command = [
        str(program),
        str(trace),
        str(case.queue),
        str(case.mark),
        socket,
        ecn,
        str(int(case.sack)),
    ]
    *times, last = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.splitlines()
    said = dict(word.split("=") for word in last.split())
    fct = np.array([int(time) for time in times]) / 1e9
    if (fct < 0).any():
        raise SystemExit(f"{case.title}: flows have not finished in ns-3")
    return Seen(
        fct,
        float(said["latency_ns"]) / 1e3 - IDLE_US,
        int(said["dropped"]),
        int(said["marked"]),
        int(said["again"]),
    )


def by_simulator(case: Case, trace: Path) -> Seen:
    """Run a trace in qjump-sim."""
    from qjump_sim import Flows, Scenario, run

    flows = Flows.read(trace)
    network = star(flows)
    outcome = run(Scenario(network, scheme(case, network), flows))
    counters = outcome.counters
    first, again = counters["latency"], counters["latency_again"]
    mean = (first.sum + again.sum) / (first.packets + again.packets)
    return Seen(
        outcome.fct / 1e12,
        mean / 1e6 - IDLE_US,
        sum(counters["full"]),
        counters["marked"],
        counters["retransmitted"],
    )


def star(flows: Flows) -> Tree:
    """Return host 0 at 1 Gb/s and senders at 10 Gb/s around a switch."""
    from qjump_sim import US, Cable, Tree

    hosts = [f"h{number}" for number in range(int(flows.src.max()) + 1)]
    return Tree(
        ["switch"],
        hosts,
        [("switch", host, Cable(RATE if host == "h0" else 10 * RATE, 25 * US)) for host in hosts],
    )


def scheme(case: Case, network: Tree) -> Scheme:
    """Return the settings of bottleneck.cc. ns-3 does not count the packet being sent among those
    that wait, nor, under a queueing discipline, another one in the device."""
    from qjump_sim import MS, Dctcp, DropTail, Ecn, Marking, Reno, Scheme, Transport

    known: dict[str, Congestion] = {"reno": Reno(), "ecn": Ecn(), "dctcp": Dctcp()}
    queue: DropTail | Marking = DropTail(packets=case.queue + 1)
    if case.mark:
        queue = Marking(limit=(case.queue + 2) * PACKET, threshold=(case.mark + 1) * PACKET)
    transport = replace(
        Transport.linux(known[case.transport]),
        min_rto=10 * MS,
        rto_above_rtt=False,
        initial_rto=10 * MS,
        handshake=10 * MS,
        ack_bytes=ACK,
        delayed_ack=None,
        sack=case.sack,
    )
    return replace(
        Scheme.named("tcp", network), routing="per-flow", queue=queue, transport=transport
    )


def quantities(case: Case, seen: Sequence[Seen], packets: int) -> dict[str, float]:
    """Return the compared quantities, of the flows of all traces together."""
    fct = np.concatenate([one.fct for one in seen])
    if len(case.traces) > 1:
        return {
            "mean": fct.mean(),
            "median": np.median(fct),
            "90 %": np.quantile(fct, 0.9),
            "99 %": np.quantile(fct, 0.99),
        }
    values = {"throughput": packets * PACKET * 8 / fct.max() / 1e6, "wait": seen[0].wait}
    return {
        **values,
        "dropped": seen[0].dropped,
        "retransmitted": seen[0].again,
        "marked": seen[0].marked,
    }


def table(ns3: Path, folder: Path) -> tuple[str, list[str]]:
    """Return the table, and the quantities beyond their tolerance."""
    rows = ["| | | ns-3.37 | `qjump-sim` | difference | tolerance |", "|---|---|---|---|---|---|"]
    wrong = []
    for case in cases():
        theirs, ours, packets = [], [], 0
        for number, text in enumerate(case.traces):
            path = folder / f"{number}.txt"
            path.write_text(text)
            packets += sum(int(line.split()[3]) for line in text.splitlines())
            theirs.append(by_ns3(ns3, case, path))
            ours.append(by_simulator(case, path))
        there, here = quantities(case, theirs, packets), quantities(case, ours, packets)
        for number, (name, tolerance) in enumerate(case.tolerances.items()):
            off = here[name] / there[name] - 1
            found = f"{shown(name, there[name])} | {shown(name, here[name])}"
            title = "" if number else case.title
            rows.append(f"| {title} | {name} | {found} | {off:+.2%} | {tolerance:.1%} |")
            if abs(off) > tolerance:
                wrong.append(f"{case.title}, {name}")
    return "\n".join(rows), wrong


def shown(name: str, value: float) -> str:
    """Format a value with its unit."""
    if name == "throughput":
        return f"{value:.2f} Mb/s"
    if name == "wait":
        return f"{value:.2f} us"
    return (
        f"{value:.0f}"
        if name in ("dropped", "retransmitted", "marked")
        else f"{value * 1e3:.3f} ms"
    )


if __name__ == "__main__":
    main()
