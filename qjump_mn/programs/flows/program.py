"""flows: transfers with a distribution of sizes between all hosts, in the simulator only."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.programs import simulated_text
from qjump_mn.programs.base import Flow, Program, Read, WorkloadPlan, WorkloadSpec, bounded
from qjump_mn.programs.launch import Launch

REGIONS = ("short", "medium", "long", "all")
"""Flows of at most 10 kB on the wire, of at most 10 MB, larger ones, as in the published script;
and all."""


MEAN_PACKETS = {"search": 1138, "mining": 5117}
"""Mean packets of a flow in the published distributions."""


LEVELS_PACKETS = (6, 13, 19, 33, 53, 133, 667)
"""Packets of the largest flows of levels 7 to 1, as in the published scripts; larger ones have
level 0."""


ARRIVALS = {"poisson": "Poisson arrivals", "published": "arrivals as in the published scripts"}
"""How the report describes each kind of arrivals."""


class FlowsPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="flows"):
    """``count`` flows. Each ordered pair of hosts is a Poisson process; data take the share
    ``load`` of the hosts' links.

    With ``arrivals`` "published", the generators are those of the scripts behind NSDI'15 Figure 9,
    with their seeds: flows to one host start nearly together, with nearly equal sizes. ``sizes`` is
    a published distribution; otherwise ``points`` give, for numbers of packets, the share of flows
    that are not larger, linear in between.
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
    ONLY_SIMULATED: ClassVar = True
    LEVELS_BY_SIZE: ClassVar = True

    sizes: str
    points: tuple[tuple[int, float], ...]
    load: float
    count: int
    arrivals: str

    def packets(self, trial: Trial) -> float:
        return self.count * (MEAN_PACKETS.get(self.sizes) or _mean(self.points))

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

    ``arrivals`` is "poisson", or "published": as in the scripts behind the paper's Figure 9, where
    flows to one host start nearly together, with nearly equal sizes.
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
    """None: this program runs only in the simulator."""
    return iter(())


def columns(plan: FlowsPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every flow, in the order of start; raise :class:`LostError` if some are missing."""
    return simulated_text.columns(
        read(simulated_text.output_name(plan.name)), COLUMNS, rows=plan.count
    )


PROGRAM = Program(
    spec=Flows,
    plan=FlowsPlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.flows.measures:MEASURES",
    simulated="qjump_mn.programs.flows.simulated:SIMULATED",
)
