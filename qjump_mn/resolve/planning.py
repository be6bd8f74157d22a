"""Make the plan of an experiment, preset and settings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from msgspec.structs import replace as replace_fields

from qjump_mn.errors import UsageError
from qjump_mn.model import guarantee, watch, words
from qjump_mn.model.experiment import ExperimentSpec
from qjump_mn.model.hooks import HasRemarks
from qjump_mn.model.plan import Judged, Plan, Run, Shown
from qjump_mn.model.scheme import Presented
from qjump_mn.model.tcp import congestion_remarks
from qjump_mn.model.topology import Network
from qjump_mn.resolve import arms, checks, constants, loading, perturbation


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
    watched: str = "",
) -> Plan:
    """Resolve the experiment called ``name``, with an added arm for each of ``schemes``.

    The plan runs the arms in ``only``, by default all, on ``backend``, by default the experiment's
    first, and ``perturb`` perturbed runs. ``watched`` is the part of the measurement to record, as
    :func:`~qjump_mn.model.watch.parse` has it. Raises :class:`UsageError` with the location of what
    is wrong.
    """
    spec, points = loading.experiment(name, preset, settings, schemes)
    where = f"experiment {name!r}"
    count = spec.replicates if replicates is None else replicates
    seeds = checks.seeds(seed, count, perturb)
    checks.times(where, spec)
    if not spec.arms:
        raise UsageError(f"{where} has no arms: give it at least one")
    words.check(words.FILE, where, name, preset)
    context = arms.Context(where, spec, points, backend)
    plan = _plan(context, name, preset, only, seeds, perturb)
    by_simulator = watch.SIMULATED in ((backend,) if backend else plan.shown.backends[:1])
    usual_ns = watch.simulated_ns(plan.shown.network) if by_simulator else 0
    run = replace_fields(plan.run, watch=watch.parse(watched, plan.run.duration_ns, usual_ns))
    plan = replace_fields(plan, run=run)
    plan.check_size(where)
    return plan


def _plan(
    context: arms.Context,
    name: str,
    preset: str,
    only: Sequence[str],
    seeds: tuple[int, ...],
    perturb: int,
) -> Plan:
    where, spec, network = context.where, context.spec, context.own_network
    resolved = tuple(arms.resolve(context))
    every = tuple(entry.arm for entry in resolved)
    checks.names(where, spec, every)
    is_run = checks.asked(where, spec, every, only)
    run = tuple(itertools.compress(every, is_run))
    perturbed = perturbation.perturbed(
        perturb, seeds, run, spec.link, partial(_varied, context, is_run)
    )
    remarks = [
        *_remarks(spec),
        *(remark for entry in resolved for remark in entry.remarks),
        *guarantee.remarks(run),
        *perturbed.remarks,
    ]
    return Plan(
        run=Run(
            warmup_ns=int(spec.warmup),
            duration_ns=int(spec.duration),
            seeds=seeds,
            arms=run,
            perturbations=perturbed.runs,
            varied=perturbed.arms,
        ),
        shown=_shown(name, preset, spec, network, remarks),
        judged=Judged(
            claims=spec.claims,
            published=spec.published,
            calibrated=spec.calibrated,
            constants=constants.constants(network, every, spec.figure.workload, context.backend),
            not_run=tuple(arm for arm, runs in zip(every, is_run, strict=True) if not runs),
            varied=perturbed.constants,
        ),
    )


def _varied(
    context: arms.Context, is_run: Sequence[bool], change: perturbation.Change
) -> perturbation.Varied:
    """Resolve the experiment with a change; return the arms that are run, and the constants."""
    context = replace(context, change=change)
    changed = tuple(entry.arm for entry in arms.resolve(context))
    values = constants.constants(
        context.own_network, changed, context.spec.figure.workload, context.backend
    )
    return perturbation.Varied(tuple(itertools.compress(changed, is_run)), values)


def _remarks(spec: ExperimentSpec) -> Iterator[str]:
    """What a reader should know of the experiment before its arms are resolved."""
    yield from spec.remarks
    for key, workload in spec.workloads.items():
        if isinstance(workload, HasRemarks):
            yield from workload.remarks(f"workloads.{key}")
    for key, scheme in spec.schemes.items():
        if not scheme.module:
            yield from congestion_remarks(f"scheme {key!r}", scheme.congestion_control)


def _shown(
    name: str, preset: str, spec: ExperimentSpec, network: Network, remarks: Sequence[str]
) -> Shown:
    return Shown(
        experiment=name,
        preset=preset,
        title=spec.title,
        reproduces=spec.reproduces,
        question=spec.question,
        network=network,
        tcp=spec.tcp,
        figure=spec.figure,
        remarks=tuple(dict.fromkeys(remarks)),
        axes={key: sweep.label for key, sweep in spec.sweeps.items()},
        schemes={
            key: Presented(label=scheme.label, about=scheme.about, look=scheme.look)
            for key, scheme in spec.schemes.items()
        },
        backends=spec.backends,
    )
