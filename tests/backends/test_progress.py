"""Progress while trials run, in a terminal and without one."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from rich.console import Console

from qjump_mn import resolve
from qjump_mn.analysis.measures import first_median
from qjump_mn.api import Run
from qjump_mn.backends.progress import Board
from qjump_mn.backends.protocol import Ended
from qjump_mn.backends.simulator import SimulatorBackend
from qjump_mn.backends.trial_stages import MEASURING, Stages, ticking
from qjump_mn.model.plan import Trial
from qjump_mn.results import formatting
from qjump_mn.results.directory import RunDirectory
from tests.support import tiny

PLAN = resolve.plan("fig3a", "smoke", [])
FIRST, SECOND, THIRD = PLAN.trials()[:3]


def board(out: Console, seconds: float = 10.0) -> Board:
    backend = SimulatorBackend()
    backend.parallel = 2
    trials = [FIRST, SECOND, THIRD]
    return Board(out, backend, trials, {trial.name: seconds for trial in trials})


@pytest.fixture
def text() -> io.StringIO:
    return io.StringIO()


def test_without_terminal_lines_are_occasional(
    text: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("qjump_mn.backends.progress.time.monotonic", lambda: now[0])
    with board(Console(file=text, soft_wrap=True)) as shown:
        shown.stage(FIRST, "starts")
        shown.stage(SECOND, "measures, 1 of 4 s")
        for _ in range(31):
            now[0] += 1.0
            shown.tick()
    (line,) = text.getvalue().splitlines()
    assert (
        line == f"  0:31  {FIRST.name}: starts; {SECOND.name}: measures, 1 of 4 s; about 10 s left"
    )


def test_remaining_time_follows_actual_durations(
    text: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("qjump_mn.backends.progress.time.monotonic", lambda: now[0])
    with board(Console(file=text, soft_wrap=True)) as shown:
        shown.stage(FIRST, "starts")
        shown.stage(SECOND, "starts")
        now[0] = 20.0
        shown.ended(FIRST, Ended(0, "", 1.0, 20.0))
        shown.stage(THIRD, "starts")
        now[0] = 25.0
        shown.ended(SECOND, Ended(4, "it is not what was planned", 1.0, 25.0))
        shown.ended(THIRD, Ended(0, "", 1.0, 5.0, 3.0))
    assert text.getvalue().splitlines() == [
        f"  0:20  [1/3] {FIRST.name}: done in 20 s, about 20 s left",
        f"  0:25  [2/3] {SECOND.name}: INVALID: it is not what was planned, about 18 s left",
        f"  0:25  [3/3] {THIRD.name}: done in 5 s (waited 3 s for a core)",
    ]


def test_progress_within_a_stage_is_not_a_new_stage(text: io.StringIO) -> None:
    with board(Console(file=text)) as shown:
        lines = ("starts", "measures, 1 of 4 s", "measures, 2 of 4 s", "ends")
        assert [shown.stage(FIRST, line) for line in lines] == ["starts", "measures", "", "ends"]


WAITS = "waits for a core: pid 12 since 18:02, 34 since 18:05"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the board sees."""
    now = [0.0]
    monkeypatch.setattr("qjump_mn.backends.progress.time.monotonic", lambda: now[0])
    return now


def ticks(shown: Board, clock: list[float], until_s: float) -> None:
    while clock[0] < until_s:
        clock[0] += 0.5
        shown.tick()


def test_waiting_does_not_count_as_trial_time(text: io.StringIO, clock: list[float]) -> None:
    with board(Console(file=text, soft_wrap=True)) as shown:
        shown.stage(FIRST, WAITS)
        shown.stage(SECOND, WAITS)
        shown.tick()
        clock[0] = 60.0
        shown.stage(FIRST, "sets up, 0 s")
        clock[0] = 64.0
        shown.ended(SECOND, Ended(0, "", 1.0, 10.0))
    assert text.getvalue().splitlines() == [
        f"  0:00  {WAITS}",
        f"  1:04  [1/3] {SECOND.name}: done in 10 s, about 10 s left",
    ]


