"""Where more of a parameter gains nothing: throughput counted while there is load, and the value
that a figure recommends."""

from __future__ import annotations

import pyarrow as pa
import pytest

from qjump_mn import resolve
from qjump_mn.model.experiment import PanelSpec
from qjump_mn.model.plan import Plan
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.memcached import measures as memcached
from qjump_mn.programs.memcached.program import MemcachedPlan
from qjump_mn.report.figures import sweep, swept
from qjump_mn.results.outcome import Spread


@pytest.fixture(scope="module")
def plan() -> Plan:
    return resolve.plan("fig10", "smoke", [])


def test_answers_that_come_after_the_load_are_no_throughput(plan: Plan) -> None:
    trial = plan.trials()[0]
    (workload,) = trial.arm.workloads
    assert isinstance(workload, MemcachedPlan)
    late_us = trial.duration_ns / 1e3
    rows = {
        "op": ["GET"] * 4,
        "due_ns": [10**9] * 4,
        "latency_us": [1e3, late_us, late_us + 1, None],
    }
    found = memcached.values(
        pa.table(rows),
        workload,
        trial,
        TrialFacts(cpu_busy=0.1, window_s=(1.0, 4.0), began_ns=10**9, began_utc_ns=0),
    )
    assert found["requests_per_s"] == 2 / (trial.duration_ns / 1e9)
    assert found["loss"] == 0.25
    nothing = {
        "op": pa.array([], pa.string()),
        "due_ns": pa.array([], pa.int64()),
        "latency_us": pa.array([], pa.float64()),
    }
    empty = memcached.values(
        pa.table(nothing),
        workload,
        trial,
        TrialFacts(cpu_busy=0.1, window_s=(1.0, 4.0), began_ns=10**9, began_utc_ns=0),
    )
    assert empty["requests_per_s"] == 0


@pytest.mark.parametrize(
    ("values", "knee"),
    [((100, 500, 949, 951, 1000), 4.0), ((100, 200, 300, 400, 500), 5.0), ((7, 7, 7, 7, 7), 1.0)],
)
def test_the_least_value_that_is_enough_is_marked(
    plan: Plan, values: tuple[float, ...], knee: float
) -> None:
    points = tuple((x, Spread.of({1: value})) for x, value in enumerate(values, start=1))
    line = swept.Line(
        "delay", "requests_per_s", "excess waits", tuple((float(x), spread) for x, spread in points)
    )
    panel = PanelSpec(measures=["memcached.requests_per_s"], label="requests/s", saturates=True)
    other = PanelSpec(measures=["memcached.p99_ms"], label="ms")
    assert swept.knee([(other, [line]), (panel, [line])]) == knee
    assert swept.knee([(other, [line])]) is None


def test_two_sweeps_of_one_parameter_share_the_axis(plan: Plan) -> None:
    assert set(plan.shown.axes) == {"factor", "dropped"}
    assert sweep._axis(plan) == plan.shown.axes["factor"]


def test_where_each_series_has_a_workload_of_its_own_its_name_is_enough() -> None:
    commits = resolve.plan("fig6", "smoke", [])
    arms = {arm.name: arm for arm in commits.arms}
    rates, slowest = commits.shown.figure.panels
    assert swept.label(commits, arms["tcp_400"], "tcp", "requests_per_s", rates) == "TCP"
    both = PanelSpec(measures=["tcp.requests_per_s", "tcp.max_ms"], label="")
    assert swept.label(commits, arms["tcp_400"], "tcp", "max_ms", both) == "TCP: max"
    assert (
        swept.label(commits, arms["plain_400"], "broadcast", "max_ms", slowest)
        == "broadcast, no QJump"
    )
