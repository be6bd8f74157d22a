"""From an experiment to a plan: every name looked up, every default filled in, every number checked."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model import clock, loading, perturbation
from qjump_mn.model.experiment import ArmSpec, EpochMode, ExperimentSpec, QJumpSpec
from qjump_mn.model.plan import ArmPlan, Judged, Plan, QJumpPlan, Run, Shown
from qjump_mn.model.scheme import Limiter, Presented, resolve_scheme
from qjump_mn.model.topology import LinkSpec, Network, resolve_network
from qjump_mn.programs import registry
from qjump_mn.programs.base import Flow, WorkloadPlan, WorkloadSpec
from qjump_mn.theory import LEVELS

MAX_FACTOR_BYTES = 2**31 - 1
FIRST_PORT = 5201
LONG_EPOCHS = 2
"""An epoch that is so many times longer than Eq. 2 asks for is a mistake rather than caution."""
NUMBER = r"([0-9.]+) ?([A-Za-z]*)"
"""A value of a sweep that is one, with its unit."""

Flows = tuple[Flow, ...]
Networks = Callable[[str, LinkSpec], Network]
"""The network of a topology's name and its links."""


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
    if (backend or next(iter(spec.backends), "")) != clock.BACKEND:
        spec = msgspec.structs.replace(spec, clock=clock.NONE)
    where = f"experiment {name!r}"
    count = spec.replicates if replicates is None else replicates
    if count < 1:
        raise UsageError(f"{count} replicates make no run: ask for at least one")
    perturbation.check(perturb)
    if seed < 0 or seed + count + perturb > 2**31:
        raise UsageError(f"seed {seed} is out of range: use 0 to {2**31 - count - perturb}")
    lasting = any(
        spec.workloads[key].LASTING
        for arm in spec.arms.values()
        for key in arm.workloads
        if key in spec.workloads
    )
    if (lasting or spec.duration) and not 10**3 <= spec.duration <= 3600 * 10**9:
        raise UsageError(f"{where}: a duration of {spec.duration} is out of range: use 1us to 3600s")
    if spec.warmup > 600 * 10**9:
        raise UsageError(f"{where}: a warmup of {spec.warmup} is out of range: use at most 600s")
    remarks = list(spec.remarks)
    if not spec.arms:
        raise UsageError(f"{where} has no arms: give it at least one")
    networks = _networks(perturbation.nothing)
    network = networks(spec.topology, spec.link)
    arms = tuple(_arms(where, spec, networks, remarks, points))
    _check_figure(where, spec, arms)
    if "links" in spec.workloads:
        raise UsageError(
            f"{where}: workloads.links: a trial's table of that name is the load of the links: give the "
            "workload another"
        )
    for arm in only:
        if arm not in {name for one in arms for name in (one.name, one.series)}:
            raise UsageError(f"{where}: there is no arm {arm!r}: {loading.nearest(arm, list(spec.arms))}")
    is_run = [not only or arm.name in only or arm.series in only for arm in arms]
    seeds, run = tuple(range(seed, seed + count)), tuple(itertools.compress(arms, is_run))

    def varied(change: perturbation.Change) -> perturbation.Varied:
        changed = tuple(_arms(where, spec, _networks(change), [], points))
        constants = _constants(_networks(change)(spec.topology, spec.link), changed, spec.figure.workload)
        return perturbation.Varied(tuple(itertools.compress(changed, is_run)), constants)

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
            remarks=tuple(dict.fromkeys([*remarks, *perturbed.remarks])),
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
            constants=_constants(network, arms, spec.figure.workload),
            not_run=tuple(arm for arm, runs in zip(arms, is_run, strict=True) if not runs),
            varied=perturbed.constants,
        ),
    )


def _networks(change: perturbation.Change) -> Networks:
    def network(topology: str, link: LinkSpec) -> Network:
        return resolve_network(topology, *change(loading.topology(topology), link))

    return network