def test_long_wait_has_a_line_per_change(text: io.StringIO, clock: list[float]) -> None:
    with board(Console(file=text, soft_wrap=True, width=200)) as shown:
        for trial in (FIRST, SECOND):
            shown.stage(trial, "starts")
        ticks(shown, clock, 1)
        for trial in (FIRST, SECOND):
            shown.stage(trial, f"{WAITS}; 1 ahead")
        ticks(shown, clock, 200)
        for trial in (FIRST, SECOND):
            shown.stage(trial, WAITS)
        ticks(shown, clock, 400)
        shown.stage(FIRST, "sets up, 0 virtual s")
        ticks(shown, clock, 440)
        shown.stage(SECOND, f"waits for a core: pid {', '.join(['1234567 since 18:02'] * 10)}")
        ticks(shown, clock, 470)
    lines = text.getvalue().splitlines()
    assert lines[:4] == [
        f"  0:01  {WAITS}; 1 ahead",
        f"  3:20  {WAITS}",
        f"  6:40  {FIRST.name}: sets up, 0 virtual s; about 15 s left",
        f"  7:11  {FIRST.name}: sets up, 0 virtual s; about 10 s left",
    ]
    assert len(lines) == 5
    assert lines[4].startswith("  7:20  waits for a core: pid 1234567 since 18:02, 1234567 since")
    assert len(lines[4]) == 80 and lines[4].endswith("…")


def test_waiting_lines_are_rate_limited(text: io.StringIO, clock: list[float]) -> None:
    with board(Console(file=text, soft_wrap=True)) as shown:
        for second in range(0, 120, 5):
            shown.stage(FIRST, f"{WAITS}; {120 - second} ahead")
            shown.stage(SECOND, f"{WAITS}; {121 - second} ahead")
            ticks(shown, clock, second + 5)
    assert len(text.getvalue().splitlines()) == 4


def test_many_running_trials_fit_the_width(text: io.StringIO, clock: list[float]) -> None:
    trials = resolve.plan("fig3a", "smoke", [], replicates=4).trials()[:8]
    backend = SimulatorBackend()
    backend.parallel = 8
    expected = {trial.name: 170.0 for trial in trials}
    with Board(Console(file=text, soft_wrap=True, width=300), backend, trials, expected) as shown:
        shown.stage(trials[0], "measures, 3 of 4 virtual s")
        ticks(shown, clock, 31)
        shown.stage(trials[1], "measures, 2 of 4 virtual s")
        shown.stage(trials[2], WAITS)
        ticks(shown, clock, 62)
        for trial in trials[2:]:
            shown.stage(trial, "measures, 1 of 4 virtual s")
        ticks(shown, clock, 93)
    names = [trial.name for trial in trials]
    assert text.getvalue().splitlines() == [
        f"  0:30  {names[0]}: measures, 3 of 4 virtual s; about 3 min left",
        f"  0:31  {WAITS}",
        f"  1:02  2 trials run: {names[0]}, {names[1]}; about 3 min left",
        "  1:32  8 trials run; about 2 min left",
    ]


def test_waiting_is_one_stage_whoever_holds_the_cores(text: io.StringIO) -> None:
    with board(Console(file=text)) as shown:
        assert shown.stage(FIRST, f"{WAITS}; 1 ahead") == "waits for a core"
        assert shown.stage(FIRST, WAITS) == ""


