"""Numbers from tables: one module a program, with the value of each of its measures in one trial.

A module has ``values(table, plan, trial, facts) -> dict[str, float]``; a measure that has no value (the median of no echo) is absent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from qjump_mn.analysis.measured import barrier, fanin, flows, iperf, mapreduce, memcached, memcaslap, noise, ping, ptp, q2pc, shuffle
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import (
    AnyPlan,
    BarrierPlan,
    FaninPlan,
    FlowsPlan,
    IperfPlan,
    MapReducePlan,
    MemcachedPlan,
    MemcaslapPlan,
    NoisePlan,
    PingPlan,
    PtpPlan,
    Q2PCPlan,
    ShufflePlan,
)
from qjump_mn.results.tables import TrialFacts

_VALUES: dict[type[AnyPlan], Callable[[pa.Table, Any, Trial, TrialFacts], dict[str, float]]] = {
    BarrierPlan: barrier.values,
    FaninPlan: fanin.values,
    FlowsPlan: flows.values,
    IperfPlan: iperf.values,
    MapReducePlan: mapreduce.values,
    MemcachedPlan: memcached.values,
    MemcaslapPlan: memcaslap.values,
    NoisePlan: noise.values,
    PingPlan: ping.values,
    PtpPlan: ptp.values,
    Q2PCPlan: q2pc.values,
    ShufflePlan: shuffle.values,
}


def values(workload: AnyPlan, table: pa.Table, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """Every measure of a workload that has a value."""
    return _VALUES[type(workload)](table, workload, trial, facts)
