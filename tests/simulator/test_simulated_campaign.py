"""``run all`` by the command line, in the simulator: interrupted, called again, and once more."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from qjump_mn.results import directory, outcome
from tests.simulator.short import command
from tests.support import tiny
from tests.support.processes import execute

pytestmark = [pytest.mark.guest, pytest.mark.fresh, pytest.mark.usefixtures("package")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder with three experiments, the last of which has a claim that does not hold."""
    for name, limit_ms, replicates in (("first", 1.0, 1), ("second", 1.0, 12), ("third", 1e-6, 1)):
        tiny.write(tmp_path, name, limit_ms=limit_ms, replicates=replicates)
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    return tmp_path


def called(folder: Path) -> subprocess.CompletedProcess[str]:
    argv = command(Path("out"), "all", "--preset", tiny.PRESET)
    return execute(argv, cwd=folder)


def rows(text: str) -> list[list[str]]:
    """The cells of the table at the end, but for its heads and the times."""
    table = text[text.rindex("\nexperiment ") :].splitlines()[2:]
    return [
        [*cells[:4], *cells[5:]] for cells in (re.split(r"  +", line.strip()) for line in table)
    ]


def test_what_was_interrupted_goes_on_and_what_is_done_is_found(folder: Path) -> None:
    argv = command(Path("out"), "all", "--preset", tiny.PRESET)
    with subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if "[3/12]" in line:
                break
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    (first,), (second,) = folder.glob("out/first-*"), folder.glob("out/second-*")
    assert stderr == (
        "qjump-mn: interrupted; everything that was started has been ended. The run is in "
        f"{second.relative_to(folder)}: `qjump-mn resume {second.relative_to(folder)}` goes on. "
        "The same command goes on with all experiments.\n"
    )
    assert not list(folder.glob("out/third-*"))
    before = [path.stat().st_mtime_ns for path in sorted(folder.glob("out/*-*/trials/*/*/DONE"))]
    assert 4 <= len(before) < 13

    again = called(folder)
    assert again.returncode == 1, again.stderr
    assert (
        f"experiments with preset {tiny.PRESET}: 1 done already, 1 to resume, 1 to run"
        in again.stdout
    )
    assert f"second, preset {tiny.PRESET}: {13 - len(before)} of 12 trials are left" in again.stdout
    (third,) = folder.glob("out/third-*")
    told = [
        ["first", tiny.PRESET, "found", "0", "1 REPRODUCED", f"out/{first.name}"],
        ["second", tiny.PRESET, "resumed", "0", "1 REPRODUCED", f"out/{second.name}"],
        ["third", tiny.PRESET, "run", "1", "1 NOT REPRODUCED", f"out/{third.name}"],
    ]
    assert rows(again.stdout) == told
    after = [path.stat().st_mtime_ns for path in sorted(folder.glob("out/*-*/trials/*/*/DONE"))]
    assert len(after) == 14 and set(before) < set(after)
    assert all((run / "report.html").is_file() for run in (first, second, third))
    assert outcome.read(second).exit_code == 0
    assert directory.existing(third).manifest.argv == (
        "qjump-mn", "run", "third", "--preset", tiny.PRESET, "--out", "out",
    )  # fmt: skip

    found = called(folder)
    assert (found.returncode, found.stderr) == (1, "")
    assert rows(found.stdout) == [[*row[:2], "found", *row[3:]] for row in told]
    assert after == [
        path.stat().st_mtime_ns for path in sorted(folder.glob("out/*-*/trials/*/*/DONE"))
    ]
