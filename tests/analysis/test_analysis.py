"""Measures, fidelity and the whole way from a run directory to an exit code."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import qjump_mn
from qjump_mn import resolve
from qjump_mn.analysis import __main__ as command
from qjump_mn.analysis import copies, fidelity, measures, pipeline, terminal
from qjump_mn.model.plan import Trial
from qjump_mn.programs import statistics
from qjump_mn.programs.facts import Check, TrialFacts, TrialTables
from qjump_mn.programs.iperf import measures as iperf
from qjump_mn.report.figures import style
from qjump_mn.results import contents, formatting, outcome, tables
from qjump_mn.results import manifest as manifests
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Clock, TrialRecord
from qjump_mn.results.outcome import ArmSummary
from tests.support import synthetic

ROOT = Path(qjump_mn.__file__).parents[1]
GOLDEN = Path(__file__).parents[1] / "golden"


# Measures

TRIAL = resolve.plan("fig3a", "smoke", []).trials()[0]
PING, BULK = next(
    arm for arm in resolve.plan("fig3a", "smoke", []).arms if arm.name == "contended"
).workloads
FACTS = TrialFacts(cpu_busy=0.1, window_s=(1.0, 2.0), began_ns=0, began_utc_ns=0)


def ping_table(*rtts_ms: float | None) -> pa.Table:
    rows = [
        {
            "flow": "h8>h10",
            "sequence": index,
            "received_s": None,
            "latency_us": None if rtt is None else rtt * 1e3,
        }
        for index, rtt in enumerate(rtts_ms, 1)
    ]
    return pa.Table.from_pylist(rows, schema=tables.schema(PING))


def test_percentiles_are_by_nearest_rank() -> None:
    golden = json.loads((GOLDEN / "percentiles.json").read_text())
    for case in golden["cases"]:
        assert [
            statistics.percentile(case["values"], percent) for percent in golden["percents"]
        ] == case["nearest_rank"], case["values"]


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.floats(0, 100))
def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed(
    values: list[float], percent: float
) -> None:
    ascending = sorted(values)
    found = statistics.percentile(ascending, percent)
    assert found in values
    assert sum(value <= found for value in values) >= percent / 100 * len(values) - 1e-6
    assert sum(value < found for value in values) <= percent / 100 * len(values) + 1e-6


def test_ping_measures_count_the_lost() -> None:
    values = measures.values(PING, ping_table(1, None, 3, 2, None), TRIAL, FACTS)
    assert tuple(values) == tuple(PING.MEASURES)
    assert tuple(values.values()) == (5, 3, 0.4, 1, 2, 3, 3, 3, 3, 2)


def test_nothing_came_back() -> None:
    assert measures.values(PING, ping_table(None, None), TRIAL, FACTS) == {
        "sent": 2,
        "received": 0,
        "loss": 1,
    }


def bulk_table(rows: list[tuple[str, str, int, float, float, int]]) -> pa.Table:
    keys = ("flow", "side", "stream", "start_s", "end_s", "bytes")
    return pa.Table.from_pylist(
        [{**dict(zip(keys, row, strict=True)), "retransmits": None} for row in rows],
        schema=tables.schema(BULK),
    )


def test_goodput_is_the_receivers_in_whole_intervals() -> None:
    table = bulk_table(
        [
            ("a>b", "receiver", 5, 0.0, 1.0, 999_999),  # before the window
            ("a>b", "receiver", 5, 0.9, 1.1, 999_999),  # across its start
            ("a>b", "receiver", 5, 1.0, 1.5, 500_000),
            ("a>b", "receiver", 5, 1.5, 2.0, 250_000),
            ("a>b", "receiver", 7, 1.0, 2.0, 125_000),  # another stream of the flow
            ("a>b", "sender", 5, 1.0, 2.0, 999_999),
            ("a>b", "receiver", 5, 2.0, 2.1, 999_999),  # after its end
            ("c>d", "sender", 5, 1.0, 2.0, 999_999),  # a flow that nothing arrived of
        ]
    )
    assert iperf.goodput_mbps(table, (1.0, 2.0)) == pytest.approx({"a>b": 7.0, "c>d": 0.0})


# A complete run


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> pipeline.Analysed:
    return pipeline.analyse(synthetic.make(tmp_path_factory.mktemp("complete"), replicates=2).path)


def test_every_claim_of_the_complete_run_holds(complete: pipeline.Analysed) -> None:
    expected = dict.fromkeys(complete.manifest.plan.judged.claims, "REPRODUCED") | {
        "order": "DIRECTION ONLY"
    }
    assert {row.claim: row.verdict for row in complete.outcome.verdicts} == expected
    passed = (
        "complete",
        "files",
        "as built",
        "CPU",
        "wire",
        "bound",
        "idle RTT",
        "pings",
        "bulk flows",
    )
    # A made-up run has not the counters that these compare with; tests/analysis/test_forged.py has a real one.
    unknown = ("carried", "switches")
    assert {check.name: check.status for check in complete.outcome.checks} == {
        **dict.fromkeys(passed, "pass"),
        **dict.fromkeys(unknown, "unknown"),
    }
    assert complete.outcome.exit_code == 0
    assert complete.outcome.missing == {}


def test_arms_have_the_spread_of_their_seeds(complete: pipeline.Analysed) -> None:
    for arm in complete.outcome.arms:
        assert (arm.planned, arm.done) == (2, 2)
        assert next(iter(arm.measures.values()))["p50_ms"].seeds == (1, 2)
    contended = complete.outcome.arm("contended")
    assert contended is not None
    flows = contended.flows["bulk"]
    assert list(flows) == ["h7>h10", "h9>h11", "h1>h12"]
    total = contended.measures["bulk"]["goodput_mbps"]
    assert sum(flow.values[0] for flow in flows.values()) == pytest.approx(total.values[0])


def test_verdicts_are_on_disk(complete: pipeline.Analysed) -> None:
    assert outcome.read(complete.run.path) == complete.outcome


def test_analysis_changes_no_raw_file_and_repeats(complete: pipeline.Analysed) -> None:
    figures = (f"fig/latency_cdf.{ending}" for ending in ("png", "svg", "pdf"))
    made = (
        "verdicts.json",
        "report.md",
        "report.html",
        *figures,
        "trials/qjump/1/data/ping.parquet",
    )
    before = {name: (complete.run.path / name).read_bytes() for name in made}
    assert pipeline.analyse(complete.run.path).outcome == complete.outcome
    for name, content in before.items():
        assert (complete.run.path / name).read_bytes() == content, name
    assert contents.discrepancies(complete.run.path, complete.manifest) == []


def printed(
    analysed: pipeline.Analysed, width: int = 80, *, is_terminal: bool = True, verbose: bool = False
) -> str:
    console = Console(
        width=width,
        highlight=False,
        markup=False,
        force_terminal=is_terminal,
        record=True,
        file=io.StringIO(),
    )
    terminal.show(console, analysed, verbose=verbose)
    return console.export_text()


def test_verbose_shows_everything_in_80_columns(complete: pipeline.Analysed) -> None:
    text = printed(complete, verbose=True)
    lines = text.splitlines()
    flat = " ".join(text.split())
    paths = [
        complete.run.path / name
        for name in ("fig/latency_cdf.png", "fig/latency_cdf_others.png", "report.html")
    ]
    for path in (*paths, complete.run.path):
        assert sum(line.endswith(f" {path}") for line in lines) == 1, path
    assert all(
        len(line) <= 80
        for line in lines
        if str(complete.run.path) not in line and "sha256" not in line
    )
    for arm in complete.manifest.plan.arms:
        assert any(line.startswith(arm.label) for line in lines)
    judged = [line for line in lines if line.startswith(("REPRODUCED ", "DIRECTION ONLY "))]
    assert len(judged) == len(complete.manifest.plan.judged.claims)
    assert "published: 300, within a factor of 2: the medians were read off a figure" in flat
    assert "Fidelity passed, 9 of 11 checks" in flat
    assert "the idle RTT is a model value, not a measurement" in flat
    assert "the effect is that of the priorities" in flat
    assert complete.outcome.results_sha256 in flat
    assert "\x1b" not in text


def test_the_command_returns_the_exit_code(complete: pipeline.Analysed) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "qjump_mn.analysis", str(complete.run.path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=120,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[-1].split()[-1] == str(complete.run.path)


def test_the_command_on_no_run_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([str(tmp_path)]) == 2
    assert (
        capsys.readouterr().err
        == f"qjump-mn: {tmp_path} is no run directory: it has no manifest.json\n"
    )


@pytest.fixture
def no_pdf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of a figure's time goes into the fonts of its PDF."""
    monkeypatch.setattr(style, "FORMATS", ("png", "svg"))


