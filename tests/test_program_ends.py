"""Which of several programs that have failed is said to be lost: the one that rather is the cause."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from qjump_mn.workloads.program import Program, Programs

from qjump_mn.errors import LostError
from qjump_mn.model import resolve
from qjump_mn.programs.launch import Launch
from qjump_mn.workloads.program import Program, Programs

PLAN = resolve.plan("fig3a", "smoke", []).arms[0].workloads[0]
DIES, FAILS, ENDS, STAYS = "kill -KILL $$", "echo no peer >&2; exit 1", "exit 0", "exec sleep 60"


class Here:
    """Stands for a testbed: runs the programs on this machine, without their levels."""

    def popen(self, name: str, argv: list[str], *, stdout: IO[Any], stderr: IO[Any], folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(argv[argv.index("--") + 1 :], stdout=stdout, stderr=stderr, cwd=folder)


class Stage:
    """Starts programs, and waits until those that end have ended."""

    def __init__(self, programs: Programs, folder: Path) -> None:
        self.programs, self.folder = programs, folder

    def start(self, host: str, does: str, *, itself: bool = True) -> Program:
        launch = Launch("serve", host, ("sh", "-c", does), f"{host}.txt", itself=itself)
        program = self.programs.start(Here(), launch, PLAN, self.folder)  # type: ignore[arg-type]
        if does != STAYS:
            program.process.wait()
        return program


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Programs() as programs:
        yield Stage(programs, tmp_path)


@pytest.mark.parametrize(
    ("other", "itself", "sentence"),
    [
        (DIES, False, "sh on h1 ended with status -9 while it was needed: it said nothing"),
        (ENDS, False, "sh on h1 ended with status 0 while it was needed: it said nothing"),
        (DIES, True, "sh on h1 ended with status -9: it said nothing"),
        (FAILS, True, "sh on h2 ended with status 1: no peer"),
        (ENDS, True, "sh on h2 ended with status 1: no peer"),
        (STAYS, False, "sh on h2 ended with status 1: no peer"),
    ],
)
def test_who_was_killed_or_serves_comes_before_who_fails(stage: Stage, other: str, itself: bool, sentence: str) -> None:
    stage.start("h1", other, itself=itself)
    client = stage.start("h2", FAILS)
    with pytest.raises(LostError) as caught:
        stage.programs.finish(client, 10)
    assert str(caught.value) == sentence


def test_who_hangs_waits_for_the_one_that_failed(stage: Stage) -> None:
    hangs = stage.start("h1", STAYS)
    stage.start("h2", FAILS)
    with pytest.raises(LostError) as caught:
        stage.programs.finish(hangs, 0)
    assert str(caught.value) == "sh on h2 ended with status 1: no peer"


def test_a_server_that_was_ended_has_not_failed(stage: Stage) -> None:
    server = stage.start("h1", STAYS, itself=False)
    stage.programs.finish(server, 10)
    assert server.process.returncode == -15
    assert not server.failure
    with pytest.raises(LostError, match=r"^sh on h2 ended with status 1"):
        stage.programs.finish(stage.start("h2", FAILS), 10)
