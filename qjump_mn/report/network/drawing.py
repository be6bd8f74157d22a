"""Compose a network's drawing: the picture, its alternative text and the sentences below it."""

from __future__ import annotations

from typing import NamedTuple

from qjump_mn.model import hooks
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.report.network import outline, roles, svg
from qjump_mn.report.network.use import Use, busiest, on_the_way, use
from qjump_mn.results.outcome import Outcome


class Drawn(NamedTuple):
    """A drawing: an SVG file, its alternative text, and the sentences below it."""

    svg: str
    about: str
    caption: tuple[str, ...]


def draw(plan: Plan, outcome: Outcome) -> Drawn:
    """Draw the network of the arm in which most is going on."""
    arm = arm_drawn(plan, outcome)
    used = use(arm, outcome.links.get(arm.name))
    measured = roles.measured(arm, plan.shown.figure.workload)
    parts = roles.roles(arm, measured)
    way = on_the_way(arm, measured)
    drawn = outline.outline(outline.tree(arm.network, parts, used, way), used)
    about = _about(arm, used)
    caption = (
        f"The network in the arm '{arm.label}'.",
        *_built(outcome),
        *_used(used),
        *(["The dashed line is the way of what the figure shows."] if way else []),
        *_others(plan, arm),
    )
    return Drawn(svg.draw(drawn, used, arm.network, about), about, caption)


def arm_drawn(plan: Plan, outcome: Outcome) -> ArmPlan:
    """Return the arm to draw: with the most workloads, then flows; preferably with counters and a
    limiter."""
    return max(
        plan.run.arms,
        key=lambda arm: (
            len(arm.workloads),
            sum(len(workload.flows) for workload in arm.workloads),
            arm.name in outcome.links,
            arm.qjump is not None,
            arm.uses_levels,
        ),
    )


def _about(arm: ArmPlan, used: Use) -> str:
    network = arm.network
    switches = f"{len(network.switches)} switch{'' if len(network.switches) == 1 else 'es'}"
    flows = "; ".join(
        f"{workload.name}: {roles.flows(workload)}"
        for workload in arm.workloads
        if hooks.sends(workload)
    )
    most = f" The busiest link: {found}." if (found := busiest(used)) else ""
    return (
        f"The network {network.topology}: {len(network.hosts)} hosts, {switches}, "
        f"{network.told_links}. {flows}.{most}"
    )


def _built(outcome: Outcome) -> list[str]:
    check = next((check for check in outcome.checks if check.name == "as built"), None)
    if check is None:
        return ["It is drawn from the plan; the simulator built it of that."]
    if check.status == "pass":
        return [f"It is drawn from the plan; {check.text}."]
    return [f"It is drawn from the plan, and what was built is not known to be that: {check.text}."]


def _used(used: Use) -> list[str]:
    if used.counted:
        return [
            "A link is the thicker the longer it was busy while this arm was measured, and says "
            "for which share of the time, in its busier direction, where that is 1 % or more: by "
            "its counters."
        ]
    if used.most > 1:
        return [
            "How busy the links were is not known: nothing was counted. One is the thicker the "
            "more flows of the plan cross it; it says how many in one direction."
        ]
    return ["How busy the links were is not known: nothing was counted."]


def _others(plan: Plan, arm: ArmPlan) -> list[str]:
    hosts = {(other.network.edges, other.network.fabric) for other in plan.run.arms}
    if len(hosts) > 1:
        return ["Other arms have other hosts or switches."]
    if any(len(other.workloads) < len(arm.workloads) for other in plan.run.arms):
        return ["Other arms have the same hosts and switches, and some have fewer workloads."]
    return []