def _arms(
    where: str, spec: ExperimentSpec, networks: Networks, remarks: list[str], points: loading.Points
) -> Iterator[ArmPlan]:
    """Every arm; a series is one for each value of its sweep, of which those with ``points`` have names."""
    network = networks(spec.topology, spec.link)
    flows = _all_flows(where, spec, network)
    for key, arm in spec.arms.items():
        if arm.sweep is None:
            yield _arm(where, key, arm, spec, flows, network, networks, remarks)
            continue
        if arm.sweep not in spec.sweeps:
            raise UsageError(
                f"{where}: arms.{key}: there is no sweep {arm.sweep!r}: "
                f"{loading.nearest(arm.sweep, list(spec.sweeps))}"
            )
        sweep = spec.sweeps[arm.sweep]
        place = f"{where}: sweeps.{arm.sweep}"
        named = points.get(arm.sweep, {})
        names = bool(named) and not all(re.fullmatch(NUMBER, name) for name in named)
        xs = (
            _places(place, sweep.values, list(named)) if names else _numbers(place, sweep.values, list(named))
        )
        for value, x in zip(sweep.values, xs, strict=True):
            changes = named[str(value)] if named else dict.fromkeys(sweep.sets, value)
            changed = loading.varied(spec, changes, f"{place}.points.{value}" if named else place)
            one = msgspec.structs.replace(arm, label=f"{arm.label}, {value}")
            same = (changed.topology, changed.link) == (spec.topology, spec.link)
            here = network if same else networks(changed.topology, changed.link)
            made = _arm(
                where,
                f"{key}_{re.sub(r'[^A-Za-z0-9]', '_', str(value))}",
                one,
                changed,
                _all_flows(where, changed, here),
                here,
                networks,
                remarks,
            )
            yield msgspec.structs.replace(made, series=key, x=x)


def _places(where: str, values: Sequence[float | str], names: list[str]) -> list[float]:
    """1, 2, 3, …: where the values of a sweep stand among those that are known by name."""
    for name in names:
        if "," in name or re.fullmatch(NUMBER, name):
            raise UsageError(
                f"{where}.points: {name!r} is no name for a value beside others: use words without a comma, "
                "or numbers with one unit for all"
            )
    _known(where, values, names)
    if not values or len(set(values)) < len(values):
        raise UsageError(f"{where}: name at least one value, and each once")
    return [names.index(str(value)) + 1.0 for value in values]


def _known(where: str, values: Sequence[float | str], names: list[str]) -> None:
    for value in values:
        if names and str(value) not in names:
            raise UsageError(f"{where}: there is no point {value!r}: {loading.nearest(str(value), names)}")


def _numbers(where: str, values: Sequence[float | str], names: list[str]) -> list[float]:
    """The values of a sweep without their unit; those of points are among the ``names``."""
    _known(where, values, names)
    if not values:
        raise UsageError(f"{where}: no values: give at least one")
    matches = [re.fullmatch(NUMBER, str(value)) for value in values]
    if not all(matches) or len({match[2] for match in matches if match}) > 1:
        raise UsageError(
            f"{where}: values are numbers with one unit, such as '7ms', '8ms', not "
            f"{', '.join(map(repr, values))}"
        )
    numbers = [float(match[1]) for match in matches if match]
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"{where}: a value is named twice: give each once")
    return numbers


def _all_flows(where: str, spec: ExperimentSpec, network: Network) -> dict[str, Flows]:
    return {
        key: _flows(f"{where}: workloads.{key}", workload, network)
        for key, workload in spec.workloads.items()
    }


