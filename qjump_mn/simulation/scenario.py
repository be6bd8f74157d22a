"""A trial as a scenario of the simulator."""

from __future__ import annotations

from typing import Any

import qjump_sim
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import FlowsPlan, MapReducePlan
from qjump_mn.model.topology import Network
from qjump_mn.simulation.scheme import scheme
from qjump_sim import apps


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
    if len(trial.arm.workloads) != 1:
        raise UsageError(f"{where}: {len(trial.arm.workloads)} workloads: give the simulator one")
    (workload,) = trial.arm.workloads
    traffic: dict[str, Any]
    match workload:
        case FlowsPlan():
            sizes: Any = workload.sizes or qjump_sim.Sizes(workload.points)
            traffic = {"flows": qjump_sim.Poisson(sizes, load=workload.load, count=workload.count)}
        case MapReducePlan():
            traffic = {"apps": [_job(workload, len(trial.network.hosts))]}
        case _:
            raise UsageError(f"{where}: the simulator does not know the program of workloads.{workload.name}: use another backend")
    stop = trial.duration_ns * qjump_sim.NS or None
    return qjump_sim.Scenario(topology=made, scheme=scheme(trial.arm, made), seed=trial.seed, stop=stop, **traffic)


def _job(plan: MapReducePlan, hosts: int) -> apps.MapReduce:
    """On all hosts; level 0 of the simulator is the most urgent, 7 of 802.1Q is."""
    return apps.MapReduce(
        nodes=range(hosts),
        maps=plan.maps,
        map_bytes=plan.map_bytes,
        reducers=plan.reducers,
        map_time=apps.Exponential(plan.map_mean_ns * qjump_sim.NS) if plan.map_mean_ns else 0,
        reduce_time=apps.Exponential(plan.reduce_mean_ns * qjump_sim.NS) if plan.reduce_mean_ns else 0,
        map_slots=plan.map_slots,
        parallel_copies=plan.parallel_copies,
        level=7 - plan.level,
    )
