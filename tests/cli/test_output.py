"""What the command line prints: no escape sequence with NO_COLOR, and no spaces at the ends of
lines."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from qjump_mn.console import Output, Table
from qjump_mn.process.variables import settle
from tests.backends.test_progress import Terminal
from tests.support.processes import cli

RUN = ("run", "fig3a", "--preset", "10g", "-s", "duration=2ms", "--arms", "idle,contended")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a run in out/last."""
    return tmp_path_factory.mktemp("output")


@pytest.fixture(scope="module")
def of_run(folder: Path) -> str:
    """What a run prints in a terminal with NO_COLOR."""
    code, written = Terminal(80, folder, *RUN, NO_COLOR="1").ended()
    assert code in (0, 1, 4), written
    return written


def test_a_run_prints_no_escape_sequence(of_run: str) -> None:
    assert "] contended/1: done in " in of_run and "median" in of_run and "\x1b" not in of_run


@pytest.mark.usefixtures("of_run")
@pytest.mark.parametrize(
    "words",
    [
        ("report", "out/last"),
        ("compare", "out/last", "out/last"),
        ("list",),
        ("explain", "fig3a"),
        ("explain", "fig3a", "--all"),
        ("verify", "out/last", "--sample", "1"),
        ("machine",),
        ("run", "--help"),
        (*RUN[:-1], "idle", "-s", "link.rate=1Gbit,2Gbit", "--out", "out"),
        ("run", "fig3a", "-s", "seed=3"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_no_command_prints_an_escape_sequence(words: tuple[str, ...], folder: Path) -> None:
    code, written = Terminal(80, folder, *words, out=False, NO_COLOR="1").ended()
    assert code in (0, 1, 2, 4) and len(written) > 40 and "\x1b" not in written


@pytest.mark.usefixtures("of_run")
def test_a_terminal_has_styles_without_the_variable(folder: Path) -> None:
    """So what is asserted above can fail; an empty value is none."""
    for variables in ({}, {"NO_COLOR": ""}):
        assert (
            "\x1b[1m"
            in Terminal(80, folder, "report", "out/last", out=False, **variables).ended()[1]
        )


@pytest.mark.usefixtures("of_run")
def test_lines_of_tables_end_with_their_last_character(folder: Path) -> None:
    for words in (("list",), ("compare", "out/last", "out/last"), ("report", "out/last")):
        printed = cli(*words, cwd=folder).stdout
        table = [line for line in printed.splitlines() if "  " in line]
        assert len(table) > 5 and not [line for line in table if line.endswith(" ")]


def test_a_table_keeps_its_styles_and_empty_lines() -> None:
    text = io.StringIO()
    table = Table(title="title", title_justify="left", box=None, pad_edge=False)
    table.add_column("wide heading")
    table.add_row("a")
    table.add_row("")
    table.add_row("b ")
    Output(file=text, width=40, force_terminal=True, color_system="standard").print(table)
    assert text.getvalue() == "\x1b[3mtitle\x1b[0m\n\x1b[1mwide heading\x1b[0m\na\n\nb\n"


WIDTHS = ("", "0", "-1", "1", "x", "1e5", "999999999999")


@pytest.mark.parametrize("words", [("explain", "fig3a"), ("run", "--help")], ids=" ".join)
def test_a_width_that_makes_no_sense_is_80(words: tuple[str, ...], tmp_path: Path) -> None:
    def printed(**variables: str) -> tuple[int, str, str]:
        # How long a run takes depends on what has run here, and its length moves line breaks.
        done = cli(*words, QJUMP_MN_CACHE=str(tmp_path), **variables)
        return done.returncode, done.stdout, done.stderr

    expected = printed(COLUMNS="80", LINES="24")
    assert expected[0] == 0 and printed(COLUMNS="60") != expected
    for columns, lines in (("0", "0"), ("1", "x")):
        assert printed(COLUMNS=columns, LINES=lines) == expected


@pytest.mark.parametrize("value", WIDTHS)
def test_a_size_that_makes_no_sense_is_unset(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"COLUMNS": value, "LINES": "24", "HOME": "/"})
    settle([])
    assert os.environ == {"LINES": "24", "HOME": "/"}
