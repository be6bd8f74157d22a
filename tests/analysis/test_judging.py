"""The process that judges a run: whose it is, and when it ends."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from pathlib import Path

import pytest

from qjump_mn.analysis.judging import Judge, judging
from qjump_mn.results import outcome
from tests.support import synthetic
from tests.support.processes import execute

TOO_LITTLE_BYTES = 120 << 20
"""Enough for the command itself; in the analysis OpenBLAS, which NumPy loads, ends the process with
1."""


@pytest.mark.skipif(os.geteuid() != 0, reason="sudo's part is root's")
def test_under_sudo_it_is_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "12345")
    monkeypatch.setenv("SUDO_GID", "12346")
    with judging(tmp_path) as process:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        process.kill()
    said = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert (said["Uid"].split(), said["Gid"].split()) == (["12345"] * 4, ["12346"] * 4)
    assert said["Groups"].split() == []


def test_one_that_is_called_in_early_judges_what_is_there_when_it_is_told(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path, only=["idle"])
    done = run.trial("idle/1") / "DONE"
    mark = done.read_bytes()
    done.unlink()
    with Judge(run.path) as judge:
        judge.call_in()
        time.sleep(0.1)
        assert not (run.path / outcome.NAME).exists()
        done.write_bytes(mark)
        judge.call_in()
        assert judge.judge() == 0
    assert outcome.read(run.path).missing == {}


def test_one_that_is_never_told_leaves_nothing(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path, only=["idle"])
    with Judge(run.path) as judge:
        judge.call_in()
    assert not (run.path / outcome.NAME).exists()


def test_it_ends_with_what_waits_for_it(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), judging(tmp_path) as process:
        raise KeyboardInterrupt
    assert process.returncode == -signal.SIGKILL


def test_an_analysis_that_dies_is_lost_and_no_verdict(tmp_path: Path) -> None:
    """Not even if an earlier one left verdicts with the exit status that it died with."""
    run = synthetic.make(tmp_path, only=["idle"])
    outcome.write(run.path, synthetic.outcome([], exit_code=1))
    done = execute(
        [sys.executable, "-P", "-m", "qjump_mn.run", "report", str(run.path)],
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (TOO_LITTLE_BYTES, TOO_LITTLE_BYTES)
        ),
    )
    assert done.returncode == 5, done.stderr
    assert done.stderr.endswith(
        f"qjump-mn: {run.path}: its analysis ended with exit status 1 and without a verdict, "
        f"perhaps for want of memory: run  qjump-mn report {run.path}\n"
    )