def _limiter(where: str, spec: QJumpSpec, mode: Limiter, network: Network, remarks: list[str]) -> QJumpPlan:
    hosts = len(network.hosts) if spec.hosts is None else spec.hosts
    if hosts < 1 or spec.packet < 1:
        raise UsageError(
            f"{where}: an epoch needs at least one host and one byte, not {hosts} and {spec.packet}"
        )
    equation = theory.network_epoch_ns(hosts, int(spec.packet), network.slowest_bps)
    epoch = equation if spec.epoch is None else int(spec.epoch)
    if not 1_000 <= epoch <= 10**11:
        raise UsageError(f"{where}: an epoch of {epoch / 1000:g} us is out of range: use 1us to 100s")
    if not 1 <= spec.limit_packets <= 100_000:
        raise UsageError(f"{where}: limit_packets = {spec.limit_packets} is out of range: use 1 to 100000")
    budgets = [0] * len(LEVELS)
    for text, factor in spec.factors.items():
        level = _level(f"{where}.factors", text)
        budget = round(factor * spec.budget_packet)
        if factor <= 0 or budget > MAX_FACTOR_BYTES:
            raise UsageError(
                f"{where}.factors.{level}: a factor of {factor:g} is out of range: leave the level out for "
                "unlimited"
            )
        if budget < theory.MINIMUM_FRAME_BYTES:
            raise UsageError(
                f"{where}.factors.{level}: a budget of {budget} bytes per epoch is below the smallest frame "
                f"({theory.MINIMUM_FRAME_BYTES} bytes): nothing could ever be sent; raise the factor or "
                "budget_packet"
            )
        budgets[level] = budget
    name = where.rpartition(".")[2]
    if spec.budget_packet != spec.packet:
        remarks.append(
            f"Limiter {name!r}: a factor counts {int(spec.budget_packet)} B per epoch, while the epoch of "
            f"{epoch / 1e6:g} ms is "
            + (f"Eq. 2 with P = {int(spec.packet)} B, n = {hosts}." if spec.epoch is None else "given.")
        )
    if epoch < equation:
        remarks.append(
            f"Limiter {name!r}: its epoch, {epoch / 1e6:g} ms, is shorter than Eq. 2 asks for n = {hosts} "
            f"({equation / 1e6:g} ms): no bound is guaranteed."
        )
    if epoch >= LONG_EPOCHS * equation:
        share, budget = (
            theory.host_rate_bps(int(spec.packet), equation),
            theory.host_rate_bps(int(spec.budget_packet), epoch),
        )
        remarks.append(
            f"Limiter {name!r}: its epoch, {epoch / 1e6:g} ms, is {epoch / equation:.3g} times as long as "
            f"Eq. 2 asks for n = {hosts}: factor 1 is "
            f"{budget / 1e3:.3g} kb/s, {share / budget:.3g} times less than Eq. 3's share, {share / 1e3:.3g} "
            "kb/s. Levels meet this limit, not the network."
        )
    if mode == "2015" and spec.epochs == "aligned":
        raise UsageError(f"{where}: epochs of mode 2015 start with the first packet: leave `epochs` out")
    epochs: EpochMode = "first-packet" if mode == "2015" else spec.epochs
    limiter = QJumpPlan(
        epoch_ns=epoch,
        budget_bytes=tuple(budgets),
        mode=mode,
        epochs=epochs,
        limit_packets=spec.limit_packets,
    )
    blocked = [str(level) for level in LEVELS if limiter.blocks(level)]
    if blocked:
        remarks.append(
            f"Limiter {name!r}: nothing of level {', '.join(blocked)} passes, for in mode 2015 a level "
            "without a factor has no budget."
        )
    return limiter


def _level(where: str, text: str) -> int:
    if text not in {str(level) for level in LEVELS}:
        raise UsageError(f"{where}: {text!r} is no level: an 802.1Q priority is 0 to 7, 7 the most urgent")
    return int(text)


