"""flows: transfers with a distribution of sizes between all hosts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.errors import LostError, UsageError
from qjump_mn.executor.steps import MACHINE
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.programs import simulated_text
from qjump_mn.programs.base import Flow, Program, Read, WorkloadPlan, WorkloadSpec, bounded
from qjump_mn.programs.flows import hosts
from qjump_mn.programs.launch import Launch

REGIONS = ("short", "medium", "long", "all")
"""Flows of at most 10 kB on the wire, of at most 10 MB, larger ones, as in the published script;
and all."""


MEAN_PACKETS = {"search": 1138, "mining": 5117}
"""Mean packets of a flow in the published distributions."""


LEVELS_PACKETS = (6, 13, 19, 33, 53, 133, 667)
"""Packets of the largest flows of levels 7 to 1, as in the published scripts; larger ones have
level 0."""


LISTED = "listed"

ARRIVALS = {
    "poisson": "Poisson arrivals",
    "published": "arrivals as in the published scripts",
    LISTED: "Poisson arrivals, listed beforehand",
}
"""How the report describes each kind of arrivals."""

SOURCE = Path(hosts.__file__).read_text(encoding="utf-8")

LATEST_S = 60.0
"""How long after the last arrival flows may end."""


class FlowsPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="flows"):
    """``count`` flows. Each ordered pair of hosts is a Poisson process; data take the share
    ``load`` of the hosts' links.

    With ``arrivals`` "published", the generators are those of the scripts behind NSDI'15 Figure 9,
    with their seeds: flows to one host start nearly together, with nearly equal sizes. ``sizes`` is
    a published distribution; otherwise ``points`` give, for numbers of packets, the share of flows
    that are not larger, linear in between.

    With ``arrivals`` "listed", the list is drawn here, and guest and simulator run the same flows;
    the others are drawn by the simulator, and only it can run them.
    """

    MEASURES: ClassVar = {
        **{
            f"{region}_{kind}": f"{region}, {kind}"
            for region in REGIONS
            for kind in ("mean", "p99")
        },
        "flows": "flows",
        "unfinished": "unfinished",
        "utilisation": "utilisation of the fullest level",
    }
    LEVELS_BY_SIZE: ClassVar = True

    sizes: str
    points: tuple[tuple[int, float], ...]
    load: float
    count: int
    arrivals: str

    @property
    def ONLY_SIMULATED(self) -> bool:
        return self.arrivals != LISTED

    def check_real_time(self, where: str) -> None:
        raise UsageError(
            f"{where}: one process sends the flows of all hosts, which needs a clock that stands "
            "still meanwhile: use --backend guest or simulator"
        )

    def packets(self, trial: Trial) -> float:
        return self.count * (MEAN_PACKETS.get(self.sizes) or _mean(self.points))

    def drawing(self, trial: Trial) -> dict[str, Any]:
        """The arguments with which :func:`hosts.draw` draws a trial's list."""
        network = trial.network
        packet_bits = theory.wire_bytes(network.mtu_bytes) * 8
        each_bps = self.load * network.link.rate_bps
        return {
            "seed": f"flows {trial.seed}",
            "count": self.count,
            "ns_per_packet": packet_bits * theory.NS_PER_S / each_bps / len(network.hosts),
            "hosts": len(network.hosts),
            "points": self.points,
        }

    def describe(self) -> str:
        published = {"search": "sizes of web search", "mining": "sizes of data mining"}
        sizes = published.get(self.sizes, f"sizes by {len(self.points)} points")
        return (
            f"{self.count} flows between all hosts, {sizes}, {ARRIVALS[self.arrivals]}; times are "
            "relative to an empty network"
        )


def _mean(points: tuple[tuple[int, float], ...]) -> float:
    return sum(
        (high - low) * (small + large) / 2
        for (small, low), (large, high) in itertools.pairwise(points)
    )


