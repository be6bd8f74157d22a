"""Compare the simulator's speed and memory with those of ns-3.37 and ns-2.35, in turn on one trace.
Print a Markdown table.

    python bench/simulator.py [--write]

`--write` replaces the table in docs/simulator-validation.md. Exit with 1 if DCTCP is less than 15
times as fast as ns-2. A packet-hop is one packet that has crossed one link. CPU seconds are the
whole program's, user and system, with reading the trace and building the network; the least of
three rounds. Needs `cargo`, `ns` (`apt install ns2`), `g++` and ns-3 (`apt install libns3-dev`,
3.37), or exits with 3.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import machine, marks

ROOT = Path(__file__).parent.parent
DOCUMENT, SCRIPT = ROOT / "docs/simulator-validation.md", ROOT / "bench/ns2/leafspine.tcl"
ROUNDS, FLOWS, LOAD, SEED = 3, 2000, 0.6, 1
HOSTS, RACK, RATE = 144, 16, 10e9
DATA, PAYLOAD, MEAN = 1500, 1460, 1_661_480
"""Bytes of a data packet on the wire, of its data, and of the mean web-search flow in QJump's
scripts."""
SIZES = (
    (6, 0),
    (6, 0.15),
    (13, 0.2),
    (19, 0.3),
    (33, 0.4),
    (53, 0.53),
    (133, 0.6),
    (667, 0.7),
    (1333, 0.8),
    (3333, 0.9),
    (6667, 0.97),
    (20000, 1),
)
"""Web search: packets, and the share of flows that are not larger."""
SCHEMES = {
    "dctcp": "`qjump-sim`, DCTCP",
    "tcp": "`qjump-sim`, TCP",
    "pfabric": "`qjump-sim`, pFabric",
    "qjump-script": "`qjump-sim`, priorities and QJump's limiters by flow",
    "qjump-paper": "`qjump-sim`, priorities and QJump's limiters by host",
}
LEAST = 15
"""The least speed of DCTCP, in times ns-2's."""
NS2, NS3 = "ns-2.35, TCP (Sack1)", "ns-3.37, TCP (LinuxReno)"
NS3_SOURCE = ROOT / "bench/ns3/leafspine.cc"
NS3_LIBRARIES = (
    *("applications", "nix-vector-routing", "point-to-point", "internet", "traffic-control"),
    *("network", "core"),
)

Flow = tuple[float, int, int, int]
"""Start in seconds, source, destination, packets."""
Run = tuple[dict[str, str], float]
"""A program's output by name, and its CPU seconds."""


def main() -> None:
    """Measure, print and, if asked, write."""
    simulator, ns2 = program(), needed("ns", "ns-2 is not installed: apt install ns2")
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "flows.txt")
        flows = trace(FLOWS, LOAD, SEED)
        path.write_text(
            "".join(
                f"{start:.9f} {source} {destination} {packets}\n"
                for start, source, destination, packets in flows
            )
        )
        commands = {
            title: [simulator, "bench-flows", str(path), "--scheme", name]
            for name, title in SCHEMES.items()
        }
        peers = {
            NS3: [str(ns3_program(NS3_SOURCE, NS3_LIBRARIES, Path(scratch))), str(path)],
            NS2: [ns2, str(SCRIPT), str(path)],
        }
        commands |= {title: [*command, "time"] for title, command in peers.items()}
        runs: dict[str, list[Run]] = {title: [] for title in commands}
        for _ in range(ROUNDS):
            for title, command in commands.items():
                runs[title].append(complete(command))
        counted = {title: complete([*command, "count"])[0] for title, command in peers.items()}
    text = table(runs, counted, flows)
    print(text)
    if sys.argv[1:] == ["--write"]:
        marks.write(DOCUMENT, "simulator", text)
    times = times_ns2(runs, counted)
    if times < LEAST:
        raise SystemExit(
            f"DCTCP is {times:.1f} times as fast as ns-2, and was 19 times: below {LEAST} "
            "something has cost it its speed"
        )


def times_ns2(runs: dict[str, list[Run]], counted: dict[str, dict[str, str]]) -> float:
    """Return DCTCP's packet-hops per CPU second over ns-2's, each in its least time."""
    (said, _), *_ = taken = runs[SCHEMES["dctcp"]]
    here, there = (min(cpu for _, cpu in of) for of in (taken, runs[NS2]))
    return int(said["hops"]) / here / (int(counted[NS2]["hops"]) / there)


def trace(count: int, load: float, seed: int) -> list[Flow]:
    """Return flows between random hosts, with sizes as in web search, all one Poisson process."""
    draw = random.Random(seed)
    each_second = HOSTS * RATE * load / (MEAN * 8 * DATA / PAYLOAD)
    flows, now = [], 0.0
    for _ in range(count):
        now += draw.expovariate(each_second)
        source, destination = draw.sample(range(HOSTS), 2)
        flows.append((now, source, destination, size(draw.random())))
    return flows


