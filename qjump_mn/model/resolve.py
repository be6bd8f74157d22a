"""From an experiment to a plan: every name looked up, every default filled in, every number checked."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model import axis, constants, guarantee, limiter, loading, perturbation, suggestions, words
from qjump_mn.model.experiment import ArmSpec, ExperimentSpec
from qjump_mn.model.plan import ArmPlan, Judged, Plan, Run, Shown
from qjump_mn.model.scheme import Presented, resolve_scheme
from qjump_mn.model.tcp import congestion_remarks
from qjump_mn.model.topology import LinkSpec, Network
from qjump_mn.model.wiring import resolve_network
from qjump_mn.programs.base import Flow, WorkloadPlan, WorkloadSpec

MOST_REPLICATES = 1000

FIRST_PORT = 5201

Flows = tuple[Flow, ...]
Networks = Callable[[str, str, LinkSpec], Network]
"""The network of a topology's name and its links, which come from a place in the experiment."""

BLIND = (
    "Where a scheme has queues of its own at switch ports there is no tap: a port does not know when a frame "
    "came that its queue hands over."
)


def plan(
    name: str,
    preset: str,
    settings: list[str],
    *,
    seed: int = 1,
    replicates: int | None = None,
    only: Sequence[str] = (),
    schemes: Sequence[str] = (),
    backend: str = "",
    perturb: int = 0,
) -> Plan:
    """Resolve the experiment called ``name``, with an arm for each of ``schemes``; of its arms ``only`` are
    run, or all, by ``backend``, or the experiment's first; ``perturb`` more times with something varied.

    Raises :class:`UsageError` with the place of what cannot be.
    """
    spec, points = loading.experiment(name, preset, settings, schemes)
    backend = backend or next(iter(spec.backends), "")
    where = f"experiment {name!r}"
    count = spec.replicates if replicates is None else replicates
    if not 1 <= count <= MOST_REPLICATES:
        raise UsageError(f"{count} replicates make no run: ask for 1 to {MOST_REPLICATES}")
    perturbation.check(perturb)
    if seed < 0 or seed + count + perturb > 2**31:
        raise UsageError(f"seed {seed} is out of range: use 0 to {2**31 - count - perturb}")
    lasting = any(
        spec.workloads[key].LASTING
        for arm in spec.arms.values()
        for key in arm.workloads
        if key in spec.workloads
    )
    if lasting and not spec.duration:
        raise UsageError(
            f"{where}: no duration: its workloads go on until they are ended; write duration = '10s'"
        )
    if (lasting or spec.duration) and not 10**3 <= spec.duration <= 3600 * 10**9:
        raise UsageError(f"{where}: a duration of {spec.duration} is out of range: use 1us to 3600s")
    if spec.warmup > 600 * 10**9:
        raise UsageError(f"{where}: a warmup of {spec.warmup} is out of range: use at most 600s")
    spec.clock.check(where)
    remarks = list(spec.remarks)
    for key, workload in spec.workloads.items():
        remarks += workload.remarks(f"workloads.{key}")
    for key, scheme in spec.schemes.items():
        remarks += congestion_remarks(f"scheme {key!r}", scheme.congestion_control)
    if not spec.arms:
        raise UsageError(f"{where} has no arms: give it at least one")
    words.check(words.FILE, where, name, preset)
    networks = _networks(perturbation.nothing)
    network = networks(where, spec.topology, spec.link)
    real_time = backend not in constants.VIRTUAL or None
    arms = tuple(_arms(where, spec, networks, remarks, points, real_time))
    words.check_distinct(f"{where}: arms", (arm.name for arm in arms))
    _check_compare(where, spec)
    _check_figure(where, spec, arms)
    if "links" in spec.workloads:
        raise UsageError(
            f"{where}: workloads.links: a trial's table of that name is the load of the links: give the "
            "workload another"
        )
    named = {name for one in arms for name in (one.name, one.series)}
    # The arm of scheme fq-codel is fq_codel.
    only = [arm if arm in named else arm.replace("-", "_") for arm in only]
    for arm in only:
        if arm not in named:
            raise UsageError(f"{where}: there is no arm {arm!r}: {suggestions.nearest(arm, list(spec.arms))}")
    is_run = [not only or arm.name in only or arm.series in only for arm in arms]
    seeds, run = tuple(range(seed, seed + count)), tuple(itertools.compress(arms, is_run))

    def varied(change: perturbation.Change) -> perturbation.Varied:
        changed = tuple(_arms(where, spec, _networks(change), [], points, real_time))
        own = _networks(change)(where, spec.topology, spec.link)
        values = constants.constants(own, changed, spec.figure.workload, backend)
        return perturbation.Varied(tuple(itertools.compress(changed, is_run)), values)

    perturbed = perturbation.perturbed(perturb, seeds, run, spec.link, varied)
    return Plan(
        run=Run(
            warmup_ns=int(spec.warmup),
            duration_ns=int(spec.duration),
            seeds=seeds,
            arms=run,
            perturbations=perturbed.runs,
            varied=perturbed.arms,
        ),
        shown=Shown(
            experiment=name,
            preset=preset,
            title=spec.title,
            reproduces=spec.reproduces,
            question=spec.question,
            network=network,
            tcp=spec.tcp,
            figure=spec.figure,
            remarks=tuple(dict.fromkeys([*remarks, *guarantee.remarks(run), *perturbed.remarks])),
            axes={key: sweep.label for key, sweep in spec.sweeps.items()},
            schemes={
                key: Presented(label=scheme.label, about=scheme.about, look=scheme.look)
                for key, scheme in spec.schemes.items()
            },
            backends=spec.backends,
        ),
        judged=Judged(
            claims=spec.claims,
            published=spec.published,
            constants=constants.constants(network, arms, spec.figure.workload, backend),
            not_run=tuple(arm for arm, runs in zip(arms, is_run, strict=True) if not runs),
            varied=perturbed.constants,
        ),
    )