# Fidelity: each check fails when it should


def small(tmp_path: Path, preset: str = "smoke", settings: list[str] | None = None) -> RunDirectory:
    return synthetic.make(tmp_path / "results", preset, settings=settings)


def checked(run: RunDirectory) -> dict[str, Check]:
    manifest = run.manifest
    data, missing = pipeline.read_trials(run, manifest)
    return {check.name: check for check in fidelity.checks(run, manifest, data, missing)}


def rewrite(run: RunDirectory, arm: str, change: Callable[[Trial], None]) -> None:
    """Change what a trial left and hash it anew, as if the trial itself had left that."""
    trial = next(trial for trial in run.manifest.plan.trials() if trial.arm.name == arm)
    change(trial)
    run.finish(trial.name, run.manifest.trials[trial.name])


def alter_facts(run: RunDirectory, **facts: Any) -> Callable[[Trial], None]:
    def change(trial: Trial) -> None:
        path = run.trial(trial.name) / "trial.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))

    return change


def alter_ping(
    run: RunDirectory, milliseconds: Callable[[float], float]
) -> Callable[[Trial], None]:
    def change(trial: Trial) -> None:
        path = run.raw(trial.name) / "ping-h8-h10.ping.txt"
        path.write_text(
            re.sub(
                r"time=([\d.]+) ms",
                lambda match: f"time={milliseconds(float(match[1])):.3f} ms",
                path.read_text(),
            )
        )

    return change


