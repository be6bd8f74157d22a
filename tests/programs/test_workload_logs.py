"""Tables and measures from what memload, shuffle and fanin left in the guest (golden/ in their
folders), and from damage to it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from qjump_mn import resolve, theory
from qjump_mn.analysis import measures as measured
from qjump_mn.errors import LostError, UsageError
from qjump_mn.model import hooks
from qjump_mn.model.plan import Trial
from qjump_mn.programs import registry, text
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.shuffle import measures as measured_shuffle
from qjump_mn.resolve import loading
from qjump_mn.results import tables

GOLDEN = Path(__file__).parents[2] / "qjump_mn/programs"
FANIN = [
    "workloads.urgent.flows=h1>h11,h2>h11",
    "workloads.urgent.streams=2",
    "duration=300ms",
    'sweeps.epoch.values=["2ms","25ms"]',
]


def trial(experiment: str, arm: str, *settings: str) -> Trial:
    return next(
        trial
        for trial in resolve.plan(experiment, "smoke", list(settings)).trials()
        if trial.arm.name == arm
    )


CONTENDED = trial("fig3b", "contended", "duration=5s")
MEMCACHED, JOB = CONTENDED.arm.workloads
PACED = trial("fig11", "levels_25ms", *FANIN)
# What this trial said of itself.
FACTS = TrialFacts(
    cpu_busy=0.1404, window_s=(3.000294, 8.221121), began_ns=19746877641, began_utc_ns=0
)


def table_of(which: Trial, index: int, folder: Path) -> pa.Table:
    return tables.table(which.arm.workloads[index], which, folder)


def test_a_request_counts_from_when_it_was_due() -> None:
    table = table_of(CONTENDED, 0, GOLDEN / "memcached/golden")
    assert (table.num_rows, table["latency_us"].null_count, table["flow"].unique().to_pylist()) == (
        504,
        0,
        ["h3>h11"],
    )
    assert table["op"].value_counts().to_pylist() == [
        {"values": "GET", "counts": 466},
        {"values": "SET", "counts": 38},
    ]
    assert table["latency_us"][0].as_py() == pytest.approx((20061154670 - 19965096980) / 1e3)
    found = measured.values(MEMCACHED, table, CONTENDED, FACTS)
    assert set(found) == set(MEMCACHED.MEASURES)
    assert found["requests_per_s"] == 504 / 5
    assert found["over_200ms"] == pytest.approx(95 / 504)
    assert (
        found["get_p50_ms"] <= found["p90_ms"] < found["max_ms"]
        and found["rms_ms"] > found["mean_ms"]
    )


def test_a_request_without_an_answer_is_lost_and_over_every_limit(tmp_path: Path) -> None:
    raw = (GOLDEN / "memcached/golden/memcached-h3-h11.load.txt").read_text()
    (tmp_path / "memcached-h3-h11.load.txt").write_text(
        raw.replace("19965103170 20061154670 0 0 0", "19965103170 0 0 0 3")
    )
    table = table_of(CONTENDED, 0, tmp_path)
    found = measured.values(MEMCACHED, table, CONTENDED, FACTS)
    assert table["latency_us"].null_count == 1
    assert (found["sent"], found["received"], found["loss"]) == (504, 503, 1 / 504)
    assert found["over_200ms"] == pytest.approx(96 / 504)


def test_rounds_of_a_job_and_the_load_of_its_links() -> None:
    table = table_of(CONTENDED, 1, GOLDEN / "shuffle/golden")
    steps = {row["values"]: row["counts"] for row in table["step"].value_counts().to_pylist()}
    assert steps == {"distribute": 64, "shuffle": 8 * 56, "aggregate": 64, "round": 8}
    assert set(table.filter(pc.field("step") == "distribute")["source"].to_pylist()) == {"h2"}
    whole = table.filter(pc.field("step") == "round")
    assert (
        pc.sum(whole["bytes"]).as_py()
        == pc.sum(table.filter(pc.field("step") != "round")["bytes"]).as_py()
        == 24960000
    )
    found = measured.values(JOB, table, CONTENDED, FACTS)
    assert found["rounds"] == 4, "of eight, those that ended in the window"
    assert 900 < found["round_mean_ms"] <= found["round_max_ms"] < 1400
    assert 0.5 < found["busiest_share"] <= 1, "no link carries more than it can"


def test_the_load_of_a_link_is_that_of_the_copies_across_it() -> None:
    copies = pa.table(
        {
            "source": ["h1", "h7"],
            "destination": ["h7", "h8"],
            "bytes": [1000, 500],
            "start_ns": [0, 0],
            "end_ns": [10**9, 10**9],
        }
    )
    shares = measured_shuffle.link_shares(
        copies, pc.cast(copies["bytes"], "double").to_numpy(), CONTENDED.network, 10**9
    )
    share = 8e3 / theory.tcp_goodput_bps(1500, 10**7)
    up = {("h1", "s1"): share, ("s1", "s0"): share, ("s0", "s2"): share, ("s2", "h7"): share}
    assert shares == pytest.approx(up | {("h7", "s2"): share / 2, ("s2", "h8"): share / 2})


def test_a_datagram_is_known_by_its_sender_stream_and_number() -> None:
    table = table_of(PACED, 0, GOLDEN / "fanin/golden")
    assert (table.num_rows, table["latency_us"].null_count) == (48, 0)
    assert table["flow"].value_counts().to_pylist() == [
        {"values": "h1>h11", "counts": 24},
        {"values": "h2>h11", "counts": 24},
    ]
    links = 2 * theory.delivery_ns(theory.frame_bytes(258), 10**7) / 1e3
    assert pc.min(table["latency_us"]).as_py() >= links, "not faster than the wire"
    found = measured.values(PACED.arm.workloads[0], table, PACED, FACTS)
    assert set(found) == set(PACED.arm.workloads[0].MEASURES)
    assert 0 <= found["late_ms"] < 2


def test_a_datagram_that_did_not_arrive_is_lost(tmp_path: Path) -> None:
    for path in (GOLDEN / "fanin/golden").iterdir():
        (tmp_path / path.name).write_text(path.read_text())
    lines = (tmp_path / "urgent-h11.receive.txt").read_text().splitlines(keepends=True)
    (tmp_path / "urgent-h11.receive.txt").write_text(
        "".join([*lines[:2], *lines[3:]]).replace("rows=48", "rows=47")
    )
    assert (
        measured.values(PACED.arm.workloads[0], table_of(PACED, 0, tmp_path), PACED, FACTS)["loss"]
        == 1 / 48
    )


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda raw: raw[: len(raw) // 2], "memload's log has no end: it was cut off after"),
        (lambda raw: "", "it is empty, nothing was printed"),
        (
            lambda raw: raw.replace("# memload 1 ", "# memload 2 "),
            "this is not a log of memload, version 1",
        ),
        (lambda raw: raw.replace("early=0", "early=1"), "memload was stopped early"),
        (lambda raw: raw.replace("rows=504", "rows=505"), "has 504 rows, but its end says 505"),
        (
            lambda raw: raw.replace("20061154670 0 0 0", "20061154670 0 0 1"),
            "answered 0 requests with an error and missed 1 keys",
        ),
    ],
)
def test_a_log_that_is_not_whole_is_lost_with_its_file(
    damage: Callable[[str], str], sentence: str, tmp_path: Path
) -> None:
    name = "memcached-h3-h11.load.txt"
    (tmp_path / name).write_text(damage((GOLDEN / "memcached/golden" / name).read_text()))
    with pytest.raises(LostError, match=f"^memload on h3: raw/{name}: .*{sentence}"):
        table_of(CONTENDED, 0, tmp_path)


def test_a_log_without_rows_is_a_log() -> None:
    empty = text.log(
        "# memload 1 rate=1\n# columns due_ns sent_ns\n# end rows=0 early=0\n", "memload"
    )
    assert (empty.columns, empty.end) == (
        {"due_ns": [], "sent_ns": []},
        {"rows": "0", "early": "0"},
    )


@pytest.mark.parametrize(
    ("experiment", "setting", "sentence"),
    [
        (
            "fig3b",
            "workloads.memcached.rate=0",
            r"workloads\.memcached\.rate: 0.* is out of range: use 0\.1 to 100000 requests/s",
        ),
        (
            "fig3b",
            "workloads.memcached.connections=0",
            "connections: 0 is out of range: use 1 to 1000",
        ),
        ("fig3b", "workloads.memcached.get_fraction=1.5", "get_fraction: 1.5 is out of range"),
        (
            "fig3b",
            "workloads.memcached.key_size=300B",
            "key_size: 300B is out of range: use 8B to 250B",
        ),
        ("fig3b", "workloads.job.workers=h1", "list two or more workers"),
        ("fig3b", "workloads.job.workers=h1,h2", "each once, without the master"),
        ("fig3b", "workloads.job.workers=h1,h44", "has no host 'h44': did you mean 'h4'"),
        ("fig3b", "workloads.job.master=h44", "has no host 'h44'"),
        ("fig3b", "workloads.job.parallel=0", "parallel: 0 is out of range: use 1 to 64"),
        ("fig11", "workloads.urgent.streams=0", "streams: 0 is out of range: use 1 to 64"),
        ("fig11", "workloads.urgent.payload=10B", "payload: 10B is out of range: use 24B to 1472B"),
    ],
)
def test_what_a_program_cannot_do_is_refused(experiment: str, setting: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        resolve.plan(experiment, "smoke", [setting])


def test_a_client_that_would_spin_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Path(__file__).parents[2] / "experiments/fig3b.toml"
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/closed.toml").write_text(ours.read_text().replace("rate = 100\n", ""))
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    with pytest.raises(UsageError, match="a client never leaves the virtual CPU: give one of them"):
        resolve.plan("closed", "course", [])


def test_output_that_is_absent_or_empty_is_lost_with_program_and_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QJUMP_MN_PATH", str(Path(__file__).parents[2] / "examples"))
    plans = [
        resolve.plan(name, preset, [])
        for name in loading.names("experiments")
        for preset in loading.presets(name)
    ]
    every = {
        type(workload): (workload, trial)
        for plan in plans
        for trial in plan.trials()
        for workload in trial.arm.workloads
        if hooks.is_only_simulated(workload) or "guest" in plan.shown.backends
    }
    assert len(every) == len(registry.names()), "some program is in no experiment"
    for workload, one in every.values():
        folder = tmp_path / type(workload).__name__
        folder.mkdir()
        with pytest.raises(LostError) as absent:
            tables.table(workload, one, folder)
        whose = "" if hooks.is_only_simulated(workload) else r"\S+ on (?:h\d+|the switches): "
        said = re.fullmatch(
            rf"({whose}raw/(\S+)) cannot be read: no such file or directory", str(absent.value)
        )
        assert said, absent.value
        (folder / said[2]).touch()
        with pytest.raises(LostError) as empty:
            tables.table(workload, one, folder)
        assert str(empty.value) == f"{said[1]}: it is empty, nothing was printed"


@pytest.mark.parametrize(
    "error", [TypeError("no number"), AttributeError("no name"), UsageError("asked for nonsense")]
)
def test_an_error_of_our_own_code_surfaces(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> dict[str, list[object]]:
        raise error

    program = registry.of(MEMCACHED)
    monkeypatch.setattr(registry, "of", lambda plan: dataclasses.replace(program, table=broken))
    with pytest.raises(type(error), match=str(error)):
        table_of(CONTENDED, 0, GOLDEN / "memcached/golden")


@pytest.mark.parametrize(
    "error",
    [LostError("cut off"), ValueError("no number"), KeyError("rows"), OverflowError("too large")],
)
def test_what_a_parser_does_not_understand_is_lost(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(plan: object, which: object, read: Callable[[str], str]) -> dict[str, list[object]]:
        read("memcached-h3-h11.load.txt")
        raise error

    program = registry.of(MEMCACHED)
    monkeypatch.setattr(registry, "of", lambda plan: dataclasses.replace(program, table=broken))
    with pytest.raises(LostError, match=r"memload on h3: raw/memcached-h3-h11\.load\.txt"):
        table_of(CONTENDED, 0, GOLDEN / "memcached/golden")
