"""Compute how much each link was used, from counters or else from the plan's number of flows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from qjump_mn.model import hooks
from qjump_mn.model.plan import ArmPlan
from qjump_mn.results import formatting
from qjump_mn.results.outcome import LinkLoad

Direction = tuple[str, str]

LEAST_WIDTH, MOST_WIDTH = 1.4, 8.0
"""Of a line, in the units of the picture."""

MOST_FLOWS = 20_000
"""Of a workload with more, as of one between all hosts, no link is counted: it uses all of them."""

ON_THE_WAY = 50
"""Up to so many flows of what is measured have their way drawn."""


class Use(NamedTuple):
    """The use of directed links: shares of the time if ``counted``, else flows; ``most`` is the
    maximum."""

    amounts: Mapping[Direction, float]
    counted: bool
    most: float

    def width(self, amount: float) -> float:
        """Return the thickness of a link's line."""
        share = amount if self.counted else amount / self.most if self.most > 1 else 0.0
        return LEAST_WIDTH + (MOST_WIDTH - LEAST_WIDTH) * min(share, 1.0)

    def told(self, amount: float) -> str:
        """What a link's label says of it; "" where that is nothing."""
        if self.counted:
            return f"{amount * 100:.0f} %" if amount >= 0.01 else ""
        return f"{amount:.0f}" if amount > 1 else ""


def use(arm: ArmPlan, loads: Sequence[LinkLoad] | None) -> Use:
    """Return the use of the arm's links; ``loads`` are None if there are no counters."""
    if loads is not None:
        shares: dict[Direction, float] = {}
        for load in loads:
            link = load.source, load.destination
            shares[link] = shares.get(link, 0.0) + load.share
        return Use(shares, counted=True, most=1.0)
    flows: Counter[Direction] = Counter()
    for workload in arm.workloads:
        if hooks.sends(workload) and len(hooks.conversations(workload)) <= MOST_FLOWS:
            for flow in hooks.conversations(workload):
                flows.update(arm.network.path(*flow))
    return Use(dict(flows), counted=False, most=max(flows.values(), default=0))


def on_the_way(arm: ArmPlan, measured: frozenset[str]) -> frozenset[frozenset[str]]:
    """Return the links that measured flows cross, if there are others and these are few."""
    sending = [workload for workload in arm.workloads if hooks.sends(workload)]
    flows = [flow for workload in sending if workload.name in measured for flow in workload.flows]
    if len(sending) < 2 or len(flows) > ON_THE_WAY:
        return frozenset()
    return frozenset(frozenset(link) for flow in flows for link in arm.network.path(*flow))


def busiest(used: Use) -> str:
    """Return the busiest direction of all links in words; "" if none was busy."""
    link = max(used.amounts, key=lambda link: used.amounts[link], default=None)
    told = used.told(used.amounts[link]) if link else ""
    return (
        f"{formatting.flow(link)}, {told}{'' if used.counted else ' flows'}"
        if link and told
        else ""
    )
