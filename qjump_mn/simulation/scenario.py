"""A trial as a scenario of the simulator."""

from __future__ import annotations

from typing import Any

import qjump_sim
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import FlowsPlan
from qjump_mn.model.topology import Network
from qjump_mn.simulation.scheme import scheme


def topology(network: Network) -> qjump_sim.LeafSpine | qjump_sim.Tree:
    """The network; all its links are alike, but for those between a fabric's switches."""
    edge = qjump_sim.Cable(rate=network.rate_bps, delay=network.delay_ns * qjump_sim.NS)
    fabric = network.fabric
    if fabric is None:
        cables = [(above, below, edge) for above, below in network.edges]
        return qjump_sim.Tree(switches=network.switches, hosts=network.hosts, cables=cables)
    uplink = qjump_sim.Cable(rate=fabric.uplink_rate_bps, delay=fabric.uplink_delay_ns * qjump_sim.NS)
    return qjump_sim.LeafSpine(fabric.racks, fabric.hosts_per_rack, fabric.spines, edge, uplink)


def numbered(network: Network) -> list[str]:
    """The names of the hosts in the order of the simulator's numbers."""
    made = topology(network)
    if isinstance(made, qjump_sim.LeafSpine):
        return list(network.hosts)
    numbers = made.numbers()
    return sorted(numbers, key=lambda name: numbers[name])


def scenario(trial: Trial) -> qjump_sim.Scenario:
    """What the simulator is to run; raise :class:`UsageError` with the place of what it has not."""
    where = f"arms.{trial.arm.name}"
    made = topology(trial.network)
    others = [workload.name for workload in trial.arm.workloads if not isinstance(workload, FlowsPlan)]
    if others:
        raise UsageError(f"{where}: the simulator does not know the program of workloads.{others[0]}: use another backend")
    flows = [workload for workload in trial.arm.workloads if isinstance(workload, FlowsPlan)]
    if len(flows) != 1:
        raise UsageError(f"{where}: {len(flows)} workloads of the program flows: give one")
    return qjump_sim.Scenario(
        topology=made,
        scheme=scheme(trial.arm, made),
        flows=_poisson(flows[0]),
        seed=trial.seed,
        stop=trial.duration_ns * qjump_sim.NS or None,
    )


def _poisson(plan: FlowsPlan) -> qjump_sim.Poisson:
    sizes: Any = plan.sizes or qjump_sim.Sizes(plan.points)
    return qjump_sim.Poisson(sizes, load=plan.load, count=plan.count)
