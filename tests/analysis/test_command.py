"""The analysis as a process: what its options ask for, and its exit codes."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qjump_mn.analysis import __main__ as command
from qjump_mn.analysis import pipeline, preload, terminal
from qjump_mn.errors import MachineError
from qjump_mn.report import pdf
from qjump_mn.results import reference


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is called, with what, instead of an analysis with exit code 4."""
    calls: list[Any] = []
    run = SimpleNamespace(path=Path("the-run"))
    analysed = SimpleNamespace(
        run=run, outcome=SimpleNamespace(exit_code=4), manifest="manifest", results="results"
    )

    def called(name: str, result: Any = None) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            calls.append((name, *(one for one in arguments if one is not analysed), options))
            return result

        return call

    monkeypatch.setattr(pdf, "browser", called("browser"))
    monkeypatch.setattr(pdf, "write", called("pdf"))
    monkeypatch.setattr(pipeline, "analyse", called("analyse", analysed))
    monkeypatch.setattr(reference, "write", called("reference", "written"))
    monkeypatch.setattr(preload, "load", called("load"))
    monkeypatch.setattr(
        terminal, "show", lambda output, made, verbose: calls.append(("show", verbose))
    )
    return calls


ANALYSED: list[Any] = [("analyse", Path("a"), {})]


@pytest.mark.parametrize(
    ("arguments", "calls"),
    [
        (["a"], [*ANALYSED, ("show", False)]),
        (["a", "-v"], [*ANALYSED, ("show", True)]),
        (["a", "--verbose"], [*ANALYSED, ("show", True)]),
        (
            ["a", "--pdf"],
            [("browser", {}), *ANALYSED, ("pdf", Path("the-run"), {}), ("show", False)],
        ),
        (
            ["a", "--reference", "f"],
            [
                *ANALYSED,
                ("reference", Path("f"), "manifest", SimpleNamespace(exit_code=4), "results", {}),
                ("show", False),
            ],
        ),
    ],
)
def test_options_write_and_show(arguments: list[str], calls: list[Any], done: list[Any]) -> None:
    assert command.main(arguments) == 4
    assert done == calls


@pytest.mark.parametrize(
    ("text", "code", "calls"),
    [("\n", 4, [("load", {}), *ANALYSED, ("show", False)]), ("", 0, [("load", {})])],
)
def test_waiting_one_analyses_when_it_is_told(
    text: str, code: int, calls: list[Any], done: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert command.main(["a", "--wait"]) == code
    assert done == calls


def test_error_is_one_sentence_and_its_code_or_with_debug_itself(
    done: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(run: Path) -> None:
        raise MachineError("the disk is full")

    monkeypatch.setattr(pipeline, "analyse", fail)
    assert command.main(["a"]) == 3
    assert capsys.readouterr().err.endswith("the disk is full\n")
    with pytest.raises(MachineError):
        command.main(["a", "--debug"])