class Flows(WorkloadSpec, frozen=True, forbid_unknown_fields=True, tag="flows", kw_only=True):
    """Transfers between all hosts. ``sizes`` is "search" or "mining", as in pFabric and QJump, or a
    list of [packets, share of flows that are not larger].

    ``arrivals`` is "poisson"; or "published": as in the scripts behind the paper's Figure 9, where
    flows to one host start nearly together, with nearly equal sizes; or "listed": Poisson arrivals
    that the guest can run too.
    """

    LASTING: ClassVar = False

    sizes: str | list[tuple[int, float]]
    load: float
    count: int
    arrivals: str = "poisson"

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        return []

    def check(self, where: str, network: Network) -> None:
        bounded(f"{where}.load", self.load, 0.001, 1, "0.001 to 1")
        bounded(f"{where}.count", self.count, 1, 10**8, "1 to 100000000")
        if isinstance(self.sizes, str) and self.sizes not in ("search", "mining"):
            raise UsageError(
                f"{where}.sizes: there is no distribution {self.sizes!r}: use 'search', 'mining', "
                "or a list of [packets, share]"
            )
        if self.arrivals not in ARRIVALS:
            raise UsageError(
                f"{where}.arrivals: there are no arrivals {self.arrivals!r}: use "
                f"{' or '.join(map(repr, ARRIVALS))}"
            )
        if self.arrivals == LISTED and isinstance(self.sizes, str):
            raise UsageError(
                f"{where}.sizes: listed arrivals need a list of [packets, share] (got "
                f"{self.sizes!r})"
            )

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> FlowsPlan:
        sizes, points = (self.sizes, ()) if isinstance(self.sizes, str) else ("", tuple(self.sizes))
        return FlowsPlan(
            **common,
            sizes=sizes,
            points=points,
            load=self.load,
            count=self.count,
            arrivals=self.arrivals,
        )


COLUMNS = {
    "source": "string",
    "destination": "string",
    "packets": "int64",
    "start_ps": "int64",
    "finish_ps": "int64",
}
"""A row for each flow. ``finish_ps`` is when the sender got the last acknowledgement; null if it
did not."""


def launches(plan: FlowsPlan, trial: Trial) -> Iterator[Launch]:
    """One process for the flows of all hosts, if they are listed."""
    if plan.arrivals != LISTED:
        return
    drawing, network = plan.drawing(trial), trial.network
    task = {
        "draw": drawing,
        "hosts": network.hosts,
        "addresses": [network.addresses[host] for host in network.hosts],
        "port": plan.port,
        "payload_bytes": network.mtu_bytes - theory.TCP_HEADERS_BYTES,
        "largest": LEVELS_PACKETS if trial.arm.uses_levels else (),
        "header": tuple(COLUMNS),
    }
    yield Launch(
        "probe",
        MACHINE,
        ("python3", "-c", SOURCE, json.dumps(task)),
        simulated_text.output_name(plan.name),
        longest_s=plan.packets(trial) * drawing["ns_per_packet"] / theory.NS_PER_S + LATEST_S,
    )


def columns(plan: FlowsPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every flow, in the order of start; raise :class:`LostError` if some are missing, or are not
    those of the trial's list."""
    rows = simulated_text.columns(
        read(simulated_text.output_name(plan.name)), COLUMNS, rows=plan.count
    )
    if plan.arrivals == LISTED:
        _check_list(rows, plan, trial)
    return rows


def _check_list(rows: dict[str, Sequence[Any]], plan: FlowsPlan, trial: Trial) -> None:
    flows, names = hosts.draw(**plan.drawing(trial)), trial.network.hosts
    began_ps = rows["start_ps"][0] - 1000 * flows[0].start_ns
    listed = (
        (names[source], names[destination], packets, began_ps + 1000 * start_ns)
        for start_ns, source, destination, packets in flows
    )
    if list(zip(*(rows[name] for name in list(COLUMNS)[:4]), strict=True)) != list(listed):
        raise LostError("its flows are not those of the trial's list")


PROGRAM = Program(
    spec=Flows,
    plan=FlowsPlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.flows.measures:MEASURES",
    simulated="qjump_mn.programs.flows.simulated:SIMULATED",
)