def _flows(where: str, workload: WorkloadSpec, network: Network) -> Flows:
    """The flows of a workload, of which everything else is checked too."""
    _level(f"{where}.level", str(workload.level))
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
                    f"{loading.nearest(host, list(network.hosts))}"
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
) -> ArmPlan:
    scheme = experiment.schemes[spec.scheme]
    limiter = _arms_limiter(where, name, spec, experiment, network, remarks)
    where = f"{where}: arms.{name}"
    if not name.isidentifier():
        raise UsageError(f"{where}: {name!r} is no name for an arm: use letters, digits and underscores")
    if not spec.workloads:
        raise UsageError(f"{where}: no workloads: an arm measures something")
    for workload in spec.workloads:
        if workload not in experiment.workloads:
            raise UsageError(
                f"{where}: there is no workload {workload!r}: "
                f"{loading.nearest(workload, list(experiment.workloads))}"
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
        network = networks(experiment.topology, link)
    dilated = _dilated(where, experiment.clock, network, remarks)
    workloads = tuple(
        _workload(key, flows[key], experiment, scheme.levels, window).on_clock(dilated or 1)
        for key in spec.workloads
    )
    if limiter:
        for used, what in [
            (0, "frames without a level"),
            *((level, workload.name) for workload in workloads for level in sorted(workload.levels)),
        ]:
            if limiter.blocks(used):
                raise UsageError(
                    f"{where}: {what} would have level {used}, of which its limiter lets nothing pass in "
                    f"mode 2015: give it a factor for level {used}"
                )
    tcp = spec.tcp.over(experiment.tcp)
    tcp.check(where, network)
    treatment = resolve_scheme(f"scheme {spec.scheme!r}", spec.scheme, scheme, network)
    return ArmPlan(
        name=name,
        label=spec.label,
        network=network,
        scheme=treatment,
        uses_levels=scheme.levels,
        qjump=limiter,
        workloads=workloads,
        tcp=tcp,
        dilated=dilated,
    )


def _dilated(where: str, spec: clock.ClockSpec, network: Network, remarks: list[str]) -> int | None:
    dilated = clock.dilation(where, spec, network)
    if dilated is not None:
        remarks.append(clock.remark(dilated, network, given=spec.dilation is not None))
    return dilated


def _arms_limiter(
    where: str, name: str, arm: ArmSpec, experiment: ExperimentSpec, network: Network, remarks: list[str]
) -> QJumpPlan | None:
    """The limiter that an arm names, or else the first, in the mode that its scheme has; None if its scheme
    has none."""
    mode = experiment.schemes[arm.scheme].limiter
    limiters = experiment.qjump
    if mode is None:
        if arm.qjump is not None:
            raise UsageError(
                f"{where}: arms.{name}: qjump = {arm.qjump!r} is for schemes that limit, and {arm.scheme!r} "
                "does not"
            )
        return None
    if not limiters:
        raise UsageError(
            f"{where}: arms.{name}: scheme {arm.scheme!r} limits, and the experiment has no limiter: give it "
            "a table [qjump.NAME]"
        )
    key = next(iter(limiters)) if arm.qjump is None else arm.qjump
    if key not in limiters:
        raise UsageError(
            f"{where}: arms.{name}: there is no limiter qjump.{key}: {loading.nearest(key, list(limiters))}"
        )
    return _limiter(f"{where}: qjump.{key}", limiters[key], mode, network, remarks)


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


def _check_figure(where: str, spec: ExperimentSpec, arms: Sequence[ArmPlan]) -> None:
    figure = spec.figure
    if figure.workload not in spec.workloads:
        raise UsageError(
            f"{where}: figure.workload: there is no workload {figure.workload!r}: "
            f"{loading.nearest(figure.workload, list(spec.workloads))}"
        )
    for arm in (
        *figure.arms,
        *figure.detail,
        *(arm for panel in figure.panels for arm in (*panel.arms, *panel.relative_to.values())),
    ):
        if arm not in spec.arms:
            raise UsageError(
                f"{where}: figure: there is no arm {arm!r}: {loading.nearest(arm, list(spec.arms))}"
            )
    for entry in (*figure.table, *(entry for panel in figure.panels for entry in panel.measures)):
        measures = {
            f"{workload.name}.{measure}"
            for arm in arms
            for workload in arm.workloads
            for measure in registry.headings(workload)
        }
        if entry not in measures:
            raise UsageError(
                f"{where}: figure: no arm has {entry!r}: {loading.nearest(entry, sorted(measures))}"
            )


def busy_ports(
    network: Network, urgent: tuple[str, str], bulk: list[tuple[str, str]], *, one_way: bool = False
) -> int:
    """How many links on the way of ``urgent``, there and (unless ``one_way``) back, carry a bulk flow's data
    in the same direction."""
    carried = {link for source, destination in bulk for link in network.path(source, destination)}
    source, destination = urgent
    back = () if one_way else network.path(destination, source)
    return len(carried & {*network.path(source, destination), *back})


def _constants(network: Network, arms: tuple[ArmPlan, ...], shown: str) -> dict[str, float]:
    """What is known before anything runs, of the experiment's own topology; claims may use each by its name.
    ``busy_ports`` are those of the workload ``shown`` by the figure."""
    full = theory.frame_bytes(network.mtu_bytes)
    constants: dict[str, float] = {
        "hosts": float(len(network.hosts)),
        "rate_mbps": network.link.rate_bps / 1e6,
        "frame_ms": theory.occupancy_ns(full, network.slowest_bps) / 1e6,
        "buffer_ms": network.link.buffer_bytes * 8e3 / network.link.rate_bps,
        "link_goodput_mbps": theory.tcp_goodput_bps(network.mtu_bytes, network.link.rate_bps) / 1e6,
    }
    arms = tuple(arm for arm in arms if arm.network.topology == network.topology)
    bulk = [
        flow for arm in arms for workload in arm.workloads if workload.BACKGROUND for flow in workload.flows
    ]
    for arm in arms:
        for workload in arm.workloads:
            for name, value in workload.constants(network).items():
                constants.setdefault(f"{workload.name}_{name}", value)
            if not workload.BACKGROUND and workload.flows:
                ports = max(
                    busy_ports(network, flow, bulk, one_way=workload.ONE_WAY) for flow in workload.flows
                )
                constants.setdefault(f"{workload.name}_busy_ports", float(ports))
            constants |= workload.arm_constants(arm)
    if f"{shown}_busy_ports" in constants:
        constants["busy_ports"] = constants[f"{shown}_busy_ports"]
    return constants
