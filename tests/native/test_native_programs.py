"""What the programs in C share: a manual page, an installation, an output that must be writable."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.native_programs import Program, check_installed, check_manual

PROGRAMS = {
    "fanin": ("stream sequence due_ns start_ns end_ns sent dropped source port sent_ns received_ns bytes", "send", "receive"),
    "memload": ("due_ns sent_ns done_ns op connection status",),
    "nsping": ("sequence sent_ns rtt_ns",),
    "q2pc": ("start_ns votes_ns end_ns retries failed orders repeated unprepared foreign", "coordinate", "serve"),
    "shuffle": ("round step source destination bytes start_ns end_ns", "worker", "master"),
}  # fmt: skip
"""By program its log's columns, and its roles."""


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(request.param, "plain", tmp_path_factory.mktemp(request.param))


def test_help_and_manual_agree(program: Program) -> None:
    check_manual(program, *PROGRAMS[program.name])


def test_installation_has_program_and_manual(program: Program, tmp_path: Path) -> None:
    check_installed(program, tmp_path)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("fanin", "send --to 127.0.0.1:5000 --interval 1000000 --duration 1000000"),
        ("fanin", "receive --port 1"),
        ("nsping", "--to 127.0.0.1 --interval 1000000 --count 1"),
        ("q2pc", "coordinate --transport udp --duration 1000000 --peers 127.0.0.1:7331"),
        ("q2pc", "serve --port 1 --transport tcp"),
    ],
)
def test_unwritable_output_is_refused_at_once(name: str, line: str, tmp_path: Path) -> None:
    program = Program(name, "plain", tmp_path)
    done = program.run(*line.split(), "--output", "/nowhere/log")
    program.check_refused(done, 1, "cannot write --output /nowhere/log (No such file or directory)")