def test_idle_that_is_no_constant_fails(tmp_path: Path) -> None:
    run = small(tmp_path)
    counter = iter(range(10**6))
    rewrite(run, "idle", alter_ping(run, lambda value: value + 0.06 * (next(counter) % 3)))
    check = checked(run)["idle RTT"]
    assert check.status == "fail"
    assert "the network was not idle" in check.text


@pytest.mark.parametrize(("shift", "status"), [(-0.02, "fail"), (0.005, "pass"), (0.02, "fail")])
def test_idle_that_differs_from_the_wire_by_more_than_a_hundredth_of_a_frame_fails(
    tmp_path: Path, shift: float, status: str
) -> None:
    run = small(tmp_path)
    rewrite(run, "idle", alter_ping(run, lambda value: value + shift))
    check = checked(run)["idle RTT"]
    assert check.status == status
    assert ("us, more than 13.3 us" in check.text) == (status == "fail")


def test_idle_is_not_judged_on_other_links_or_the_real_clock(tmp_path: Path) -> None:
    check = checked(small(tmp_path, settings=["link.model=htb"]))["idle RTT"]
    assert (check.status, "over links of model wire" in check.text) == ("unknown", True)
    assert checked(synthetic.make(tmp_path / "real", clock="real"))["idle RTT"].status == "unknown"


def test_busy_cpu_fails(tmp_path: Path) -> None:
    run = small(tmp_path)
    rewrite(run, "qjump", alter_facts(run, cpu_busy=0.71))
    check = checked(run)["CPU"]
    assert (check.status, check.text) == (
        "fail",
        "qjump/1: 71% busy, 70% is the most: lower link.rate or the load",
    )


@pytest.mark.parametrize(("p99_us", "status"), [(4999.0, "pass"), (5000.0, "fail")])
def test_a_cpu_that_programs_wait_for_fails(tmp_path: Path, p99_us: float, status: str) -> None:
    run = small(tmp_path)
    rewrite(run, "qjump", alter_facts(run, cpu_late_us={"p50": 1.0, "p99": p99_us, "max": 9000.0}))
    check = checked(run)["CPU"]
    assert check.status == status
    assert (
        "qjump/1: one wake-up of a hundred is 5 ms late or more, 5 ms is the most" in check.text
    ) == (status == "fail")


