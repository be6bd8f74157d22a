"""``check`` of what strangers hand in: forged bundles meet their limits, a class gives a table, and root's half
leaves everything to an ordinary user."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from qjump_mn import unprivileged
from qjump_mn.analysis import pipeline
from qjump_mn.bundle import archive, checking, handing_in, writing
from qjump_mn.errors import InvalidRunError, UsageError
from qjump_mn.model import resolve
from qjump_mn.results import directory
from qjump_mn.results.directory import Caller, RunDirectory
from tests import synthetic

CHECKOUT = Path(__file__).resolve().parents[1]
COMMAND = (CHECKOUT / "examples/experiments/command.toml").read_text()
NUMBER = r"regex = 'time=([0-9.]+) ms'"
BACKTRACKING = r"regex = '((?:\d+)+)x'"
"""A time that doubles with every digit."""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run of two arms that was judged."""
    run = synthetic.make(tmp_path_factory.mktemp("judged"), only=["idle", "contended"])
    pipeline.analyse(run.path)
    return run


@pytest.fixture(scope="module")
def good(judged: RunDirectory) -> Path:
    """Its bundle."""
    return writing.write(judged.path, judged.path.parent / "good.zip")


def packed(run: Path, target: Path) -> Path:
    """A bundle of all that is in the folder, whatever it is; its hashes agree."""
    archive.write(
        target, {path.relative_to(run).as_posix(): path for path in run.rglob("*") if path.is_file()}
    )
    return target


def forged(judged: RunDirectory, folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Its bundle with another plan in the manifest."""
    run = shutil.copytree(judged.path, folder / "forged")
    told = json.loads((run / "manifest.json").read_text())
    change(told["plan"]["run"])
    (run / "manifest.json").write_text(json.dumps(told))
    return packed(run, folder / "forged.zip")


def checked(path: Path) -> checking.Checked:
    return checking.check(path, Console(file=io.StringIO()))


def test_plan_of_two_million_seeds_is_refused(judged: RunDirectory, tmp_path: Path) -> None:
    path = forged(judged, tmp_path, lambda run: run.update(seeds=list(range(1, 2_000_001))))
    assert path.stat().st_size < 6 << 20
    began = time.monotonic()
    done = checked(path)
    assert done.problem.startswith("its plan has 4000000 trials, and a bundle has 100000 files at most")
    assert (done.code, time.monotonic() - began < checking.TIME_S) == (2, True)


def test_plan_of_days_is_judged_and_not_run_again(judged: RunDirectory, tmp_path: Path) -> None:
    path = forged(judged, tmp_path, lambda run: run.update(duration_ns=10 * 86400 * 10**9))
    done = checking.check(path, Console(file=io.StringIO()), rerun=checking.Rerun())
    assert (done.code, done.is_proved) == (4, False), done


def test_backtracking_pattern_meets_the_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "experiments").mkdir()
    assert COMMAND.count(NUMBER) == 1
    (tmp_path / "experiments/command.toml").write_text(COMMAND.replace(NUMBER, BACKTRACKING))
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    run = synthetic.create(tmp_path / "runs", resolve.plan("command", "course", []))
    for trial in run.manifest.plan.trials():
        synthetic.write_trial(run, trial)
        for workload in trial.arm.workloads:
            for flow in workload.flows:
                name = f"{workload.name}-{flow[0]}-{flow[1]}.command.txt"
                (run.raw(trial.name) / name).write_text("1" * 60)
        run.finish(trial.name, synthetic.DONE)
    monkeypatch.setattr(checking, "TIME_S", 12)
    done = checked(packed(run.path, tmp_path / "forged.zip"))
    assert done.problem == "the run cannot be judged within 12 s of processor time", done
    assert (done.code, done.verdict) == (4, "not believable")


def test_more_memory_than_judging_may_take_is_a_sentence(
    judged: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(shutil.copytree(judged.path, tmp_path / "run"))
    for file in run.raw("contended/1").glob("ping*"):
        with file.open("ab") as made:
            made.truncate(500 << 20)
    run.finish("contended/1", synthetic.DONE)
    monkeypatch.setattr(checking, "MEMORY_BYTES", 1 << 30)
    done = checked(packed(run.path, tmp_path / "forged.zip"))
    assert done.problem == "the run cannot be judged within 1024 MiB of memory", done
    assert done.code == InvalidRunError.exit_code
