"""Ctrl-C and SIGTERM at every stage: all ends at once, nothing starts, one sentence, and it can go
on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from qjump_mn.guest.cores import core
from qjump_mn.process import temp_dirs
from qjump_mn.process.processes import is_alive, tag
from qjump_mn.results import directory
from qjump_mn.toolbox import simulator
from tests.guest import trees
from tests.support import synthetic

pytestmark = pytest.mark.fresh  # a guest whose result is taken from the store cannot be interrupted

Answer = TypeVar("Answer")
CHECKOUT = Path(__file__).resolve().parents[2]
SENTENCE = "qjump-mn: interrupted; everything that was started has been ended."
GUEST = ("fig3a", "--preset", "smoke", "--arms", "idle")
SIMULATOR = tuple("fig9 --preset smoke -s workloads.mining.count=200 --arms mining_pfabric".split())


class Started:
    """The command line in a session of its own, as in a terminal; its words go to files."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder, self._out, self._err = folder, folder / "stdout", folder / "stderr"
        # A core's folder of this test's own lies in TMPDIR.
        environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(CHECKOUT)}
        argv = [sys.executable, "-P", "-m", "qjump_mn.run", *arguments]
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # else ignored
            )  # fmt: skip
        self._guests: set[str] = set()

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def children(self, *words: str) -> list[int]:
        """The pids of its session, and of its guests, whose command line has the words."""
        pids = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(") ")[2].split()[1])
                command = (folder / "cmdline").read_text()
            except OSError:
                continue
            if parent == self.process.pid and all(word in command for word in words):
                pids.append(int(folder.name))
        return pids

    def guests(self) -> list[str]:
        """The instances that it has started, and that have not ended."""
        self._guests |= {tag(pid) for pid in self.children("initrd=fd:")}
        return [guest for guest in self._guests if guest and is_alive(guest)]

    def until(self, condition: Callable[[], Answer], limit_s: float = 600) -> Answer:
        """What the condition answers at last, which is not false."""
        end = time.monotonic() + limit_s
        while not (answer := condition()):
            assert self.process.poll() is None, self.out + self.err
            assert time.monotonic() < end, self.out + self.err
            time.sleep(0.02)
        return answer

    def is_ended_by(self, number: signal.Signals) -> str:
        """Send the signal as a terminal does, or `kill`; return the run directory that is told."""
        if number == signal.SIGINT:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)
        assert self.process.wait(60) == 130, self.err
        assert not self.guests()
        assert not list(self.folder.glob("qjump-mn-[0-9]*"))
        resume = r"(?: The run is in (.+): `qjump-mn resume \1` goes on\.)?\n"
        whole = re.fullmatch(re.escape(SENTENCE) + resume, self.err)
        assert whole, self.err
        return whole[1] or ""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., Started]]:
    with ExitStack() as stack:

        def start(*arguments: str) -> Started:
            started = Started(folder, *arguments)
            stack.callback(started.process.wait)
            stack.callback(started.process.kill)
            return started

        yield start


def resumed(start: Callable[..., Started], run: str) -> Started:
    again = start("resume", run)
    assert again.process.wait(600) in (0, 1), again.out + again.err
    path = again.folder / run
    assert {record.status for record in directory.existing(path).manifest.trials.values()} == {
        "done"
    }
    assert (path / "report.html").is_file()
    return again


@pytest.mark.guest
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_it_waits_for_a_core(start: Callable[..., Started], number: signal.Signals) -> None:
    trees.toolbox()
    with ExitStack() as cores:
        for _ in os.sched_getaffinity(0):
            cores.enter_context(core())
        waiting = start(*GUEST)
        waiting.until(lambda: f"waits for a core: pid {os.getpid()} since " in waiting.out)
        run = waiting.is_ended_by(number)
    time.sleep(0.5)
    assert not waiting.guests()
    if number == signal.SIGINT:
        resumed(start, run)


@pytest.mark.guest
def test_while_a_guest_runs(start: Callable[..., Started]) -> None:
    trees.toolbox()
    running = start(*GUEST)
    running.until(running.guests)
    time.sleep(0.3)
    resumed(start, running.is_ended_by(signal.SIGTERM))


