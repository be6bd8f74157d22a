"""Compute the measures of each workload and trial, and their spread over the seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import pyarrow as pa

from qjump_mn.model import hooks
from qjump_mn.model.plan import ArmPlan, Plan, Trial
from qjump_mn.model.workload import WorkloadPlan
from qjump_mn.programs import registry
from qjump_mn.programs.facts import TrialFacts, TrialTables
from qjump_mn.results import formatting, tables
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.outcome import ArmSummary, Spread


class TrialMeasures(msgspec.Struct, frozen=True):
    """One trial: ``values[workload][measure]``, and ``flows[workload][flow]``, each flow's bulk
    goodput in Mb/s."""

    arm: str
    seed: int
    values: dict[str, dict[str, float]]
    flows: dict[str, dict[str, float]]


def measure(data: TrialTables) -> TrialMeasures:
    """Compute all measures of one trial."""
    measured, flows = {}, {}
    for workload in data.trial.arm.workloads:
        table = data.tables[workload.name]
        measured[workload.name] = values(workload, table, data.trial, data.facts)
        flow_goodput = registry.measures(workload).flow_goodput
        if flow_goodput:
            flows[workload.name] = flow_goodput(table, data.facts)
    return TrialMeasures(data.trial.arm.name, data.trial.seed, measured, flows)


def values(
    workload: WorkloadPlan, table: pa.Table, trial: Trial, facts: TrialFacts
) -> dict[str, float]:
    """Return every measure of a workload that has a value, including those of extensions."""
    measured = registry.measures(workload).values(table, workload, trial, facts)
    for name, added in registry.added_measures(workload).items():
        value = added.value(table, workload, trial, facts)
        if value is not None:
            measured[name] = value
    return measured


def first_median(run: RunDirectory, trial: Trial, unit: str) -> str:
    """Return the median of the first foreground workload, such as "ping: median 8.1 us"; "" without
    latencies.

    ``unit`` is ms or us. It is for the line about the end of a trial, so unreadable output gives
    "".
    """
    for workload in trial.arm.workloads:
        if not hooks.is_background(workload) and "p50_ms" in registry.headings(workload):
            try:
                rows = tables.table(workload, trial, run.raw(trial.name))
                median_ms = values(workload, rows, trial, tables.facts(run, trial)).get("p50_ms")
            except Exception:  # the analysis says it, with its place; the other trials go on
                return ""
            return (
                ""
                if median_ms is None
                else f"{workload.name}: median {formatting.duration(median_ms, unit)}"
            )
    return ""


def summarise(plan: Plan, trials: Sequence[TrialMeasures]) -> tuple[ArmSummary, ...]:
    """Return every arm of the plan with the spread of its measures over the seeds that have
    them."""
    return tuple(
        _summary(plan, arm, [trial for trial in trials if trial.arm == arm.name])
        for arm in plan.run.arms
    )


def _summary(plan: Plan, arm: ArmPlan, trials: list[TrialMeasures]) -> ArmSummary:
    return ArmSummary(
        name=arm.name,
        label=arm.label,
        scheme=plan.shown.schemes[arm.scheme.name].label,
        planned=len(plan.run.seeds),
        done=len(trials),
        measures={
            workload.name: _spreads(
                {trial.seed: trial.values[workload.name] for trial in trials},
                registry.headings(workload),
            )
            for workload in arm.workloads
        },
        flows={
            workload.name: _spreads(
                {trial.seed: trial.flows[workload.name] for trial in trials},
                map(">".join, workload.flows),
            )
            for workload in arm.workloads
            if registry.measures(workload).flow_goodput
        },
    )


def _spreads(by_seed: Mapping[int, Mapping[str, float]], keys: Iterable[str]) -> dict[str, Spread]:
    by_key = {
        key: {seed: values[key] for seed, values in by_seed.items() if key in values}
        for key in keys
    }
    return {key: Spread.of(values) for key, values in by_key.items() if values}
