"""Resolve the arms of an experiment: each with its network, workloads, scheme and limiter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model import axis, hooks, suggestions, words
from qjump_mn.model.experiment import ArmSpec, ExperimentSpec
from qjump_mn.model.plan import ArmPlan
from qjump_mn.model.scheme import SchemeSpec
from qjump_mn.model.topology import LinkSpec, Network
from qjump_mn.model.units import Size
from qjump_mn.model.workload import Flow, WorkloadPlan, WorkloadSpec
from qjump_mn.resolve import checks, constants, limiter, loading, named_files, perturbation
from qjump_mn.resolve.schemes import resolve_scheme
from qjump_mn.resolve.wiring import resolve_network

FIRST_PORT = 5201
MIN_WINDOW_BYTES = 4096
"""The kernel grants no smaller TCP window."""

Flows = tuple[Flow, ...]

BLIND = (
    "Where a scheme has queues of its own at switch ports there is no tap: a port does not know "
    "when a frame came that its queue hands over."
)


@dataclass(frozen=True)
class Context:
    """What arms are resolved in: an experiment, or one with the settings of a sweep's value.

    ``where`` names the experiment in messages; ``place`` is where its topology and link stand;
    ``resolved`` is their network, if it is known already.
    """

    where: str
    spec: ExperimentSpec
    points: loading.Points
    asked_backend: str = ""
    change: perturbation.Change = perturbation.nothing
    place: str = ""
    resolved: Network | None = None

    @property
    def backend(self) -> str:
        """The backend that runs the arms: the one that was asked for, or the experiment's first."""
        return self.asked_backend or next(iter(self.spec.backends), "")

    @property
    def real_time(self) -> bool | None:
        """Whether code takes time on the clock of the network."""
        return self.backend not in constants.VIRTUAL or None

    def network(self, link: LinkSpec) -> Network:
        """The network with these links."""
        topology = self.spec.topology
        changed, link = self.change(loading.topology(topology), link)
        return resolve_network(topology, changed, self.place or self.where, link)

    @cached_property
    def own_network(self) -> Network:
        """The network with the experiment's own links."""
        return self.resolved or self.network(self.spec.link)

    @cached_property
    def flows(self) -> dict[str, Flows]:
        """The flows of each workload."""
        return {
            key: _flows(f"{self.where}: workloads.{key}", workload, self.own_network)
            for key, workload in self.spec.workloads.items()
        }


class Resolved(NamedTuple):
    """An arm, and what a reader should know of it."""

    arm: ArmPlan
    remarks: tuple[str, ...]


def resolve(context: Context) -> Iterator[Resolved]:
    """Every arm; a series is one for each value of its sweep. Raises :class:`UsageError`."""
    _ = context.flows  # also of workloads that no arm has
    for key, arm in context.spec.arms.items():
        yield from (
            [_arm(context, key, arm)]
            if arm.sweep is None
            else _series(context, key, arm, arm.sweep)
        )


def _series(context: Context, key: str, arm: ArmSpec, name: str) -> Iterator[Resolved]:
    """The arms of a series, of which those with ``points`` have names."""
    where, spec = context.where, context.spec
    suggestions.require(f"{where}: arms.{key}: there is no sweep", name, spec.sweeps)
    sweep = spec.sweeps[name]
    place = f"{where}: sweeps.{name}"
    named = context.points.get(name, {})
    if not named and not sweep.sets:
        raise UsageError(f'{place}: `sets` is empty: name a setting, as in sets = ["link.buffer"]')
    xs = axis.places(place, sweep.values, list(named))
    for value, x in zip(sweep.values, xs, strict=True):
        changes = named[str(value)] if named else dict.fromkeys(sweep.sets, value)
        changed = loading.varied(spec, changes, f"{place}.points.{value}" if named else place)
        same = (changed.topology, changed.link) == (spec.topology, spec.link)
        arm_name = f"{key}_{re.sub(r'[^A-Za-z0-9]', '_', str(value))}"
        labelled = msgspec.structs.replace(arm, label=f"{arm.label}, {value}")
        here = replace(
            context, spec=changed, place=place, resolved=context.own_network if same else None
        )
        resolved = _arm(here, arm_name, labelled)
        yield resolved._replace(arm=msgspec.structs.replace(resolved.arm, series=key, x=x))


def _flows(where: str, workload: WorkloadSpec, network: Network) -> Flows:
    """The flows of a workload, of which everything else is checked too."""
    limiter.level(f"{where}.level", str(workload.level))
    pairs = [
        (place, flow)
        for place, (source, destination) in workload.pairs(where)
        for flow in _expanded(source, destination, network)
    ]
    hosts = dict.fromkeys(network.hosts)  # there may be a million flows
    for place, flow in pairs:
        for host in flow:
            suggestions.require(f"{place}: topology {network.topology!r} has no host", host, hosts)
    workload.check(where, network)
    return tuple(flow for _, flow in pairs)