def _networks(change: perturbation.Change) -> Networks:
    def network(place: str, topology: str, link: LinkSpec) -> Network:
        spec, link = change(loading.topology(topology), link)
        return resolve_network(topology, spec, place, link)

    return network


def _arms(
    where: str,
    spec: ExperimentSpec,
    networks: Networks,
    remarks: list[str],
    points: loading.Points,
    real_time: bool | None,
) -> Iterator[ArmPlan]:
    """Every arm; a series is one for each value of its sweep, of which those with ``points`` have names."""
    network = networks(where, spec.topology, spec.link)
    flows = _all_flows(where, spec, network)
    for key, arm in spec.arms.items():
        if arm.sweep is None:
            yield _arm(where, key, arm, spec, flows, network, networks, remarks, real_time)
            continue
        if arm.sweep not in spec.sweeps:
            raise UsageError(
                f"{where}: arms.{key}: there is no sweep {arm.sweep!r}: "
                f"{suggestions.nearest(arm.sweep, list(spec.sweeps))}"
            )
        sweep = spec.sweeps[arm.sweep]
        place = f"{where}: sweeps.{arm.sweep}"
        named = points.get(arm.sweep, {})
        if not named and not sweep.sets:
            raise UsageError(f'{place}: sets nothing: name a setting, as in sets = ["link.buffer"]')
        xs = axis.places(place, sweep.values, list(named))
        for value, x in zip(sweep.values, xs, strict=True):
            changes = named[str(value)] if named else dict.fromkeys(sweep.sets, value)
            changed = loading.varied(spec, changes, f"{place}.points.{value}" if named else place)
            one = msgspec.structs.replace(arm, label=f"{arm.label}, {value}")
            same = (changed.topology, changed.link) == (spec.topology, spec.link)
            here = network if same else networks(place, changed.topology, changed.link)
            made = _arm(
                where,
                f"{key}_{re.sub(r'[^A-Za-z0-9]', '_', str(value))}",
                one,
                changed,
                _all_flows(where, changed, here),
                here,
                networks,
                remarks,
                real_time,
            )
            yield msgspec.structs.replace(made, series=key, x=x)


def _all_flows(where: str, spec: ExperimentSpec, network: Network) -> dict[str, Flows]:
    return {
        key: _flows(f"{where}: workloads.{key}", workload, network)
        for key, workload in spec.workloads.items()
    }


def _flows(where: str, workload: WorkloadSpec, network: Network) -> Flows:
    """The flows of a workload, of which everything else is checked too."""
    limiter.level(f"{where}.level", str(workload.level))
    pairs = [
        (place, flow)
        for place, (source, destination) in workload.pairs(where)
        for flow in _expanded(source, destination, network)
    ]
    hosts = frozenset(network.hosts)
    for place, flow in pairs:
        for host in flow:
            if host not in hosts:
                raise UsageError(
                    f"{place}: topology {network.topology!r} has no host {host!r}: "
                    f"{suggestions.nearest(host, list(network.hosts))}"
                )
    workload.check(where, network)
    return tuple(flow for _, flow in pairs)


def _expanded(source: str, destination: str, network: Network) -> Iterator[tuple[str, str]]:
    """The flow; or with the source "*" one from every other host."""
    return (
        ((host, destination) for host in network.hosts if host != destination)
        if source == "*"
        else iter([(source, destination)])
    )


