"""barrier as a workload: what is refused, how it is started, what its logs say, and what is
measured of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from qjump_mn import resolve
from qjump_mn.analysis import measures as measured
from qjump_mn.errors import LostError, UsageError
from qjump_mn.programs.barrier import program as barrier
from qjump_mn.programs.barrier.program import BarrierPlan, launches
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.results import tables

GOLDEN = Path(__file__).parents[2] / "qjump_mn/programs/barrier/golden"
PLAN = resolve.plan("fig3c", "smoke", [])
TRIAL = next(trial for trial in PLAN.trials() if trial.arm.name == "contended")
WORKLOAD = next(workload for workload in TRIAL.arm.workloads if isinstance(workload, BarrierPlan))
FACTS = TrialFacts(cpu_busy=0.1, window_s=(2.0, 8.0), began_ns=0, began_utc_ns=0)


def read(name: str) -> str:
    return (GOLDEN / name).read_text()


def table() -> pa.Table:
    return pa.table(dict(barrier.columns(WORKLOAD, TRIAL, read)), schema=tables.schema(WORKLOAD))


def test_latency_counts_from_when_the_barrier_was_due() -> None:
    rows = table().to_pylist()
    assert len(rows) == 4 * WORKLOAD.count == 120
    assert [row["host"] for row in rows[::30]] == ["h3", "h6", "h9", "h11"]
    for row in rows:
        assert row["due_ns"] == rows[0]["due_ns"] + row["iteration"] * 200_000_000
        assert row["start_ns"] >= row["due_ns"]
    line = read("barrier-h3.barrier.txt").splitlines()[2 + 7]
    assert rows[7]["latency_us"] == pytest.approx((int(line.split()[1]) - rows[7]["due_ns"]) / 1e3)


def test_no_process_passes_before_the_last_arrives() -> None:
    """What makes it a barrier, on the real logs: among the processes the earliest end is later than
    the latest start."""
    rows = table().to_pylist()
    for number in range(WORKLOAD.count):
        one = [row for row in rows if row["iteration"] == number]
        assert min(row["due_ns"] + row["latency_us"] * 1e3 for row in one) > max(
            row["start_ns"] for row in one
        )


def test_measures_include_all_processes() -> None:
    values = measured.values(WORKLOAD, table(), TRIAL, FACTS)
    assert tuple(values) == tuple(WORKLOAD.MEASURES)
    assert (values["sent"], values["received"], values["loss"]) == (120, 120, 0)
    assert values["max_ms"] == pytest.approx(
        max(row["latency_us"] for row in table().to_pylist()) / 1e3
    )


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda text: text[: len(text) // 2], "has no end"),
        (lambda text: text.replace("early=0", "early=1"), "was stopped early"),
        (
            lambda text: text.replace("# barrier 1", "# barrier 2"),
            "not a log of barrier, version 1",
        ),
        (
            lambda text: "\n".join([*text.splitlines()[:2], *text.splitlines()[3:]]).replace(
                "rows=30", "rows=29"
            ),
            "passed 29 of 30 barriers",
        ),
    ],
)
def test_incomplete_log_is_lost(damage: Callable[[str], str], sentence: str) -> None:
    with pytest.raises(LostError, match=sentence):
        barrier.columns(WORKLOAD, TRIAL, lambda name: damage(read(name)))


def test_launches_number_the_processes() -> None:
    found = list(launches(WORKLOAD, TRIAL))
    assert [launch.host for launch in found] == ["h3", "h6", "h9", "h11"]
    assert [launch.argv[launch.argv.index("--process") + 1] for launch in found] == [
        "0",
        "1",
        "2",
        "3",
    ]
    assert {launch.argv[launch.argv.index("--hosts") + 1] for launch in found} == {
        ",".join(f"10.0.0.{number}:{WORKLOAD.port}" for number in (3, 6, 9, 11))
    }
    assert {launch.phase for launch in found} == {"probe"}


def test_load_lasts_as_long_as_the_barriers() -> None:
    assert TRIAL.background_ns >= (2 + 6 + 1) * 10**9


def test_analytic_time_is_that_of_an_idle_network() -> None:
    frame, ports = 14 + 4 + 20 + 32 + 144 + 4, 4
    own_us, sent_before = (8 + frame + 12) * 8 / 10, 2
    assert PLAN.judged.constants["barrier_analytic_ms"] == pytest.approx(
        (sent_before * own_us + ports * (8 + frame) * 8 / 10) / 1e3
    )
    assert PLAN.judged.constants["busy_ports"] == 2, (
        "up and down the aggregation switch: nobody answers"
    )


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            "workloads.barrier.hosts=h3",
            r"workloads.barrier.hosts: list two or more hosts, each once \(got h3\)",
        ),
        ("workloads.barrier.hosts=h3,h3", "list two or more hosts, each once"),
        ("workloads.barrier.count=10", "give either interval, or count for barriers back to back"),
        (
            "workloads.barrier.interval=0s",
            "give either interval, or count for barriers back to back",
        ),
        ("workloads.barrier.hosts=h3,h99", "has no host 'h99'"),
        (
            "workloads.barrier.interval=10ns",
            "workloads.barrier.interval: 10ns is out of range: use 1us to 10s",
        ),
    ],
)
def test_invalid_settings_are_refused(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        resolve.plan("fig3c", "smoke", [setting])
