"""Numbers from tables: one value for each measure of a workload, in each trial.

Percentiles are by nearest rank, of the echoes that came back; what did not come back is ``loss``, which stands beside them everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.analysis.claims import measures_of
from qjump_mn.model.plan import ArmPlan, IperfPlan, PingPlan, Plan
from qjump_mn.results.outcome import ArmSummary, Spread
from qjump_mn.results.tables import TrialTables

PERCENTILES = {"min_ms": 0.0, "p50_ms": 50.0, "p90_ms": 90.0, "p99_ms": 99.0, "p999_ms": 99.9, "max_ms": 100.0}


class TrialMeasures(msgspec.Struct, frozen=True):
    """One trial: ``values[workload][measure]``, and ``flows[workload][flow]``, the bulk goodput of each flow in Mb/s."""

    arm: str
    seed: int
    values: dict[str, dict[str, float]]
    flows: dict[str, dict[str, float]]


def percentile(ascending: Sequence[float] | npt.NDArray[np.float64], percent: float) -> float:
    """The value of nearest rank, ceil(percent/100 x n), of a non-empty ascending sequence; 0 is the least."""
    # The product is rounded first: 99.9 % of 1000 is 999, and in floating point a little more.
    return float(ascending[max(1, math.ceil(round(percent * len(ascending) / 100, 9))) - 1])


def measure(data: TrialTables) -> TrialMeasures:
    """All measures of one trial."""
    values: dict[str, dict[str, float]] = {}
    flows: dict[str, dict[str, float]] = {}
    for workload in data.trial.arm.workloads:
        table = data.tables[workload.name]
        match workload:
            case PingPlan():
                values[workload.name] = of_ping(table)
            case IperfPlan():
                flows[workload.name] = goodput_mbps(table, data.facts.window_s)
                values[workload.name] = {
                    "goodput_mbps": sum(flows[workload.name].values()),
                    "offered_mbps": sum(goodput_mbps(table, data.facts.window_s, side="sender").values()),
                    "retransmits": float(pc.sum(table["retransmits"]).as_py() or 0),
                }
    return TrialMeasures(data.trial.arm.name, data.trial.seed, values, flows)


def of_ping(table: pa.Table) -> dict[str, float]:
    """Round trips in ms, and the fraction of requests that had no reply."""
    milliseconds = np.sort(table["rtt_us"].drop_null().to_numpy()) / 1e3
    sent, received = table.num_rows, len(milliseconds)
    values = {"sent": float(sent), "received": float(received), "loss": (sent - received) / sent}
    if received:
        values |= {name: percentile(milliseconds, percent) for name, percent in PERCENTILES.items()}
        values["mean_ms"] = float(np.mean(milliseconds))
    return values


def goodput_mbps(table: pa.Table, window_s: tuple[float, float], side: str = "receiver") -> dict[str, float]:
    """What each flow's receiver got (its sender's sockets took, for ``side`` "sender") in a second, in Mb/s.

    Only intervals that lie wholly inside the window count.
    """
    start, end = window_s
    rates: dict[str, float] = dict.fromkeys(table["flow"].unique().to_pylist(), 0.0)
    streams: dict[tuple[str, int], tuple[int, float]] = {}
    for row in table.filter(pc.field("side") == side).to_pylist():
        if start <= row["start_s"] and row["end_s"] <= end:
            received, seconds = streams.get((row["flow"], row["stream"]), (0, 0.0))
            streams[row["flow"], row["stream"]] = (received + row["bytes"], seconds + row["end_s"] - row["start_s"])
    for (flow, _), (received, seconds) in streams.items():
        rates[flow] += received * 8 / seconds / 1e6
    return rates


def summarise(plan: Plan, trials: Sequence[TrialMeasures]) -> tuple[ArmSummary, ...]:
    """Every arm of the plan with the spread of its measures over the seeds that have them."""
    return tuple(_summary(plan, arm, [trial for trial in trials if trial.arm == arm.name]) for arm in plan.arms_run)


def scheme(arm: ArmPlan) -> str:
    """What an arm does to its traffic, in a word or two."""
    if arm.qjump is not None:
        return f"QJump, {arm.qjump.mode}"
    return "priorities" if arm.uses_levels else "none"


def _summary(plan: Plan, arm: ArmPlan, trials: list[TrialMeasures]) -> ArmSummary:
    return ArmSummary(
        name=arm.name,
        label=arm.label,
        scheme=scheme(arm),
        planned=len(plan.seeds),
        done=len(trials),
        measures={workload.name: _spreads({trial.seed: trial.values[workload.name] for trial in trials}, measures_of(workload)) for workload in arm.workloads},
        flows={
            workload.name: _spreads(
                {trial.seed: trial.flows[workload.name] for trial in trials}, tuple(f"{source}>{destination}" for source, destination in workload.flows)
            )
            for workload in arm.workloads
            if isinstance(workload, IperfPlan)
        },
    )


def _spreads(by_seed: Mapping[int, Mapping[str, float]], keys: tuple[str, ...]) -> dict[str, Spread]:
    found = {key: {seed: values[key] for seed, values in by_seed.items() if key in values} for key in keys}
    return {key: Spread.of(values) for key, values in found.items() if values}
