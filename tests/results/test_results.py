"""The run directory: made, interrupted, read; its tables and its outcome."""

from __future__ import annotations

import ast
import datetime
import hashlib
import itertools
import math
import os
import shutil
import signal
import stat
import statistics
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import qjump_mn
from qjump_mn import resolve
from qjump_mn.errors import LostError, MachineError, UsageError
from qjump_mn.process.files import write_atomically
from qjump_mn.programs.ping.program import PingPlan
from qjump_mn.results import (
    bootstrap,
    contents,
    directory,
    manifest,
    outcome,
    result_tables,
    tables,
)
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import TrialRecord
from qjump_mn.results.outcome import Spread
from tests.support import synthetic
from tests.support.processes import printed
from tests.support.synthetic import DONE, add, discrepancies, results

PLAN = resolve.plan("fig3a", "smoke", [])


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return synthetic.create(tmp_path / "results", PLAN)


def test_a_new_run_has_a_name_a_manifest_and_the_last_link(run: RunDirectory) -> None:
    assert run.path.name == f"fig3a-20260102T030405Z-{run.manifest.plan_sha256[:12]}"
    assert (run.path.parent / "last").resolve() == run.path
    assert run.manifest.plan == PLAN
    assert run.manifest.plan.hash == run.manifest.plan_sha256
    assert run.manifest.started_utc == "2026-01-02T03:04:05Z"
    assert run.manifest.order == tuple(trial.name for trial in PLAN.trials())


@pytest.mark.parametrize("word", ["\x1b[2J", "\x7f", "\x9b2J", "\0"])
def test_words_that_a_terminal_would_obey_are_refused(word: str, run: RunDirectory) -> None:
    evil = replace(run.manifest, versions={"qjump-mn": f"1{word}"})
    with pytest.raises(UsageError, match="has control characters"):
        manifest.write(run.path, evil)
    content = msgspec.json.encode(evil)
    for same in (content, content.replace(b"\\u001b", b"\\u001B")):
        (run.path / manifest.NAME).write_bytes(same)
        with pytest.raises(UsageError, match="has control characters"):
            manifest.read(run.path)
    manifest.write(run.path, replace(evil, versions={"qjump-mn": "1\n\t\u00a0\u2192"}))


def test_two_runs_in_one_second_have_two_folders(run: RunDirectory) -> None:
    second = synthetic.create(run.path.parent, PLAN)
    assert second.path.name == run.path.name + "-2"
    assert (run.path.parent / "last").resolve() == second.path


def test_somebodys_own_file_called_last_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "last").write_text("mine")
    synthetic.create(tmp_path, PLAN)
    assert (tmp_path / "last").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        UsageError,
        match=r"results cannot be written to .*/file/out \(.+\): use --out with a folder that you may write$",
    ):
        synthetic.create(tmp_path / "file" / "out", PLAN)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_a_folder_of_another_user_is_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    code = f"""
import os, pathlib
from qjump_mn.errors import UsageError
from tests.support import synthetic
os.seteuid(65534)
try:
    synthetic.create(pathlib.Path({str(tmp_path)!r}) / "out", synthetic.resolve.plan("fig3a", "smoke", []))
except UsageError as error:
    print(error)
"""
    assert "permission denied" in printed(code)


def test_no_room_is_one_sentence(tmp_path: Path) -> None:
    sentence = r"no room for the results: .* has \d+ MiB of the \d+ MiB"
    with pytest.raises(MachineError, match=sentence):
        synthetic.create(tmp_path, PLAN, needs_bytes=1 << 60)


def test_done_is_written_last_and_only_when_done(run: RunDirectory) -> None:
    name = add(run)
    assert run.is_done(name)
    assert (run.trial(name) / "DONE").read_text().strip() == manifest.digest(run.manifest.files)
    run.finish(
        name, TrialRecord(status="lost", exit_code=5, message="the guest died: Kernel panic")
    )
    assert not run.is_done(name)
    assert run.lost() == {name: "the guest died: Kernel panic"}