class Terminal:
    """The command line in a terminal of so many columns; ``written`` is all that came. Runs are in
    out/."""

    def __init__(
        self, columns: int, folder: Path, *words: str, out: bool = True, **variables: str
    ) -> None:
        ours, theirs = pty.openpty()
        size = {"COLUMNS": str(columns), "LINES": "24", "TERM": "xterm", **variables}
        unset = {"NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}
        kept = {name: value for name, value in os.environ.items() if name not in unset}
        argv = [sys.executable, "-P", "-m", "qjump_mn.run", *words]
        argv += ["--out", str(folder / "out")] if out else []
        self.process = subprocess.Popen(
            argv, cwd=folder, env={**kept, **size}, stdin=theirs, stdout=theirs, stderr=theirs,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # else ignored
        )  # fmt: skip
        os.close(theirs)
        self._chunks: list[bytes] = []
        self._reader = threading.Thread(target=self._read, args=(ours,))
        self._reader.start()

    def _read(self, ours: int) -> None:
        with os.fdopen(ours, "rb", buffering=0) as stream:
            try:
                while chunk := stream.read(65536):
                    self._chunks.append(chunk)
            except OSError:  # the last of the other end was closed
                return

    @property
    def written(self) -> str:
        return b"".join(self._chunks).decode()

    def ended(self) -> tuple[int, str]:
        try:
            code = self.process.wait(300)
        finally:
            self.process.kill()
        self._reader.join()
        return code, self.written


def screen(written: str, columns: int) -> list[str]:
    """What a terminal shows in the end: of the control sequences those that lines are replaced
    with."""
    lines, row = [""], 0
    for part in written.replace("\r\n", "\n").replace("\x1b", "\0\x1b").split("\0"):
        if part.startswith("\x1b[1A"):
            row -= 1
            part = part[4:]
        elif part.startswith("\x1b[2K"):
            lines[row] = ""
            part = part[4:]
        elif part.startswith("\x1b["):
            part = part[2:].lstrip("?0123456789;")[1:]
        for character in part:
            if character == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif character != "\r":
                lines[row] += character
    assert "\0" not in "".join(lines)
    return lines


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tiny.write(tmp_path, "mine", replicates=4)
    return tmp_path


@pytest.mark.parametrize("columns", [80, 40])
def test_terminal_has_a_line_for_each_running_trial(columns: int, folder: Path) -> None:
    code, written = Terminal(columns, folder, "run", "mine", "--preset", tiny.PRESET).ended()
    assert code in (0, 1), written
    lines = [
        line
        for line in written.replace("\x1b", "\n").replace("\r", "\n").splitlines()
        if "simulates" in line
    ]
    assert lines and all(len(line.removeprefix("[2K")) < columns for line in lines)
    assert any("of 4 trials done" in line for line in written.splitlines())
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1, (
        "the cursor is there again"
    )
    shown = screen(written, columns)
    assert not [line for line in shown if "simulates" in line or "trials done" in line]
    assert sum(": done in " in line for line in shown) == 4


def test_ended_trial_shows_its_median(folder: Path) -> None:
    argv = [sys.executable, "-P", "-m", "qjump_mn.run", "run", "mine", "--preset", tiny.PRESET]
    printed = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False).stdout
    ran = Run.load(folder / "results" / "last")
    for seed in (1, 2, 3, 4):
        rows = ran.table("ping").filter(pc.field("seed") == seed)
        median = formatting.duration(
            float(np.percentile(rows["latency_us"], 50)) / 1e3, formatting.unit(ran.plan)
        )
        assert re.search(
            rf"] one/{seed}: done in \d+ s; ping: median {median}(,|$)", printed, re.MULTILINE
        )


@pytest.mark.parametrize("damaged", ["raw/ping.csv", "trial.json"])
def test_unreadable_result_is_left_to_the_analysis(damaged: str, folder: Path) -> None:
    argv = [sys.executable, "-P", "-m", "qjump_mn.run", "run", "mine", "--preset", tiny.PRESET]
    subprocess.run(argv, cwd=folder, capture_output=True, check=False)
    found = RunDirectory((folder / "results" / "last").resolve())
    trial = found.manifest.plan.trials()[0]
    assert first_median(found, trial, "us").startswith("ping: median ")
    path = found.trial(trial.name) / damaged
    assert path.is_file()
    path.write_text("nothing")
    assert first_median(found, trial, "us") == ""