def _expanded(source: str, destination: str, network: Network) -> Iterator[tuple[str, str]]:
    """The flow; or with the source "*" one from every other host."""
    return (
        ((host, destination) for host in network.hosts if host != destination)
        if source == "*"
        else iter([(source, destination)])
    )


def _arm(context: Context, name: str, spec: ArmSpec) -> Resolved:
    experiment, where = context.spec, f"{context.where}: arms.{name}"
    scheme = experiment.schemes[spec.scheme]
    flows = context.flows
    words.check(words.WORD, where, name)
    _check_workloads(where, spec, experiment)
    window = _window(where, spec, scheme)
    network = _network(where, context, spec, scheme)
    time_scale = 1 if context.real_time else network.time_scale
    workloads = tuple(
        _scaled(_workload(key, flows[key], experiment, scheme.levels, window), time_scale)
        for key in spec.workloads
    )
    limited = limiter.of_arm(context.where, name, spec, experiment, network, time_scale)
    if limited:
        limiter.check_packets(where, limited, workloads)
    tcp = spec.tcp.over(experiment.tcp)
    checks.tcp(where, tcp, network)
    treatment = resolve_scheme(f"scheme {spec.scheme!r}", spec.scheme, scheme, network)
    if treatment.switch_port:
        workloads = _without_taps(where, spec.scheme, workloads)
    arm = ArmPlan(
        name=name,
        label=spec.label,
        network=network,
        scheme=treatment,
        uses_levels=scheme.levels,
        qjump=limited,
        workloads=workloads,
        tcp=tcp,
        real_time=context.real_time,
        clock=experiment.clock.plan(),
    )
    blind = [BLIND] if len(workloads) < len(spec.workloads) else []
    return Resolved(
        arm,
        (
            *limiter.remarks(spec, experiment, arm),
            *blind,
            *limiter.long_epoch(spec, experiment, arm),
        ),
    )


def _check_workloads(where: str, arm: ArmSpec, experiment: ExperimentSpec) -> None:
    if not arm.workloads:
        raise UsageError(f"{where}: an arm needs at least one workload: name one in workloads")
    for number, workload in enumerate(arm.workloads):
        if workload in arm.workloads[:number]:
            raise UsageError(f"{where}: workload {workload!r} is named twice: name each once")
        suggestions.require(f"{where}: there is no workload", workload, experiment.workloads)


def _window(where: str, arm: ArmSpec, scheme: SchemeSpec) -> Size | None:
    """The TCP window of background traffic; None for the system's own."""
    window = scheme.window if arm.window is None else arm.window
    if window is not None and window < MIN_WINDOW_BYTES:
        raise UsageError(
            f"{where}: a window of {window} is smaller than the kernel's minimum: use at least "
            f"{MIN_WINDOW_BYTES}B"
        )
    return window


def _network(where: str, context: Context, arm: ArmSpec, scheme: SchemeSpec) -> Network:
    """The experiment's network, with the links that the scheme and the arm change."""
    link = scheme.link.over(context.spec.link)
    if arm.link is not None:
        link = arm.link.over(link)
    if link == context.spec.link:
        return context.own_network
    return replace(context, place=where).network(link)


def _without_taps(
    where: str, scheme: str, workloads: Sequence[WorkloadPlan]
) -> tuple[WorkloadPlan, ...]:
    """The workloads that do not watch switch ports. Raises :class:`UsageError` if there are
    none."""
    others = tuple(workload for workload in workloads if not hooks.watches_ports(workload))
    if not others:
        raise UsageError(
            f"{where}: scheme {scheme!r} has its own queues at switch ports, and workloads that "
            "only watch ports see nothing there: add another workload"
        )
    return others


def _scaled(workload: WorkloadPlan, time_scale: int) -> WorkloadPlan:
    """The plan for shorter times; the same one if its times do not depend on rates."""
    return workload.scaled(time_scale) if isinstance(workload, hooks.Scales) else workload


def _workload(
    name: str, flows: Flows, experiment: ExperimentSpec, levels: bool, window: int | None
) -> WorkloadPlan:
    workload = experiment.workloads[name]
    common = {
        "name": name,
        "label": workload.label,
        "flows": flows,
        "level": workload.level if levels else 0,
        "window_bytes": None,
        "port": FIRST_PORT + 100 * list(experiment.workloads).index(name),
    }
    planned = workload.planned(common, uses_levels=levels, duration_ns=int(experiment.duration))
    if isinstance(workload, hooks.NamesFile) and (file := getattr(workload, workload.FILE)):
        text = named_files.text(f"workloads.{name}.{workload.FILE}", file, workload.FILE)
        planned = msgspec.structs.replace(planned, **{workload.FILE: text})
    return (
        msgspec.structs.replace(planned, window_bytes=int(window))
        if window is not None and hooks.is_background(planned)
        else planned
    )