def test_preparing_again_leaves_nothing_of_the_first_attempt(run: RunDirectory) -> None:
    name = add(run)
    run.prepare(name)
    assert not run.is_done(name)
    assert not list(run.trial(name).iterdir())


def test_digest_is_independent_of_the_trials_order(run: RunDirectory, tmp_path: Path) -> None:
    add(run, "idle")
    add(run, "qjump")
    other = synthetic.create(tmp_path / "other", PLAN)
    add(other, "qjump")
    add(other, "idle")
    assert results(run) == results(other)
    add(other, "contended")
    assert results(run).sha256 != results(other).sha256
    assert results(run).trials.items() < results(other).trials.items()


def test_the_digest_is_that_of_sha256sum(run: RunDirectory) -> None:
    add(run, "qjump")
    files = sorted(
        path.relative_to(run.path).as_posix() for path in run.path.glob("trials/*/*/raw/*")
    )
    listing = subprocess.run(
        ["sha256sum", *files], cwd=run.path, capture_output=True, check=True
    ).stdout
    assert (
        hashlib.sha256(listing).hexdigest() == results(run).sha256 == results(run).trials["qjump/1"]
    )


def test_trials_may_finish_at_once(run: RunDirectory) -> None:
    threads = [threading.Thread(target=add, args=(run, arm.name)) for arm in PLAN.arms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(run.manifest.trials) == {trial.name for trial in PLAN.trials()}
    assert not discrepancies(run)


def test_tables_are_no_output_of_a_trial(run: RunDirectory) -> None:
    name = add(run)
    tables.build(run, PLAN.trials()[0])
    assert not discrepancies(run)
    run.finish(name, DONE)
    assert not any("/data/" in path for path in run.manifest.files)


def test_killed_while_writing_the_manifest_is_whole(run: RunDirectory) -> None:
    """A process that does nothing but replace the manifest is killed at any time, again and again."""
    add(run)
    code = f"""
import pathlib
from qjump_mn.results import manifest
folder = pathlib.Path({str(run.path)!r})
now = manifest.read(folder)
print("ready", flush=True)
while True:
    manifest.write(folder, now)
"""
    before = run.manifest
    for pause in range(10):
        with subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            cwd=Path(qjump_mn.__file__).parents[1],
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.002 * pause)
            process.send_signal(signal.SIGKILL)
        assert run.manifest == before


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_others_may_read(run: RunDirectory) -> None:
    assert stat.S_IMODE((run.path / "manifest.json").stat().st_mode) == 0o644


