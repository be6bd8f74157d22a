"""Compare the longest latency of each flow with how long frames waited at the ports on its way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from qjump_mn.errors import LostError
from qjump_mn.links import registry as link_models
from qjump_mn.links.base import Wait
from qjump_mn.model import hooks, ports
from qjump_mn.model.workload import Flow, WorkloadPlan
from qjump_mn.programs import registry
from qjump_mn.programs.facts import Check, TrialTables
from qjump_mn.programs.measures_api import Crossed, hundredth_us
from qjump_mn.results import links
from qjump_mn.results.directory import RunDirectory

CLOCK_US = 1.0
"""What clocks and the texts of programs round, at 10 Mb/s."""

ROUNDED = 0.01
"""By this share of it a latency may be longer: of pings that print three digits."""

READINGS = ("began", "ended", "after")
"""When ports are read: the last packets of the measurement leave a long queue after its end."""

Waits = Mapping[Flow, Mapping[int, Wait]]


class _Port(NamedTuple):
    """A port on the way: what had waited there at a level before the measurement, at its end, and
    when the queues that it left had drained."""

    port: Flow
    level: int
    began: Wait
    ended: Wait
    drained: Wait


class _Longest(NamedTuple):
    """The longest latency of a flow, the wire's part of it, and the ports on its way."""

    flow: str
    way: list[_Port]
    longest_us: float
    wire_us: float


def check(run: RunDirectory, clock: str, data: Sequence[TrialTables]) -> list[Check]:
    """Check that a latency is the wire's time plus waits at ports, and no more than the longest
    waits there.

    If no other frames had that level, one of its own waited the longest. None if no workload's
    latencies are of lone frames.
    """
    problems: list[str] = []
    compared = 0
    for tables in data:
        network = tables.trial.network
        if (
            clock != "virtual"
            or tables.facts.read_ns is None
            or not link_models.of(network.model).exact
        ):
            continue
        try:
            folder = run.trial(tables.trial.name)
            readings = [links.every_wait(network, folder, when) for when in READINGS]
        except LostError as error:
            problems.append(f"{tables.trial.name}: {error}")
            continue
        for workload in tables.trial.arm.workloads:
            if registry.measures(workload).crossed is not None:
                compared += tables.tables[workload.name].num_rows
                found = _of_workload(tables, workload, readings)
                problems += (
                    f"{tables.trial.name}: {workload.name}: {problem}" for problem in found
                )
    if not problems and not compared:
        return []
    good = f"{compared} latencies fit the longest waits that ports have counted"
    return [Check.of("waits", problems, good)]


def _of_workload(
    tables: TrialTables, workload: WorkloadPlan, readings: Sequence[Waits]
) -> Iterator[str]:
    trial, found = tables.trial, registry.measures(workload)
    if found.crossed is None or found.wire is None:
        return
    table = tables.tables[workload.name]
    latencies = found.wire(table, workload, trial)
    if latencies is None:
        return
    flows = np.array(table["flow"].to_pylist())
    for flow, crossed in found.crossed(workload, trial).items():
        mine = flows == flow
        measured_us, least_us = latencies.measured_us[mine], latencies.least_us[mine]
        if not np.any(~np.isnan(measured_us)):
            continue
        way = _way(crossed, readings)
        if way is None:
            continue
        longest = _Longest(flow, way, float(np.nanmax(measured_us)), float(least_us[0]))
        yield from _too_long(tables, longest)
        if not table["latency_us"].null_count:
            yield from _too_short(tables, workload, longest)


def _way(crossed: Crossed, readings: Sequence[Waits]) -> list[_Port] | None:
    """Return the ports on the way; None if one does not count, because a scheme's queue has the
    waits."""
    try:
        return [
            _Port(port, level, *(waits[port][level] for waits in readings))
            for port, level in crossed
        ]
    except KeyError:
        return None


def _too_long(tables: TrialTables, found: _Longest) -> Iterator[str]:
    """Return latencies above the longest waits.

    Not counted: time in a limiter, in what is above the wire, in hosts' drawn times, or at a
    charged sender.
    """
    arm, network = tables.trial.arm, tables.trial.network
    limited = arm.qjump is not None and any(arm.qjump.budget_bytes[one.level] for one in found.way)
    if limited or arm.scheme.vlan or network.draws_times or not network.link.orphan:
        return
    waited_us = sum(one.drained.longest_ns + one.drained.late_ns for one in found.way) / 1e3
    most_us = (found.wire_us + waited_us + hundredth_us(network)) * (1 + ROUNDED)
    if found.longest_us > most_us:
        yield (
            f"{found.flow} took {found.longest_us:.6g} us, where the wire takes "
            f"{found.wire_us:.5g} us and ports counted waits of {waited_us:.6g} us"
        )


def _too_short(tables: TrialTables, workload: WorkloadPlan, found: _Longest) -> Iterator[str]:
    """Return waits counted during the measurement that no latency shows, where no other frames had
    the level."""
    trial = tables.trial
    if len(workload.flows) > 1:
        return
    for one in found.way:
        if one.ended.longest_ns <= one.began.longest_ns or not _alone(tables, workload, one):
            continue
        least_us = found.wire_us + one.ended.longest_ns / 1e3
        if found.longest_us < least_us - CLOCK_US / trial.arm.time_scale:
            yield (
                f"{found.flow} took {found.longest_us:.6g} us at most, and one of its frames "
                f"waited {one.ended.longest_ns / 1e3:.6g} us at {'>'.join(one.port)}: at least "
                f"{least_us:.6g} us"
            )


def _alone(tables: TrialTables, workload: WorkloadPlan, there: _Port) -> bool:
    """Return whether all frames that left the port at that level during the measurement are the
    workload's."""
    network = tables.trial.network
    if not hooks.sends(workload):  # it saw others' frames: perhaps all
        seen: int = tables.tables[workload.name].num_rows
        return there.ended.frames - there.began.frames == seen
    return not any(
        there.level in hooks.levels(other)
        and (
            hooks.is_copied(other)
            or any(there.port in network.path(*pair) for pair, _ in ports.ways(other, network))
        )
        for other in tables.trial.arm.workloads
        if hooks.sends(other) and other.name != workload.name
    )
