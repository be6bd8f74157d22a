"""flows: transfers of a distribution of sizes between all hosts, as a Poisson process; the simulator's."""

from __future__ import annotations

from typing import Any, ClassVar

from qjump_mn.errors import UsageError
from qjump_mn.model.programs.base import Flow, WorkloadPlan, WorkloadSpec, bounded
from qjump_mn.model.topology import Network

REGIONS = ("short", "medium", "long", "all")
"""Flows of at most 10 kB on the wire, of at most 10 MB, larger ones, as the published script has it; and all."""


class FlowsPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="flows"):
    """``count`` flows; each ordered pair of hosts is a Poisson process, such that data take ``load`` of the hosts' links.

    ``sizes`` is a published distribution; or else ``points`` are packets and the share of flows that are not larger, linear in between.
    """

    MEASURES: ClassVar = {
        **{f"{region}_{kind}": f"{region}, {kind}" for region in REGIONS for kind in ("mean", "p99")},
        "flows": "flows",
        "unfinished": "unfinished",
    }
    ONLY_SIMULATED: ClassVar = True

    sizes: str
    points: tuple[tuple[int, float], ...]
    load: float
    count: int

    def describe(self) -> str:
        known = {"search": "sizes of web search", "mining": "sizes of data mining"}
        sizes = known.get(self.sizes, f"sizes by {len(self.points)} points")
        return f"{self.count} flows between all hosts, {sizes}, Poisson arrivals; times are over those in an empty network"


class Flows(WorkloadSpec, frozen=True, forbid_unknown_fields=True, tag="flows", kw_only=True):
    """flows: ``sizes`` is "search" or "mining", as in pFabric and QJump, or a list of [packets, share of flows that are not larger]."""

    LASTING: ClassVar = False

    sizes: str | list[tuple[int, float]]
    load: float
    count: int

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        return []

    def check(self, where: str, network: Network) -> None:
        bounded(f"{where}.load", self.load, 0.001, 1, "0.001 to 1")
        bounded(f"{where}.count", self.count, 1, 10**8, "1 to 100000000")
        if isinstance(self.sizes, str) and self.sizes not in ("search", "mining"):
            raise UsageError(f"{where}.sizes: there is no distribution {self.sizes!r}: use 'search', 'mining' or a list of [packets, share]")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> FlowsPlan:
        sizes, points = (self.sizes, ()) if isinstance(self.sizes, str) else ("", tuple(self.sizes))
        return FlowsPlan(**common, sizes=sizes, points=points, load=self.load, count=self.count)