def test_terminal_that_cannot_change_lines_gets_plain_ones(folder: Path) -> None:
    code, written = Terminal(
        80, folder, "run", "mine", "--preset", tiny.PRESET, TERM="dumb"
    ).ended()
    assert code in (0, 1) and "\x1b[1A" not in written and "\x1b[?25l" not in written


def test_ctrl_c_restores_the_cursor(folder: Path) -> None:
    terminal = Terminal(80, folder, "run", "mine", "--preset", tiny.PRESET, "-s", "duration=100s")
    while "simulates" not in terminal.written:
        assert terminal.process.poll() is None, terminal.written
        time.sleep(0.05)
    terminal.process.send_signal(signal.SIGINT)
    code, written = terminal.ended()
    assert code == 130 and written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1
    shown = screen(written, 80)
    assert not [line for line in shown if "simulates" in line]
    assert "interrupted; everything that was started has been ended" in "".join(shown)


def stages(trial: Trial, unit: str = "s") -> tuple[Stages, list[str]]:
    lines: list[str] = []
    return Stages(trial, lines.append, unit=unit), lines


def test_emulated_trial_reports_stage_and_clock() -> None:
    trial, lines = stages(FIRST, unit="virtual s")
    for second in (7.0, 8.0, 9.0):
        trial.clock(second)
    trial.line(MEASURING)
    for second in (10.0, 12.0, 14.0):  # the last is later than the trial's duration
        trial.clock(second)
    assert FIRST.duration_ns == 4 * 10**9
    assert lines == [
        "sets up, 0 virtual s",
        "sets up, 1 virtual s",
        "sets up, 2 virtual s",
        "measures, 0 of 4 virtual s",
        "measures, 1 of 4 virtual s",
        "measures, 3 of 4 virtual s",
        "measures, 1 virtual s more than 4",
    ]


def test_short_trial_is_shown_with_enough_digits() -> None:
    trial, lines = stages(resolve.plan("fig3a", "paper", []).trials()[0])
    trial.clock(0.4)
    trial.line(MEASURING)
    trial.clock(0.525)
    assert lines[-1] == "measures, 0.125 of 0.25 s"


def test_other_lines_pass_unchanged() -> None:
    trial, lines = stages(FIRST)
    trial.line("waits for a core: pid 12 has it")
    assert lines == ["waits for a core: pid 12 has it"]


def test_on_the_host_the_clock_is_the_hosts() -> None:
    trial, lines = stages(FIRST)
    with ticking(trial):
        trial.line(MEASURING)
    assert lines == ["sets up, 0 s", "measures, 0 of 4 s"]


def test_closed_pipe_does_not_end_the_run(folder: Path) -> None:
    argv = [sys.executable, "-P", "-m", "qjump_mn.run", "run", "mine", "--preset", tiny.PRESET]
    running = subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None and running.stderr is not None
    running.stdout.readline()
    running.stdout.close()
    said = running.stderr.read()
    assert (running.wait(120), said) == (0, "")
    assert (folder / "results" / "last" / "report.html").is_file()


@pytest.mark.parametrize("columns", [80, 40])
def test_waiting_line_is_cut_to_the_width(columns: int) -> None:
    shown = board(Console(file=io.StringIO(), width=columns), 34.0)
    shown.stage(FIRST, "waits for a core: pid 24711 since 18:02, 24712 since 18:05; 4 ahead")
    first, last = (str(one) for one in shown._lines().renderables)
    if columns == 80:
        assert (
            first
            == f"{FIRST.name}: waits for a core: pid 24711 since 18:02, 24712 since 18:05; 4 ahead"
        )
    assert len(first) < columns and (columns == 80 or first.endswith("…"))
    assert last == "0 of 3 trials done, the others wait"
    shown.stage(FIRST, "starts")
    assert str(shown._lines().renderables[-1]).endswith(" left")


def test_no_share_is_shown_for_less_than_a_second() -> None:
    shown = board(Console(file=io.StringIO(), width=80), 0.2)
    shown.stage(FIRST, "simulates")
    assert str(shown._lines().renderables[0]) == f"{FIRST.name}: simulates"