def size(share: float) -> int:
    """Return the packets of a flow at a share of the distribution: linear between the points,
    rounded up."""
    for (smaller, below), (larger, above) in itertools.pairwise(SIZES):
        if share <= above and above > below:
            return math.ceil(smaller + (larger - smaller) * (share - below) / (above - below))
    raise ValueError(f"{share} is not from 0 to 1")


def useful(flows: Sequence[Flow]) -> int:
    """Return the packet-hops that every transport needs: each packet and its ACK, over two links in
    a rack and four between racks."""
    return sum(
        2 * packets * (2 if source // RACK == destination // RACK else 4)
        for _, source, destination, packets in flows
    )


def needed(name: str, sentence: str) -> str:
    """Return a program's path; without it print the sentence and exit with 3."""
    path = shutil.which(name)
    if path is None:
        print(sentence, file=sys.stderr)
        raise SystemExit(3)
    return path


def program() -> str:
    """Compile the simulator if needed, and return its path."""
    built: list[str] = [
        path for line in compiled(ROOT / "simulator") if (path := line.get("executable"))
    ]
    return built[-1]


def compiled(crate: Path) -> list[dict[str, Any]]:
    """Compile a crate, and return cargo's message for each of its parts."""
    cargo = needed(
        "cargo", "Rust is not installed: the simulator is compiled with cargo 1.85 or later"
    )
    manifest = str(crate / "Cargo.toml")
    command = [cargo, "build", "--release", "--message-format=json", "--manifest-path", manifest]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in said.splitlines()]


def ns3_program(source: Path, libraries: Sequence[str], folder: Path) -> Path:
    """Compile a program for ns-3 into the folder."""
    compiler = needed("g++", "g++ is not installed: apt install g++")
    has_headers = [compiler, "-E", "-x", "c++", "-include", "ns3/core-module.h", "/dev/null"]
    if subprocess.run(has_headers, capture_output=True).returncode:
        print("ns-3 is not installed: apt install libns3-dev", file=sys.stderr)
        raise SystemExit(3)
    program = folder / source.stem
    command = [compiler, "-O2", "-std=c++17", "-o", str(program), str(source)]
    subprocess.run([*command, *(f"-lns3-{name}" for name in libraries)], check=True)
    return program


def run(command: Sequence[str]) -> Run:
    """Run a program to its end, and parse the name=value words that it prints."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return dict(word.split("=", 1) for word in said.split()), used.ru_utime + used.ru_stime


def complete(command: Sequence[str]) -> Run:
    """Run a program, and check that all flows have finished."""
    values, cpu = run(command)
    if values["finished"] != f"{FLOWS}/{FLOWS}":
        raise SystemExit(f"{' '.join(command)}: only {values['finished']} flows have finished")
    return values, cpu


def events_a_hop(said: dict[str, str]) -> str:
    """Return the events per hop, or a dash if the program does not count them."""
    return f"{int(said['events']) / int(said['hops']):.2f}" if "events" in said else "–"


def table(
    runs: dict[str, list[Run]], counted: dict[str, dict[str, str]], flows: Sequence[Flow]
) -> str:
    """Return the table with the least CPU time of each, and all times; ns-2's and ns-3's
    packet-hops come from the runs that counted."""
    rows = []
    ns2 = int(counted[NS2]["hops"]) / min(cpu for _, cpu in runs[NS2])
    for title, taken in runs.items():
        # A small program's ru_maxrss is what this process had when it made it, so each says itself
        # what it had at most.
        said = counted.get(title, taken[0][0])
        memory = max(int(values["max_rss_MB"]) for values, _ in taken)
        hops, cpu = int(said["hops"]), [cpu for _, cpu in taken]
        rate = hops / min(cpu)
        rows.append(
            f"| {title} | {hops / 1e6:.2f} M | {events_a_hop(said)} | {said['dropped']} | "
            f"{min(cpu):.2f} s ({', '.join(f'{s:.2f}' for s in cpu)}) | {rate / 1e6:.1f} M | "
            f"{rate / ns2:.1f} | {memory} MB |"
        )
    return "\n".join(
        [
            f"{machine.description()}; {FLOWS:,} web-search flows at load {LOAD}, "
            f"{useful(flows) / 1e6:.2f} M packet-hops without retransmissions:",
            "",
            "| | packet-hops | events per hop | dropped | CPU, least (all) | packet-hops per CPU "
            "second | x ns-2 | memory |",
            "|---|---|---|---|---|---|---|---|",
            *rows,
        ]
    )


if __name__ == "__main__":
    main()