def test_in_the_guest_nothing_is_late_and_on_a_host_that_is_told(tmp_path: Path) -> None:
    check = checked(small(tmp_path))["CPU"]
    assert (check.status, check.text.endswith("; nothing was late, by construction")) == (
        "pass",
        True,
    )
    (tmp_path / "host").mkdir()
    plan = resolve.plan("fig3a", "smoke", [], only=["idle"], backend="host")
    run = synthetic.create(tmp_path / "host", plan, clock="real")
    synthetic.add(run)
    check = checked(run)["CPU"]
    untold = "idle/1: trial.json does not say how late programs got the CPU"
    assert (check.status, check.text) == ("fail", untold)


def test_bulk_that_ends_early_fails(tmp_path: Path) -> None:
    run = small(tmp_path)
    rewrite(run, "contended", alter_facts(run, window_s=[4.0, 9.0]))
    check = checked(run)["bulk flows"]
    assert check.status == "fail"
    assert "contended/1: h7>h10 ended at 7.00 s at the sender, the window at 8.00 s" in check.text
    assert check.text.endswith("and 3 more")


def test_bulk_with_too_few_streams_fails(tmp_path: Path) -> None:
    run = small(tmp_path, settings=["workloads.bulk.streams=2"])
    assert checked(run)["bulk flows"].status == "pass"

    def one_stream(trial: Trial) -> None:
        path = run.raw(trial.name) / "bulk-h7-h10.server.json"
        report = json.loads(path.read_text())
        for interval in report["intervals"]:
            del interval["streams"][1]
        path.write_text(json.dumps(report))

    rewrite(run, "contended", one_stream)
    assert "h7>h10 has 1 of 2 streams at the receiver" in checked(run)["bulk flows"].text


def test_pings_that_are_not_accounted_for_fail(tmp_path: Path) -> None:
    run = small(tmp_path)
    manifest = run.manifest
    data, _ = pipeline.read_trials(run, manifest)
    cut = [
        msgspec.structs.replace(one, tables={**one.tables, "ping": one.tables["ping"].slice(1)})
        if one.trial.arm.name == "idle"
        else one
        for one in data
    ]
    check = next(
        check for check in fidelity.checks(run, manifest, cut, {}) if check.name == "pings"
    )
    sent = data[0].tables["ping"].num_rows
    assert (check.status, check.text) == (
        "fail",
        f"idle/1: {sent - 1} of {sent} requests h8>h10 are accounted for",
    )


def test_pings_that_do_not_keep_their_interval_fail(tmp_path: Path) -> None:
    run = small(tmp_path)

    def slower(trial: Trial) -> None:
        path = run.raw(trial.name) / "ping-h8-h10.ping.txt"
        stamps = re.compile(r"^\[([\d.]+)\]", re.MULTILINE)
        path.write_text(
            stamps.sub(
                lambda match: (
                    f"[{synthetic.START + (float(match[1]) - synthetic.START) * 1.6:.6f}]"
                ),
                path.read_text(),
            )
        )

    assert "sent at an interval within 0" in checked(run)["pings"].text
    rewrite(run, "idle", slower)
    check = checked(run)["pings"]
    assert (check.status, check.text) == (
        "fail",
        "idle/1: h8>h10 sends at an interval that is +60.0 % off",
    )


@pytest.mark.usefixtures("no_pdf")
def test_a_tampered_file_fails(tmp_path: Path) -> None:
    run = small(tmp_path)
    path = run.raw("qjump/1") / "ping-h8-h10.ping.txt"
    path.write_text(path.read_text().replace("time=2.", "time=1."))
    analysed = pipeline.analyse(run.path)
    assert {row.verdict for row in analysed.outcome.verdicts} == {"INVALID"}
    assert analysed.outcome.exit_code == 4
    assert (
        "trials/qjump/1/raw/ping-h8-h10.ping.txt is not what the trial left"
        in formatting.fidelity(analysed.outcome)
    )


