"""The process that judges a run: whose it is, and when it ends."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from qjump_mn.analysis import judging as analysis_process
from qjump_mn.analysis.judging import Judge, _ended, _written, judging
from qjump_mn.errors import LostError, MachineError, UsageError
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


@pytest.mark.parametrize(
    ("status", "errors", "verdict", "raised", "sentence", "passed_on"),
    [
        (1, b"a warning\n", 1, None, "", "a warning\n"),
        (0, b"", None, LostError, "exit status 0 and without a verdict", ""),
        (1, b"", 0, LostError, "exit status 1 and without a verdict", ""),
        (-9, b"", 0, LostError, "was ended by SIGKILL, perhaps for want of memory", ""),
        (2, b"a warning\nqjump-mn: two\nlines\n", 2, UsageError, "^two\nlines$", "a warning\n"),
        (3, b"qjump-mn: no disk", 3, MachineError, "^no disk$", ""),
    ],
)
def test_end_of_an_analysis_is_its_verdict_or_its_error(
    status: int,
    errors: bytes,
    verdict: int | None,
    raised: type[Exception] | None,
    sentence: str,
    passed_on: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if verdict is not None:
        outcome.write(tmp_path, synthetic.outcome([], exit_code=verdict))
    with pytest.raises(raised, match=sentence) if raised else nullcontext():
        assert _ended(tmp_path, status, None, b"printed\n", errors) == status
    assert capsys.readouterr() == ("printed\n", passed_on)


def test_old_verdict_is_not_the_one_of_an_analysis_that_wrote_none(tmp_path: Path) -> None:
    outcome.write(tmp_path, synthetic.outcome([]))
    before = _written(tmp_path)
    assert before is not None
    with pytest.raises(LostError, match="without a verdict"):
        _ended(tmp_path, 0, before, None, b"")


@pytest.mark.parametrize(
    ("options", "verbose", "words"),
    [
        ([], False, []),
        (["--pdf"], False, ["--pdf"]),
        (["--pdf", "--width", "3"], True, ["--pdf", "--width", "3", "--verbose"]),
    ],
)
@pytest.mark.parametrize("early", [False, True])
def test_process_is_started_once_with_what_is_asked_for(
    early: bool,
    options: list[str],
    verbose: bool,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, told = [], []

    class Process:
        returncode = 3

        def communicate(self, text: bytes | None) -> tuple[None, bytes]:
            told.append(text)
            return None, b"qjump-mn: no disk"

    def start(run: Path, *given: str, **popen: object) -> nullcontext[Process]:
        started.append((run, [*given], popen.get("stdin")))
        return nullcontext(Process())

    monkeypatch.setattr(analysis_process, "judging", start)
    with Judge(tmp_path, *options, verbose=verbose) as judge:
        for _ in range(2 * early):
            judge.call_in()
        with pytest.raises(MachineError, match="no disk"):
            judge.judge()
    waiting = (["--wait", *words], subprocess.PIPE) if early else (words, None)
    assert (started, told) == ([(tmp_path, *waiting)], [b"\n" if early else None])