@pytest.mark.guest
def test_while_the_simulator_runs_and_then_during_analysis(start: Callable[..., Started]) -> None:
    trees.toolbox()
    simulator.package(print)
    running = start(*SIMULATOR)
    # A trial's, which leaves its files in the run directory; a check of the plan leaves none.
    running.until(lambda: running.children("qjump_mn.simulation", "/trials/"))
    simulations = [tag(pid) for pid in running.children("qjump_mn.simulation")]
    run = running.is_ended_by(signal.SIGINT)
    assert not any(one and is_alive(one) for one in simulations)
    for number in (signal.SIGINT, signal.SIGTERM):
        judging = start("resume", run)
        # A process that becomes another program has no command line for a moment.
        pid, *_ = judging.until(lambda: judging.children("qjump_mn.analysis"))  # noqa: B023 - called at once
        analysis = tag(pid)
        time.sleep(0.5)
        assert Path(judging.folder, judging.is_ended_by(number)) == Path(judging.folder, run)
        assert not is_alive(analysis)
    resumed(start, run)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_before_a_run_directory_exists(
    start: Callable[..., Started], number: signal.Signals
) -> None:
    begun = start("explain", "fig3a")
    # It imports.
    begun.until(lambda: "site-packages" in Path(f"/proc/{begun.process.pid}/maps").read_text())
    assert begun.is_ended_by(number) == ""


def test_twice_in_a_row_is_no_traceback(start: Callable[..., Started], folder: Path) -> None:
    judging = start("report", str(synthetic.make(folder).path))
    judging.until(lambda: judging.children("qjump_mn.analysis"))
    for _ in range(20):
        os.kill(judging.process.pid, signal.SIGINT)
    assert judging.is_ended_by(signal.SIGINT) == ""


def test_what_a_killed_program_had_started_is_ended_too(folder: Path) -> None:
    code = (
        "import subprocess; from qjump_mn.process import interrupts\n"
        "interrupts.raise_interrupted()\n"
        "try: subprocess.run(['sh', '-c', 'sleep 600 & echo $!; wait'])\n"
        "except interrupts.Interrupted as interrupted: interrupts.end(interrupted)\n"
    )
    argv, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True) as program:
        assert program.stdout is not None
        sleeper = tag(int(program.stdout.readline()))
        program.send_signal(signal.SIGTERM)
        assert program.communicate(timeout=10)[1] == SENTENCE + "\n"
    assert program.returncode == 130
    pid = sleeper.split(".")[0]
    stat = Path(f"/proc/{pid}/stat")
    assert not is_alive(sleeper) or stat.read_text().rpartition(") ")[2][:1] == "Z"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_python_drops_is_raised_again(number: signal.Signals) -> None:
    code = (
        "import os, signal, time; from qjump_mn.process import interrupts\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "interrupts.raise_interrupted()\n"
        "class Dropping:\n"
        f"    def __del__(self): os.kill(os.getpid(), {int(number)})\n"
        "try:\n"
        "    Dropping()\n"
        "    time.sleep(20)\n"
        "except interrupts.Interrupted as interrupted: interrupts.end(interrupted)\n"
    )
    argv = [sys.executable, "-c", code]
    ended = subprocess.run(argv, stderr=subprocess.PIPE, text=True, check=False, timeout=15)
    assert (ended.returncode, ended.stderr) == (130, f"{SENTENCE}\n")


@pytest.mark.root
def test_scratch_folders_of_other_users_stay(folder: Path) -> None:
    with temp_dirs.folder() as living:
        left = Path(living).with_name(
            f"qjump-mn-4194304.1.{tag(os.getpid()).rpartition('.')[2]}-other"
        )
    left.mkdir()
    os.chown(left, 65534, 65534)
    assert temp_dirs.remove_left() == [] and left.is_dir()
    os.chown(left, 0, 0)
    assert temp_dirs.remove_left() == [left]


def test_only_scratch_folders_of_the_dead_are_removed(folder: Path) -> None:
    code = (
        "import os; from qjump_mn.process import temp_dirs\n"
        "folder = temp_dirs.folder(); print(folder.name, flush=True); os._exit(0)"
    )
    dead = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )
    left = Path(dead.stdout.strip())
    (left / "state").write_bytes(bytes(100))
    with temp_dirs.folder() as living, core():
        assert temp_dirs.remove_left() == [left]
        assert not left.exists()
        assert Path(living).is_dir()
    assert temp_dirs.remove_left() == []
