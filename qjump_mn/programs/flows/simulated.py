"""flows in the simulator: it draws them itself, or gets their list; there is no application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import qjump_sim
from qjump_mn.programs.flows import hosts
from qjump_mn.programs.flows.program import LISTED, FlowsPlan
from qjump_mn.programs.simulated_api import Rows, Simulated, Stage


def _rows(
    plan: FlowsPlan, stage: Stage, results: Sequence[Any], outcome: qjump_sim.Outcome
) -> Rows:
    names = sorted(stage.numbers, key=lambda name: stage.numbers[name])
    columns = (
        column.tolist()
        for column in (outcome.start, outcome.finish, outcome.src, outcome.dst, outcome.packets)
    )
    for start, finish, source, destination, packets in zip(*columns, strict=True):
        yield names[source], names[destination], packets, start, None if finish < 0 else finish


def _flows(
    plan: FlowsPlan, stage: Stage
) -> qjump_sim.Poisson | qjump_sim.Published | qjump_sim.Flows:
    if plan.arrivals == LISTED:
        numbers = [stage.numbers[host] for host in stage.trial.network.hosts]
        flows = hosts.draw(**plan.drawing(stage.trial))
        return qjump_sim.Flows(
            [flow.start_ns * qjump_sim.NS for flow in flows],
            [numbers[flow.source] for flow in flows],
            [numbers[flow.destination] for flow in flows],
            [flow.packets for flow in flows],
        )
    sizes: Any = plan.sizes or qjump_sim.Sizes(plan.points)
    drawn = qjump_sim.Published if plan.arrivals == "published" else qjump_sim.Poisson
    return drawn(sizes, load=plan.load, count=plan.count)


SIMULATED = Simulated(apps=lambda plan, stage: [], rows=_rows, flows=_flows)