def test_no_run_directory_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no run directory"):
        directory.existing(tmp_path / "none")
    with pytest.raises(UsageError, match=r"is no run directory: it has no manifest\.json"):
        directory.existing(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(UsageError, match="is no manifest"):
        directory.existing(tmp_path)
    (tmp_path / "manifest.json").write_text('{"schema": 2}')
    with pytest.raises(UsageError, match="has schema 2, this qjump-mn reads schema 3"):
        directory.existing(tmp_path)
    made_by = '"versions": {"qjump-mn": "0.0.9"}, "git": {"commit": "abc", "dirty": false}'
    (tmp_path / "manifest.json").write_text(f'{{"schema": 3, {made_by}}}')
    with pytest.raises(
        UsageError,
        match=r"is no manifest of this version: .*: use the one that made it, 0\.0\.9, commit abc$",
    ):
        directory.existing(tmp_path)


def test_log_lines_of_several_threads_are_whole(run: RunDirectory) -> None:
    def tick() -> None:
        for _ in range(50):
            run.log("tick", text="x" * 500)

    threads = [threading.Thread(target=tick) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (run.path / "log.jsonl").read_text().splitlines()
    assert len(lines) == 200
    assert {msgspec.json.decode(line)["event"] for line in lines} == {"tick"}


@pytest.mark.skipif(os.geteuid() != 0, reason="sudo's part is root's")
def test_all_belongs_to_sudos_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "12345")
    monkeypatch.setenv("SUDO_GID", "12346")
    outside = tmp_path / "outside"
    outside.touch()
    run = synthetic.create(tmp_path / "a" / "results", PLAN)
    name = add(run)
    (run.raw(name) / "link").symlink_to(outside)
    run.finish(name, DONE)
    run.close(synthetic.NOW)
    for path in (
        tmp_path / "a",
        run.path.parent,
        run.path.parent / "last",
        run.path,
        *run.path.rglob("*"),
    ):
        assert (path.lstat().st_uid, path.lstat().st_gid) == (12345, 12346), path
    assert outside.stat().st_uid == 0


def test_close_enters_the_end_and_the_machine(run: RunDirectory) -> None:
    run.enter_machine({"job": "abc"})
    assert run.manifest.ended_utc is None
    run.close(synthetic.NOW + datetime.timedelta(seconds=61))
    assert run.manifest.ended_utc == "2026-01-02T03:05:06Z"
    assert run.manifest.machine["job"] == "abc"
    assert run.manifest.machine["image"]


def test_manifest_and_directory_import_nothing_that_sudo_has_not() -> None:
    code = "import sys; import qjump_mn.results.directory; print(*{name.split('.')[0] for name in sys.modules})"
    assert not {"numpy", "pyarrow", "matplotlib", "jinja2", "rich", "typer"} & set(
        printed(code).split()
    )
    for module in (contents, directory, manifest):
        tree = ast.parse(Path(str(module.__file__)).read_text())
        imported = {
            node.module.split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
        }
        imported |= {
            alias.name.split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert imported <= {*sys.stdlib_module_names, "msgspec", "qjump_mn"}


# Tables


def test_tables_have_a_row_for_every_request_and_interval(run: RunDirectory) -> None:
    trial = next(trial for trial in PLAN.trials() if trial.arm.name == "limiter_drop")
    synthetic.write_trial(run, trial)
    data = tables.build(run, trial)
    (workload,) = trial.arm.workloads
    assert isinstance(workload, PingPlan)
    table = data.tables[workload.name]
    assert table.schema == tables.schema(workload)
    assert table["sequence"].to_pylist() == list(range(1, workload.count + 1))
    lost = round(PLAN.judged.constants["limiter_drop_predicted_loss"] * workload.count)
    assert table["latency_us"].null_count == table["received_s"].null_count == lost > 0
    assert table["flow"].unique().to_pylist() == ["h8>h10"]
    assert pq.read_table(run.data(trial.name) / f"{workload.name}.parquet").equals(table)


def test_bulk_tables_have_both_ends_of_every_flow(run: RunDirectory) -> None:
    trial = next(trial for trial in PLAN.trials() if trial.arm.name == "contended")
    synthetic.write_trial(run, trial)
    table = tables.build(run, trial).tables["bulk"]
    halves = round(trial.length_ns / 1e9 / 0.5)
    assert table.num_rows == 3 * 2 * halves
    assert table["flow"].unique().to_pylist() == ["h7>h10", "h9>h11", "h1>h12"]
    assert table["retransmits"].null_count == 3 * halves


def test_damaged_output_is_lost_and_named(run: RunDirectory) -> None:
    trial = next(trial for trial in PLAN.trials() if trial.arm.name == "contended")
    synthetic.write_trial(run, trial)
    path = run.raw(trial.name) / "bulk-h9-h11.server.json"
    path.write_text(path.read_text()[:1000])
    with pytest.raises(LostError, match=r"raw/bulk-h9-h11\.server\.json: "):
        tables.build(run, trial)
    path.unlink()
    with pytest.raises(
        LostError, match=r"raw/bulk-h9-h11\.server\.json cannot be read: no such file"
    ):
        tables.build(run, trial)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(
        LostError,
        match=r"raw/bulk-h9-h11\.server\.json is not what this version reads: UnicodeDecodeError: ",
    ):
        tables.build(run, trial)
    path.write_text('{"intervals": [{"sums": []}]}')
    with pytest.raises(
        LostError,
        match=r"raw/bulk-h9-h11\.server\.json is not what this version reads: KeyError: 'streams'",
    ):
        tables.build(run, trial)
    (run.trial(trial.name) / "trial.json").write_text('{"cpu_busy": "much"}')
    with pytest.raises(LostError, match=r"trial\.json cannot be read"):
        tables.build(run, trial)


# Outcome


def test_outcome_is_read_back(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no verdicts\.json: run  qjump-mn report "):
        outcome.read(tmp_path)
    (tmp_path / "verdicts.json").write_text("{}")
    with pytest.raises(UsageError, match="is not of this version"):
        outcome.read(tmp_path)


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 1000), st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_spread_has_an_interval_from_three_seeds_on(by_seed: dict[int, float]) -> None:
    spread = Spread.of(by_seed)
    assert spread.seeds == tuple(sorted(by_seed))
    assert spread.minimum <= spread.median <= spread.maximum
    assert (spread.interval95 is None) == (len(by_seed) < 3)
    if spread.interval95:
        low, high = spread.interval95
        assert spread.minimum <= low <= spread.median <= high <= spread.maximum


def enumerated(values: list[float]) -> tuple[float, float]:
    """The 2.5th and 97.5th percentile of the medians of all resamples, as the definition has it."""
    drawn = itertools.product(values, repeat=len(values))
    medians = sorted(statistics.median(resample) for resample in drawn)
    tail = math.ceil(len(medians) / 40)
    return medians[tail - 1], medians[-tail]


@pytest.mark.parametrize(
    "values", [[7.0, 1.0, 4.0], [2.0, 9.0, 3.0, 3.0], [5.0, 1.0, 8.0, 2.0, 11.0]]
)
def test_an_interval_of_few_seeds_is_that_of_all_resamples(values: list[float]) -> None:
    found = bootstrap.interval95(values)
    assert found == enumerated(values) == (min(values), max(values))


def test_an_interval_of_many_seeds_is_that_of_the_order_statistics() -> None:
    # The median of a resample of seven is at most the k-th value if four of seven draws are: binomial.
    def below(k: int) -> float:
        return sum(math.comb(7, n) * (k / 7) ** n * (1 - k / 7) ** (7 - n) for n in range(4, 8))

    assert below(1) < 0.025 < below(2)
    values = [10.0, 70.0, 20.0, 60.0, 30.0, 50.0, 40.0]
    assert bootstrap.interval95(values) == (20, 60)
    assert (
        bootstrap.interval95(range(1, 31)) == bootstrap.interval95(range(30, 0, -1)) == (10.5, 20.5)
    )


def test_an_old_run_can_be_moved(run: RunDirectory, tmp_path: Path) -> None:
    name = add(run)
    moved = directory.existing(Path(shutil.move(run.path, tmp_path / "moved")))
    assert moved.is_done(name)
    assert not discrepancies(moved)


def blocks(experiment: str, **parts: Any) -> list[tuple[list[str], list[str]]]:
    """Headings and arms of each part of the table of arms."""
    plan = resolve.plan(experiment, "smoke", [], **parts)
    arms = [synthetic.summary(arm.name, label=arm.label, done=0) for arm in plan.run.arms]
    made = result_tables.blocks(plan, arms)
    assert all(len(cells) == len(block.heads) for block in made for _, cells in block.rows)
    assert sorted(arm.name for block in made for arm, _ in block.rows) == sorted(
        arm.name for arm in arms
    )
    return [(block.heads, [arm.name for arm, _ in block.rows]) for block in made]


def test_arms_without_a_common_column_stand_apart() -> None:
    made = blocks("fig9", only=["search_tcp_0_2", "mining_tcp_0_2", "search_dctcp_0_5"])
    assert [names for _, names in made] == [
        ["search_tcp_0_2", "search_dctcp_0_5"],
        ["mining_tcp_0_2"],
    ]
    assert [heads[0].partition(":")[0] for heads, _ in made] == ["search", "mining"]
    assert all(len(heads) == 3 for heads, _ in made)


@pytest.mark.parametrize("experiment", ["fig3a", "fig7"])
def test_arms_that_share_one_stand_together(experiment: str) -> None:
    ((heads, names),) = blocks(experiment)
    assert len(heads) > 3 and len(names) > 5