def _arm(
    where: str,
    name: str,
    spec: ArmSpec,
    experiment: ExperimentSpec,
    flows: dict[str, Flows],
    network: Network,
    networks: Networks,
    remarks: list[str],
    real_time: bool | None,
) -> ArmPlan:
    scheme = experiment.schemes[spec.scheme]
    found_at, where = where, f"{where}: arms.{name}"
    words.check(words.WORD, where, name)
    if not spec.workloads:
        raise UsageError(f"{where}: no workloads: an arm measures something")
    for number, workload in enumerate(spec.workloads):
        if workload in spec.workloads[:number]:
            raise UsageError(f"{where}: workload {workload!r} is there twice: name each once")
        if workload not in experiment.workloads:
            raise UsageError(
                f"{where}: there is no workload {workload!r}: "
                f"{suggestions.nearest(workload, list(experiment.workloads))}"
            )
    window = scheme.window if spec.window is None else spec.window
    if window is not None and window < 4096:
        raise UsageError(
            f"{where}: a window of {window} is smaller than the kernel grants: use at least 4096B"
        )
    link = scheme.link.over(experiment.link)
    if spec.link is not None:
        link = spec.link.over(link)
    if link != experiment.link:
        network = networks(where, experiment.topology, link)
    time_scale = 1 if real_time else network.time_scale
    workloads = tuple(
        _workload(key, flows[key], experiment, scheme.levels, window).scaled(time_scale)
        for key in spec.workloads
    )
    limited = limiter.of_arm(found_at, name, spec, experiment, network, time_scale, remarks)
    if limited:
        limiter.check_packets(where, limited, workloads)
    tcp = spec.tcp.over(experiment.tcp)
    tcp.check(where, network)
    treatment = resolve_scheme(f"scheme {spec.scheme!r}", spec.scheme, scheme, network)
    if treatment.switch_port and any(workload.WATCHES_PORTS for workload in workloads):
        workloads = tuple(workload for workload in workloads if not workload.WATCHES_PORTS)
        if not workloads:
            raise UsageError(
                f"{where}: scheme {spec.scheme!r} has queues at switch ports: a tap sees none there"
            )
        remarks.append(BLIND)
    planned = ArmPlan(
        name=name,
        label=spec.label,
        network=network,
        scheme=treatment,
        uses_levels=scheme.levels,
        qjump=limited,
        workloads=workloads,
        tcp=tcp,
        real_time=real_time,
        clock=experiment.clock.plan(),
    )
    remarks += limiter.long_epoch(spec, experiment, planned)
    return planned


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
    return (
        msgspec.structs.replace(planned, window_bytes=int(window))
        if window is not None and planned.BACKGROUND
        else planned
    )


def _check_compare(where: str, spec: ExperimentSpec) -> None:
    for arm in [spec.compare] if isinstance(spec.compare, str) else spec.compare:
        if arm and arm not in spec.arms:
            raise UsageError(
                f"{where}: compare: there is no arm {arm!r}: {suggestions.nearest(arm, list(spec.arms))}"
            )


def _check_figure(where: str, spec: ExperimentSpec, arms: Sequence[ArmPlan]) -> None:
    figure = spec.figure
    if figure.workload not in spec.workloads:
        raise UsageError(
            f"{where}: figure.workload: there is no workload {figure.workload!r}: "
            f"{suggestions.nearest(figure.workload, list(spec.workloads))}"
        )
    for arm in (
        *figure.arms,
        *figure.detail,
        *(arm for panel in figure.panels for arm in (*panel.arms, *panel.relative_to.values())),
    ):
        if arm not in spec.arms:
            raise UsageError(
                f"{where}: figure: there is no arm {arm!r}: {suggestions.nearest(arm, list(spec.arms))}"
            )
    for panel in figure.panels:
        for workload in panel.relative_to:
            if workload not in spec.workloads:
                raise UsageError(
                    f"{where}: figure.panels: relative_to: there is no workload {workload!r}: "
                    f"{suggestions.nearest(workload, list(spec.workloads))}"
                )
        for arm in panel.arms:
            if figure.arms and arm not in figure.arms:
                raise UsageError(
                    f"{where}: figure.panels: {arm!r} is none of the figure's arms: add it to figure.arms, "
                    f"or name one of {', '.join(figure.arms)}"
                )
    measures = constants.entries(arms)
    for entry in (*figure.table, *(entry for panel in figure.panels for entry in panel.measures)):
        if entry not in measures:
            raise UsageError(
                f"{where}: figure: no arm has {entry!r}: {suggestions.nearest(entry, sorted(measures))}"
            )
