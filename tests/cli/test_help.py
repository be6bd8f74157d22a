"""``--help``: what it shows, how wide it is, and examples that the parser takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from bench import manual
from qjump_mn.cli import commands, run_command
from qjump_mn.cli.completion import kinds
from qjump_mn.cli.examples import EXAMPLES, Example
from qjump_mn.cli.options import names
from qjump_mn.cli.run_command import options_of
from qjump_mn.resolve import loading
from qjump_mn.session import Request
from tests.cli.test_options import called

PARSER = commands.parser()


def every(
    command: Any = PARSER, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command with its words."""
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from every(below, (*words, name))


COMMANDS = dict(every())
LINES = [
    pytest.param(words, one, id=one.line)
    for words in COMMANDS
    for one in EXAMPLES.get(" ".join(words), ())
]


def test_every_command_has_two_examples() -> None:
    assert {" ".join(words) for words in COMMANDS} == set(EXAMPLES)
    assert all(len({example.line for example in each}) == 2 for each in EXAMPLES.values())


def parsed(line: str) -> tuple[list[str], Any]:
    """The words of a command line, as a shell has them, and the context of its last command."""
    words = shlex.split(line)
    if words[0] == "sudo":
        words.pop(0)
    while "=" in words[0]:
        assert words.pop(0).partition("=")[0] in manual.VARIABLES
    assert words[0] == "qjump-mn"
    context = PARSER.make_context("qjump-mn", words[1:])
    command = PARSER
    while rest := [*context._protected_args, *context.args]:
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    return words, context


@pytest.mark.parametrize(("words", "example"), LINES)
def test_the_parser_takes_an_example(words: tuple[str, ...], example: Example) -> None:
    _, context = parsed(example.line)
    path = tuple(context.command_path.split()[1:])
    assert path[: len(words)] == words and path[0] in run_command.VERBS


def names_what_exists(line: str) -> None:
    """Check that a command line's experiments, presets, arms, schemes and settings make a plan, and
    that ``new`` knows its kind."""
    typed, context = parsed(line)
    if context.command.name in ("run", "explain"):
        given = options_of(["qjump-mn", "run", *typed[2:]]) if typed[1] == "run" else context.params
        name = given["experiment"]
        Request(
            name,
            given["preset"] or loading.usual_preset(name),
            tuple(given["settings"]),
            arms=names(given.get("arms")),
            schemes=names(given.get("schemes")),
        ).plan()
    if context.command.name == "new":
        assert context.params["kind"] in kinds("")


@pytest.mark.parametrize(("words", "example"), LINES)
def test_an_example_names_what_there_is(words: tuple[str, ...], example: Example) -> None:
    names_what_exists(example.line)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "qjump-mn")
def test_help_is_plain_and_fits_a_terminal(words: tuple[str, ...]) -> None:
    code, text, _ = called(*words, "--help", COLUMNS="80")
    assert code == 0 and text.isascii() and "env var" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert not [
        line for line in text.splitlines() if line.endswith("...") and not line.startswith("Usage")
    ]
    examples = text.partition("  Examples:\n")[2].splitlines()
    for example in EXAMPLES[" ".join(words)]:
        place = examples.index(f"    {example.line}")
        below = " ".join(line.strip() for line in examples[place + 1 :])
        assert below.startswith(example.does)


def test_help_says_how_variables_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so they are, for every option of every command."""
    text = re.sub(r"\s+", " ", called("--help")[1])
    rule = "Each option may be an environment variable: QJUMP_MN_RUN_PRESET is --preset of run."
    assert rule in text
    options = 0
    for words, command in COMMANDS.items():
        for option in command.params:
            variable = "_".join((commands.VARIABLES, *words, option.name)).replace("-", "_").upper()
            if option.param_type_name == "option":
                monkeypatch.setenv(variable, "1")
                context = typer.Context(command, info_name=" ".join(words))
                context.auto_envvar_prefix = (
                    "_".join((commands.VARIABLES, *words)).replace("-", "_").upper()
                )
                assert option.resolve_envvar_value(context) == "1"
                options += 1
    assert options > 30
