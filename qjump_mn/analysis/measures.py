"""One value for each measure of a workload, in each trial, and how these spread over the seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from qjump_mn.analysis import measured
from qjump_mn.analysis.measured.iperf import goodput_mbps
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.model.programs import IperfPlan
from qjump_mn.results.outcome import ArmSummary, Spread
from qjump_mn.results.tables import TrialTables


class TrialMeasures(msgspec.Struct, frozen=True):
    """One trial: ``values[workload][measure]``, and ``flows[workload][flow]``, the bulk goodput of each flow in Mb/s."""

    arm: str
    seed: int
    values: dict[str, dict[str, float]]
    flows: dict[str, dict[str, float]]


def measure(data: TrialTables) -> TrialMeasures:
    """All measures of one trial."""
    workloads = data.trial.arm.workloads
    values = {workload.name: measured.values(workload, data.tables[workload.name], data.trial, data.facts) for workload in workloads}
    flows = {
        workload.name: goodput_mbps(data.tables[workload.name], data.facts.window_s)
        for workload in workloads
        if isinstance(workload, IperfPlan)
    }
    return TrialMeasures(data.trial.arm.name, data.trial.seed, values, flows)


def summarise(plan: Plan, trials: Sequence[TrialMeasures]) -> tuple[ArmSummary, ...]:
    """Every arm of the plan with the spread of its measures over the seeds that have them."""
    return tuple(_summary(plan, arm, [trial for trial in trials if trial.arm == arm.name]) for arm in plan.arms_run)


def _summary(plan: Plan, arm: ArmPlan, trials: list[TrialMeasures]) -> ArmSummary:
    return ArmSummary(
        name=arm.name,
        label=arm.label,
        scheme=plan.schemes[arm.scheme.name].label,
        planned=len(plan.seeds),
        done=len(trials),
        measures={workload.name: _spreads({trial.seed: trial.values[workload.name] for trial in trials}, workload.MEASURES) for workload in arm.workloads},
        flows={
            workload.name: _spreads(
                {trial.seed: trial.flows[workload.name] for trial in trials}, tuple(f"{source}>{destination}" for source, destination in workload.flows)
            )
            for workload in arm.workloads
            if isinstance(workload, IperfPlan)
        },
    )


def _spreads(by_seed: Mapping[int, Mapping[str, float]], keys: Iterable[str]) -> dict[str, Spread]:
    found = {key: {seed: values[key] for seed, values in by_seed.items() if key in values} for key in keys}
    return {key: Spread.of(values) for key, values in found.items() if values}
