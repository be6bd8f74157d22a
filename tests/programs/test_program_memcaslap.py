"""memcaslap as a workload: what is refused, how it is started, and what its statistics (of
libmemcached 1.1.4) say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from qjump_mn import resolve
from qjump_mn.analysis import measures as measured
from qjump_mn.errors import LostError, UsageError
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.memcached import program as memcached
from qjump_mn.programs.memcached.program import MemcachedPlan
from qjump_mn.programs.memcaslap import program as memcaslap
from qjump_mn.programs.memcaslap.parse import parse
from qjump_mn.programs.memcaslap.program import MemcaslapPlan, launches
from qjump_mn.results import tables

GOLDEN = Path(__file__).parents[2] / "qjump_mn/programs/memcaslap/golden"
FACTS = TrialFacts(cpu_busy=0.2, window_s=(3.0, 15.0), began_ns=0, began_utc_ns=0)

PLAN = resolve.plan("fig3b", "memaslap", ["duration=10s"])
TRIAL = next(trial for trial in PLAN.trials() if trial.arm.name == "qjump")
WORKLOAD = next(workload for workload in TRIAL.arm.workloads if isinstance(workload, MemcaslapPlan))


def text(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text()


def table(raw: str, version: str = "memaslap v1.0\n") -> pa.Table:
    read = {
        memcaslap.version_name(WORKLOAD): version,
        memcaslap.output_name(WORKLOAD, WORKLOAD.flows[0], "txt"): raw,
    }
    return pa.table(
        dict(memcaslap.columns(WORKLOAD, TRIAL, read.__getitem__)), schema=tables.schema(WORKLOAD)
    )


def only(found: pa.Table, **fields: str) -> pa.Table:
    for name, value in fields.items():
        found = found.filter(pc.field(name) == value)
    return found


def values(raw: str) -> dict[str, float]:
    return measured.values(WORKLOAD, table(raw), TRIAL, FACTS)


def test_each_second_has_a_row_for_each_operation() -> None:
    found = only(table(text("alone")), kind="period")
    assert (found.num_rows, found["flow"].unique().to_pylist()) == (30, ["h3>h11"])
    assert only(found, op="TOTAL")["end_s"].to_pylist() == list(range(1, 11))
    last = only(found, op="GET").to_pylist()[-1]
    assert [last[name] for name in ("ops", "tps", "net_mib_s", "misses")] == [1075, 1075, 1.1, 0]
    assert [last[name] for name in ("min_us", "max_us", "avg_us", "std_us", "geo_us")] == [
        14590,
        119074,
        111336,
        19444.08,
        108035.59,
    ]
    gets, sets, both = (
        sum(only(found, op=op)["ops"].to_pylist()) for op in ("GET", "SET", "TOTAL")
    )
    assert (gets, sets, both) == (10630, 1280, 11910)


def test_summary_has_all_buckets() -> None:
    found = table(text("contended"))
    run = only(found, kind="run", op="TOTAL").to_pylist()[0]
    assert [
        run[name] for name in ("end_s", "ops", "min_us", "max_us", "avg_us", "std_us", "geo_us")
    ] == [
        10,
        8391,
        40123,
        930167,
        153454,
        89020.43,
        139988.17,
    ]
    buckets = only(found, kind="bucket", op="TOTAL")
    counts = dict(zip(buckets["at_most_us"].to_pylist(), buckets["ops"].to_pylist(), strict=True))
    assert counts == {1 << 16: 72, 1 << 17: 4740, 1 << 18: 2983, 1 << 19: 430, 1 << 20: 166}


def test_measures_follow_from_the_statistics() -> None:
    alone, contended = values(text("alone")), values(text("contended"))
    assert set(alone) == set(contended) == set(WORKLOAD.MEASURES)
    assert (alone["requests_per_s"], alone["min_ms"], alone["mean_ms"], alone["max_ms"]) == (
        1191.0,
        6.466,
        106.951,
        126.702,
    )
    assert (alone["p50_at_most_ms"], alone["p99_at_most_ms"]) == (126.702, 126.702), (
        "the maximum, for their bucket ends with 131 ms"
    )
    assert (alone["over_200ms_at_least"], alone["over_200ms_at_most"], alone["misses"]) == (0, 0, 0)
    assert (alone["get_mean_ms"], alone["set_mean_ms"]) == (112.01, 64.436)
    # Of 8391 the 4196th is in the bucket up to 131 ms, which ends with the 4812th; the 8308th in
    # the last, which begins with the 8226th.
    assert (contended["p50_at_most_ms"], contended["p99_at_most_ms"]) == (131.072, 930.167)
    assert contended["over_200ms_at_least"] == (430 + 166) / 8391
    assert contended["over_200ms_at_most"] == (2983 + 430 + 166) / 8391


def test_maximum_above_the_limit_counts_as_one_request() -> None:
    raw = (
        text("alone")
        .replace("Max:    126702", "Max:    200001", 3)
        .replace("16:      734    10831", "16:      734    10830        1")
    )
    found = values(raw)
    assert (found["over_200ms_at_least"], found["over_200ms_at_most"]) == (1 / 12038, 1 / 12038)


def test_the_mean_of_two_flows_is_that_of_their_answers() -> None:
    one, other = table(text("alone")), table(text("contended"))
    found = measured.values(WORKLOAD, pa.concat_tables([one, other]), TRIAL, FACTS)
    assert found["requests_per_s"] == 1191.0 + 826.3
    assert found["mean_ms"] == pytest.approx((12038 * 106.951 + 8391 * 153.454) / (12038 + 8391))
    assert found["p50_at_most_ms"] == 131.072
    assert found["over_200ms_at_least"] == (430 + 166) / (12038 + 8391)


def test_a_short_run_without_a_get() -> None:
    rows = parse(text("sets"), 1)
    assert {row[1] for row in rows} == {"SET", "TOTAL"}
    (period,) = (row for row in rows if row[:2] == ("period", "TOTAL"))
    assert period[2:5] == (1, 58352, 58352)
    assert sum(row[3] for row in rows if row[:2] == ("bucket", "TOTAL")) == 58368


def test_a_second_without_an_answer_has_no_latency() -> None:
    line = [line for line in text("alone").splitlines() if line.startswith("Period ")][-1]
    silent = "Period   1        0            0            0.0        0          -1       0          0          -nan       0.00"
    rows = parse(text("alone").replace(line, silent), 10)
    assert ("period", "TOTAL", 10, 0, 0, 0.0, 0, None, None, None, None, None, None) in rows


@pytest.mark.parametrize(
    ("raw", "seconds", "sentence"),
    [
        (text("interrupted"), 3, "does not end like a run of 3 s: its last line is"),
        (text("unanswered"), 2, "memcached answered none of memcaslap's requests"),
        (text("disconnected"), 3, "has statistics of 1 of 3 s: connections were lost"),
        (text("alone"), 20, "does not end like a run of 20 s: its last line is 'Run time: 10.0s"),
        ("", 10, "this is not output of memcaslap: it begins with ''"),
    ],
)
def test_run_that_ended_otherwise_is_lost(raw: str, seconds: int, sentence: str) -> None:
    with pytest.raises(LostError, match=sentence):
        parse(raw, seconds)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda raw: raw[: len(raw) // 2], "does not end like a run of 10 s"),
        (lambda raw: raw[:-5], "does not end like a run of 10 s"),
        (
            lambda raw: raw.replace("      734    10831", "      734"),
            "distribution of TOTAL has 1207 of 12038 answers",
        ),
        (lambda raw: raw.replace("get_misses: 0\n", ""), "has no line get_misses"),
    ],
)
def test_incomplete_output_is_lost(damage: Callable[[str], str], sentence: str) -> None:
    with pytest.raises(LostError, match=sentence):
        table(damage(text("alone")))


def test_other_version_is_lost_and_names_both() -> None:
    with pytest.raises(
        LostError,
        match=r"this is 'memaslap v1\.1', but only output of 'memaslap v1\.0' can be read",
    ):
        table(text("alone"), version="memaslap v1.1\n")


def test_launches_have_the_papers_flags_and_memloads_server() -> None:
    server, version, told, client = launches(WORKLOAD, TRIAL)
    assert client.argv[3:] == tuple(
        "-F memaslap-h3-h11.memcaslap.cnf -B -S 1s -T 2 -c 128 -w 10k -t 10s".split()
    )
    assert (client.phase, client.host, told.phase, told.host, version.argv) == (
        "probe",
        "h3",
        "serve",
        "h3",
        ("memcaslap", "-V"),
    )
    assert told.argv == ("printf", r"key\n64 64 1\nvalue\n1024 1024 1\ncmd\n0 0.1\n1 0.9\n")
    other = next(
        one
        for arm in resolve.plan("fig3b", "smoke", []).arms
        for one in arm.workloads
        if isinstance(one, MemcachedPlan)
    )
    (memloads,) = memcached.servers(other, TRIAL)
    assert [word for word in server.argv if word != str(WORKLOAD.port)] == [
        word for word in memloads.argv if word != str(other.port)
    ]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            "workloads.memaslap.connections=0",
            r"workloads\.memaslap\.connections: 0 is out of range: use 1 to 1000",
        ),
        (
            "workloads.memaslap.connections=127",
            "127 connections cannot be divided among 2 threads: use a multiple of 2",
        ),
        ("workloads.memaslap.threads=0", "threads: 0 is out of range: use 1 to 16"),
        ("workloads.memaslap.get_fraction=1", r"get_fraction: 1.* is out of range: use 0 to 0\.99"),
        ("workloads.memaslap.key_size=15B", "key_size: 15B is out of range: use 16B to 250B"),
        ("workloads.memaslap.value_size=2MB", "value_size: 2MB is out of range: use 1B to 1MB"),
        (
            "workloads.memaslap.window=1000",
            "window: 1000 keys are not a valid window: use a multiple of 1024",
        ),
        (
            "workloads.memaslap.window=1024000",
            "window: 131072000 is out of range: use at most 4194304 keys in all connections "
            "together",
        ),
        (
            "duration=1500ms",
            r"workloads\.memaslap: memcaslap needs a duration of whole seconds \(got 1\.5 s\)",
        ),
    ],
)
def test_invalid_settings_are_refused(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        resolve.plan("fig3b", "memaslap", [setting])
