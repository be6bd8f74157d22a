"""A packet-level simulator of datacentre networks: TCP, DCTCP, pFabric and QJump (Grosvenor et al., NSDI'15).

A `Scenario` is a network, a scheme, traffic and a seed; `run` yields an `Outcome`:

    from qjump_sim import FIG9, Poisson, Scenario, run

    outcome = run(Scenario(FIG9, "dctcp", Poisson("search", load=0.6, count=1000)))
    print(outcome.fct.mean() / 1e6, "us;", outcome.regions(FIG9).short.p99, "times the best")

`qjump_sim.apps` has traffic that reacts to the network: pings, endless flows, requests, barriers, PTP, MapReduce, collectives.

Times are whole picoseconds (`us(5)` is 5 us), rates bit/s, sizes bytes (`Packets(9)` are 9 packets of `Transport.data_bytes`). The same scenario yields the same arrays on every
machine. What cannot be simulated is a ValueError: one sentence that begins with the place.
"""

from __future__ import annotations

from qjump_sim import _native
from qjump_sim.law import Ack, Custom, Law
from qjump_sim.network import Cable, Failure, Graph, LeafSpine, Loss, Quantiles, Tree
from qjump_sim.outcome import (
    ByKind,
    Counters,
    Latency,
    Outcome,
    Port,
    Region,
    Regions,
    SourceResult,
)
from qjump_sim.queues import (
    QUEUES,
    CoDel,
    DropTail,
    DualPi2,
    LevelRed,
    Marking,
    Pause,
    PFabric,
    Pfc,
    Pie,
    Priority,
    Profile,
    Queue,
    Red,
    RoundRobin,
    SharedBuffer,
    Threshold,
    TimeAware,
    Trim,
    Wfq,
)
from qjump_sim.scenario import Scenario, run
from qjump_sim.scheme import (
    LAWS,
    Aequitas,
    Bbr,
    Bbr3,
    Congestion,
    Cubic,
    Dcqcn,
    Dctcp,
    Ecn,
    Eqds,
    Flowlets,
    Homa,
    Hpcc,
    Ndp,
    Nscc,
    PerFlow,
    PerHost,
    PowerTcp,
    Reno,
    Scheme,
    Swift,
    Transport,
)
from qjump_sim.trace import Trace
from qjump_sim.traffic import Flows, Poisson, Published, Sizes, Source
from qjump_sim.units import MS, NS, UNITS, US, Bytes, Limit, Packets, S, Size, Time, ms, ns, us
from qjump_sim.watch import KINDS, FlowCounts, Progress, Series, Watch, progress_line, show_progress

FIG9: LeafSpine = _native.fig9()
"""QJump's Figure 9: 9 racks of 16 hosts at 10 Gb/s, 4 spines at 40 Gb/s; 2.7 us of delay to and from a host, 0.2 us between switches."""

__all__ = [
    "FIG9",
    "KINDS",
    "LAWS",
    "MS",
    "NS",
    "QUEUES",
    "UNITS",
    "US",
    "Ack",
    "Aequitas",
    "Bbr",
    "Bbr3",
    "ByKind",
    "Bytes",
    "Cable",
    "CoDel",
    "Congestion",
    "Counters",
    "Cubic",
    "Custom",
    "Dcqcn",
    "Dctcp",
    "DropTail",
    "DualPi2",
    "Ecn",
    "Eqds",
    "Failure",
    "FlowCounts",
    "Flowlets",
    "Flows",
    "Graph",
    "Homa",
    "Hpcc",
    "Latency",
    "Law",
    "LeafSpine",
    "LevelRed",
    "Limit",
    "Loss",
    "Marking",
    "Ndp",
    "Nscc",
    "Outcome",
    "PFabric",
    "Packets",
    "Pause",
    "PerFlow",
    "PerHost",
    "Pfc",
    "Pie",
    "Poisson",
    "Port",
    "PowerTcp",
    "Priority",
    "Profile",
    "Progress",
    "Published",
    "Quantiles",
    "Queue",
    "Red",
    "Region",
    "Regions",
    "Reno",
    "RoundRobin",
    "S",
    "Scenario",
    "Scheme",
    "Series",
    "SharedBuffer",
    "Size",
    "Sizes",
    "Source",
    "SourceResult",
    "Swift",
    "Threshold",
    "Time",
    "TimeAware",
    "Trace",
    "Transport",
    "Tree",
    "Trim",
    "Watch",
    "Wfq",
    "ms",
    "ns",
    "progress_line",
    "run",
    "show_progress",
    "us",
]  # fmt: skip