def test_a_changed_plan_fails(tmp_path: Path) -> None:
    run = small(tmp_path)
    path = run.path / manifests.NAME
    before = path.read_text()
    for old, new, sentence in (
        (
            '"warmup_ns": 3',
            '"warmup_ns": 2',
            "the plan in the manifest is not the one that was run",
        ),
        (
            '"rate_mbps": 10.0',
            '"rate_mbps": 11.0',
            "the claims in the manifest are not those of the run",
        ),
        (
            '"predicate": "',
            '"predicate": "1 < 2 or ',
            "the claims in the manifest are not those of the run",
        ),
    ):
        assert old in before
        path.write_text(before.replace(old, new))
        check = checked(run)["files"]
        assert (check.status, check.text) == ("fail", sentence)
    path.write_text(before.replace('"title": "', '"title": "Another title: '))
    assert checked(run)["files"].status == "pass"


@pytest.mark.usefixtures("no_pdf")
def test_half_the_round_trips_and_one_hash_in_the_manifest_are_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does such a run become a reference, or is it called identical to itself."""
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    (folder := tmp_path / "experiments" / "reference").mkdir(parents=True)
    run = small(tmp_path)
    assert [command.main([str(run.path), *to]) for to in (("--reference", str(folder)), ())] == [
        0,
        0,
    ]
    assert outcome.read(run.path).reference.startswith("identical to the reference run")
    trial = next(trial for trial in run.manifest.plan.trials() if trial.arm.name == "qjump")
    alter_ping(run, lambda value: value / 2)(trial)
    path = f"trials/{trial.name}/raw/ping-h8-h10.ping.txt"
    files = {**run.manifest.files, path: manifests.sha256_of(run.path / path)}
    manifests.write(run.path, msgspec.structs.replace(run.manifest, files=files))
    assert command.main([str(run.path)]) == 4
    result = outcome.read(run.path)
    check = next(check for check in result.checks if check.name == "files")
    assert (check.status, check.text) == (
        "fail",
        f"trials/{trial.name}/DONE has the digest of other files",
    )
    assert {row.verdict for row in result.verdicts} == {"INVALID"}
    assert result.reference.startswith("not compared: the run is not valid; results sha256 ")
    assert command.main([str(run.path), "--reference", str(folder)]) == 2


@pytest.mark.usefixtures("no_pdf")
def test_an_invalid_trial_fails(tmp_path: Path) -> None:
    run = small(tmp_path)
    run.finish(
        "qjump/1",
        TrialRecord(status="invalid", exit_code=4, message="h8-eth0: its MTU is 1496, not 1500"),
    )
    analysed = pipeline.analyse(run.path)
    check = next(check for check in analysed.outcome.checks if check.name == "as built")
    assert (check.status, check.text) == ("fail", "qjump/1: h8-eth0: its MTU is 1496, not 1500")
    assert analysed.outcome.exit_code == 4


def alter_read_back(
    run: RunDirectory, name: str, change: Callable[[str], str]
) -> Callable[[Trial], None]:
    def alter(trial: Trial) -> None:
        path = run.asbuilt(trial.name) / "before" / name
        path.write_text(change(path.read_text()))

    return alter


def without_limiter(text: str) -> str:
    return json.dumps([qdisc for qdisc in json.loads(text) if qdisc["kind"] != "qjump"])


@pytest.mark.usefixtures("no_pdf")
def test_a_limiter_that_was_not_read_back_makes_the_run_invalid(tmp_path: Path) -> None:
    """Whatever the manifest says of the trial, and though all hashes fit."""
    run = small(tmp_path)
    rewrite(run, "qjump", alter_read_back(run, "tc-h8.json", without_limiter))
    assert run.manifest.trials["qjump/1"].status == "done"
    analysed = pipeline.analyse(run.path)
    failed = {check.name: check.text for check in analysed.outcome.checks if check.status == "fail"}
    assert failed == {"as built": "qjump/1: h8-eth0: it has 0 qjump qdiscs, not one"}
    assert analysed.outcome.exit_code == 4
    assert {row.verdict for row in analysed.outcome.verdicts} == {"INVALID"}


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("tc-h8.json", None, "asbuilt/before/tc-h8.json is missing or empty"),
        ("ip-switches.json", "", "asbuilt/before/ip-switches.json is missing or empty"),
        ("ethtool-h8.txt", None, "asbuilt/before/ethtool-h8.txt is missing or empty"),
        ("tc-h8.json", "[{", "asbuilt/before cannot be compared with the plan: JSONDecodeError: "),
        ("tc-h8.json", "[1]", "asbuilt/before cannot be compared with the plan: TypeError: "),
        (
            "ip-h8.json",
            '[{"ifname": []}]',
            "asbuilt/before cannot be compared with the plan: TypeError: ",
        ),
        (
            "tc-h8.json",
            "[" * 10**5,
            "asbuilt/before cannot be compared with the plan: RecursionError: ",
        ),
    ],
)
def test_a_read_back_that_is_missing_or_damaged_fails(
    tmp_path: Path, name: str, content: str | None, sentence: str
) -> None:
    run = small(tmp_path)
    path = run.asbuilt("qjump/1") / "before" / name
    path.unlink() if content is None else path.write_text(content)
    run.finish("qjump/1", TrialRecord(status="done", exit_code=0))
    check = checked(run)["as built"]
    assert check.status == "fail" and check.text.startswith(f"qjump/1: {sentence}"), check.text


# Trials that are copies of others


def copy_output(run: RunDirectory, source: str, target: str) -> None:
    """Give one trial the raw output of another, and hash it anew."""
    shutil.rmtree(run.raw(target))
    shutil.copytree(run.raw(source), run.raw(target))
    run.finish(target, run.manifest.trials[target])


@pytest.mark.usefixtures("no_pdf")
def test_a_seed_with_the_output_of_another_is_a_copy(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path, replicates=2, only=["idle", "contended"])
    assert checked(run)["files"].status == "pass"
    copy_output(run, "contended/1", "contended/2")
    analysed = pipeline.analyse(run.path)
    (check,) = (check for check in analysed.outcome.checks if check.status == "fail")
    sentence = "contended/2 has the output of contended/1, byte for byte: it is a copy"
    assert (check.name, check.text, analysed.outcome.exit_code) == ("files", sentence, 4)


@pytest.mark.parametrize(("clock", "status"), [("virtual", "pass"), ("real", "fail")])
def test_arms_of_one_seed_may_be_alike_on_the_virtual_clock_only(
    tmp_path: Path, clock: Clock, status: str
) -> None:
    """There an arm whose difference has no effect leaves the same."""
    run = synthetic.make(tmp_path, only=["contended", "qjump"], clock=clock)
    copy_output(run, "contended/1", "qjump/1")
    assert checked(run)["files"].status == status


@pytest.mark.parametrize(
    ("experiment", "preset", "count"), [("fig9", "smoke", 1), ("fig3a", "10g", 0)]
)
def test_seeds_may_be_alike_in_the_simulator_where_nothing_is_drawn(
    tmp_path: Path, experiment: str, preset: str, count: int
) -> None:
    plan = resolve.plan(experiment, preset, [], replicates=2, backend="simulator")
    trials = [trial for trial in plan.trials() if trial.arm.name == plan.run.arms[0].name]
    manifest = msgspec.structs.replace(
        synthetic.create(tmp_path, plan).manifest,
        backend="simulator",
        files={f"trials/{trial.name}/raw/flows.csv": "0" * 64 for trial in trials},
    )
    data = [TrialTables(trial, FACTS, {}, None) for trial in trials]
    assert len(data) == 2 and len(copies.sentences(manifest, data)) == count


# Runs that are not complete


@pytest.mark.usefixtures("no_pdf")
def test_a_lost_trial_is_named_and_its_claims_are_not_run(tmp_path: Path) -> None:
    run = small(tmp_path)
    run.finish(
        "qjump/1", TrialRecord(status="lost", exit_code=5, message="the guest died: Kernel panic")
    )
    analysed = pipeline.analyse(run.path)
    assert analysed.outcome.missing == {"qjump/1": "lost: the guest died: Kernel panic"}
    verdicts = {row.claim: row.verdict for row in analysed.outcome.verdicts}
    assert verdicts["order"] == verdicts["throughput"] == "NOT RUN"
    assert verdicts["limiter_drops"] == verdicts["contended"] == "REPRODUCED"
    assert analysed.outcome.exit_code == 5
    text = printed(analysed, verbose=True)
    assert "Missing: 1 of 9 trials" in text
    assert "qjump/1: lost: the guest died: Kernel panic" in text
    assert "Fidelity incomplete: complete: 8 of 9 trials done" in text


@pytest.mark.usefixtures("no_pdf")
def test_an_interrupted_run_and_one_without_any_trial(tmp_path: Path) -> None:
    plan = resolve.plan("fig3a", "smoke", [])
    run = synthetic.create(tmp_path, plan)
    analysed = pipeline.analyse(run.path)
    assert {row.verdict for row in analysed.outcome.verdicts} == {"NOT RUN"}
    assert analysed.outcome.drawings == ()
    assert analysed.outcome.exit_code == 5
    printed(analysed)
    trial = plan.trials()[0]
    synthetic.write_trial(run, trial)
    run.finish(trial.name, TrialRecord(status="done", exit_code=0))
    synthetic.write_trial(run, plan.trials()[1])  # killed before it was marked done
    analysed = pipeline.analyse(run.path)
    assert analysed.outcome.missing == {one.name: "not run" for one in plan.trials()[1:]}
    assert [figure.name for figure in analysed.outcome.drawings] == ["latency_cdf"]


@pytest.mark.usefixtures("no_pdf")
def test_an_unreadable_trial_is_missing(tmp_path: Path) -> None:
    run = small(tmp_path)
    (run.raw("qjump/1") / "ping-h8-h10.ping.txt").unlink()
    analysed = pipeline.analyse(run.path)
    assert analysed.outcome.missing == {
        "qjump/1": "unreadable: ping on h8: raw/ping-h8-h10.ping.txt cannot be read: no such file or directory"
    }
    assert analysed.outcome.exit_code == 4


@pytest.mark.usefixtures("no_pdf")
def test_htb2015_is_analysed(tmp_path: Path) -> None:
    analysed = pipeline.analyse(small(tmp_path, "htb2015").path)
    assert analysed.manifest.plan.shown.network.model == "htb"
    assert [check.name for check in analysed.outcome.checks if check.status == "fail"] == []
    verdicts = {verdict.claim: verdict.verdict for verdict in analysed.outcome.verdicts}
    assert analysed.outcome.exit_code == 1
    assert (verdicts.pop("contended"), verdicts.pop("order")) == (
        "NOT REPRODUCED",
        "DIRECTION ONLY",
    )
    assert len(verdicts) == 6 and set(verdicts.values()) == {"REPRODUCED"}


def of_arms(width: int | None) -> list[str]:
    """The table of a Hadoop experiment's arms, whose names are long and whose columns are many."""
    plan = resolve.plan("hadoop-ect", "smoke", [])
    arms = [
        ArmSummary(
            name=arm.name,
            label=arm.label,
            scheme=plan.shown.schemes[arm.scheme.name].label,
            planned=1,
            done=1,
            measures={},
            flows={},
        )
        for arm in plan.run.arms
    ]
    console = Console(width=width or 80, file=io.StringIO(), record=True)
    for table in terminal.arms_tables(plan, arms, width):
        console.print(table)
    return console.export_text().splitlines()


