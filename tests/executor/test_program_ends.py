"""If several programs fail, the error is about the likely cause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qjump_mn.errors import LostError
from qjump_mn.executor.program import Program, Programs
from qjump_mn.executor.shell import Shell
from qjump_mn.executor.steps import MACHINE, Finish, Start, Stop

DIES, FAILS, ENDS, STAYS = "kill -KILL $$", "echo no peer >&2; exit 1", "exit 0", "exec sleep 60"


class Stage:
    """Starts programs on this machine, and waits until those that end have ended."""

    def __init__(self, programs: Programs) -> None:
        self.programs = programs

    def start(self, host: str, does: str, *, itself: bool = True) -> Program:
        argv, output = ("sh", "-c", does), f"{host}.txt"
        program = self.programs.start(
            Start(node=MACHINE, argv=argv, output=output, shown=f"sh on {host}", itself=itself)
        )
        if does != STAYS:
            program.process.wait()
        return program

    def finish(self, program: Program, deadline_s: float) -> None:
        self.programs.end(Finish(program=program.step.output, deadline_s=deadline_s))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Programs(Shell(), tmp_path) as programs:
        yield Stage(programs)


@pytest.mark.parametrize(
    ("other", "itself", "sentence"),
    [
        (DIES, False, "sh on h1 ended with status -9 while it was needed: it printed nothing"),
        (ENDS, False, "sh on h1 ended with status 0 while it was needed: it printed nothing"),
        (DIES, True, "sh on h1 ended with status -9: it printed nothing"),
        (FAILS, True, "sh on h2 ended with status 1: no peer"),
        (ENDS, True, "sh on h2 ended with status 1: no peer"),
        (STAYS, False, "sh on h2 ended with status 1: no peer"),
    ],
)
def test_killed_program_is_the_cause(stage: Stage, other: str, itself: bool, sentence: str) -> None:
    stage.start("h1", other, itself=itself)
    client = stage.start("h2", FAILS)
    with pytest.raises(LostError) as caught:
        stage.finish(client, 10)
    assert str(caught.value) == sentence


def test_failed_program_is_the_cause_of_a_hang(stage: Stage) -> None:
    hangs = stage.start("h1", STAYS)
    stage.start("h2", FAILS)
    with pytest.raises(LostError) as caught:
        stage.finish(hangs, 0)
    assert str(caught.value) == "sh on h2 ended with status 1: no peer"


def test_terminated_server_has_not_failed(stage: Stage) -> None:
    server = stage.start("h1", STAYS, itself=False)
    stage.programs.end(Stop(program=server.step.output, deadline_s=10))
    assert server.process.returncode == -15
    assert not server.failure
    with pytest.raises(LostError, match=r"^sh on h2 ended with status 1"):
        stage.finish(stage.start("h2", FAILS), 10)
