"""Translate a trial to a scenario of the simulator, and its outcome to the tables of its
workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import qjump_sim
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.workload import WorkloadPlan
from qjump_mn.programs import registry
from qjump_mn.programs.simulated_api import Rows, Simulated, Stage
from qjump_mn.simulation.scheme import cable, quantiles, scheme
from qjump_sim.watch import End


def topology(network: Network) -> qjump_sim.network.Topology:
    """Return the network with its hosts' jitter and failing cables, as the simulator's type."""
    fabric = network.fabric
    drawn = [(host, quantiles(points)) for host, points in network.jittery]
    if fabric is None:
        cables = [
            (*ends, cable(link)) for ends, link in zip(network.joined, network.links(), strict=True)
        ]
        if not network.cables and not network.failures:
            return qjump_sim.Tree(network.switches, network.hosts, cables, drawn)
        failures = [
            qjump_sim.Failure(
                *failure.between,
                failure.down_ns * qjump_sim.NS,
                None if failure.up_ns is None else failure.up_ns * qjump_sim.NS,
            )
            for failure in network.failures
        ]
        return qjump_sim.Graph(network.switches, network.hosts, cables, drawn, failures)
    numbered = {host: number for number, host in enumerate(network.hosts)}
    return qjump_sim.LeafSpine(
        fabric.racks,
        fabric.hosts_per_rack,
        fabric.spines,
        cable(network.link),
        cable(network.trunk),
        [(numbered[host], by) for host, by in drawn],
    )


def numbers(network: Network) -> Mapping[str, int]:
    """Return the simulator's number of each host."""
    simulated = topology(network)
    return (
        {name: number for number, name in enumerate(network.hosts)}
        if isinstance(simulated, qjump_sim.LeafSpine)
        else simulated.numbers()
    )


def node_names(network: Network) -> Mapping[End, str]:
    """Return the name of each node of the simulator."""
    switches = network.switches if network.fabric else sorted(network.switches)
    names: dict[End, str] = {("host", number): host for host, number in numbers(network).items()}
    names.update({("switch", number): name for number, name in enumerate(switches)})
    return names


class Staged:
    """A trial that is ready to be simulated: its ``scenario``, and the methods to read its
    outcome."""

    def __init__(self, trial: Trial) -> None:
        """Raise :class:`UsageError`, with the location, for settings that the simulator does not
        have.
        """
        where = f"arms.{trial.arm.name}"
        network = topology(trial.network)
        simulated_scheme = scheme(trial.arm, network)
        assert isinstance(simulated_scheme, qjump_sim.Scheme)
        self.trial = trial
        self._stage = Stage.of(trial, numbers(trial.network), simulated_scheme.transport.data_bytes)
        self._parts = [(plan, _program(plan, where)) for plan in trial.arm.workloads]
        try:
            self._apps = [part.apps(plan, self._stage) for plan, part in self._parts]
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from None
        drawn = [part.flows(plan, self._stage) for plan, part in self._parts if part.flows]
        if len(drawn) > 1:
            raise UsageError(
                f"{where}: the simulator needs a single workload of program flows (got "
                f"{len(drawn)})"
            )
        traffic: dict[str, Any] = {"flows": drawn[0]} if drawn else {}
        self.scenario = qjump_sim.Scenario(
            topology=network,
            scheme=simulated_scheme,
            seed=trial.seed,
            # Workloads with a duration send nothing new after it. The run waits for their last
            # answers, and for all flows.
            apps=[app for workload_apps in self._apps for app in workload_apps],
            **traffic,
        )

    def window_s(self, outcome: qjump_sim.Outcome) -> tuple[float, float]:
        """Return begin and end of the measurement, in s after the start. Without a duration, it
        ends with the last event.
        """
        lasting = self._stage.trial.duration_ns
        return self._stage.began / qjump_sim.S, (
            self._stage.ended if lasting else outcome.end
        ) / qjump_sim.S

    @property
    def end(self) -> int | None:
        """The end of the measurement in ps; None if it ends with the last event."""
        return self._stage.ended if self._stage.trial.duration_ns else None

    @property
    def began_ns(self) -> int:
        """The begin of the measurement in ns."""
        return self._stage.began // qjump_sim.NS

    def tables(self, outcome: qjump_sim.Outcome) -> Iterator[tuple[WorkloadPlan, Rows]]:
        """Yield each workload with the rows of its table."""
        results = iter(outcome.apps)
        for (plan, part), workload_apps in zip(self._parts, self._apps, strict=True):
            yield (
                plan,
                part.rows(plan, self._stage, [next(results) for _ in workload_apps], outcome),
            )


def _program(plan: WorkloadPlan, where: str) -> Simulated:
    """Return the simulated program of a workload. Raise :class:`UsageError` that begins with
    ``where`` if the simulator does not have it.
    """
    part = registry.simulated(plan)
    if part is None:
        raise UsageError(
            f"{where}: the simulator does not know the program of workloads.{plan.name}: use "
            "another backend"
        )
    return part