@pytest.mark.parametrize("width", [50, 80, 100, 120, 160])
def test_the_names_of_arms_stand_beside_each_part_of_their_numbers(width: int) -> None:
    lines = of_arms(width)
    plan = resolve.plan("hadoop-ect", "smoke", [])
    heads = [line for line in lines if line.split()[:1] == ["arm"]]
    words = " ".join(lines).split()
    assert "…" not in "".join(lines) and all(len(line) <= width for line in lines)
    assert "scheme" in heads[0].split() and heads[-1].split()[-1] == "n" and "timeouts" in words
    for value in ("200ms", "10ms", "1ms"):
        assert words.count(value) == len(heads) * sum(
            arm.label.endswith(f" {value}") for arm in plan.run.arms
        )
    assert (len(heads) == 1) == (width > 80)


def test_a_file_has_all_columns_whatever_the_terminal(complete: pipeline.Analysed) -> None:
    text = printed(complete, 40, is_terminal=False)
    (head,) = (line for line in text.splitlines() if line.startswith("arm "))
    assert head.split()[:2] == ["arm", "scheme"] and head.split()[-1] == "n"
    assert "…" not in text
    for arm in complete.manifest.plan.arms:
        assert any(line.startswith(f"{arm.label}  ") for line in text.splitlines())
