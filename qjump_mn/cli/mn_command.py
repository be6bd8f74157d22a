"""``mn``: Mininet's mn, a script or any command, in the machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, Annotated

import typer

from qjump_mn.cli.options import names
from qjump_mn.console import err
from qjump_mn.errors import UsageError, reason_of

CONTEXT = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""The first word that is not ours, and all behind it, belong to the command."""


def mn(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORDS",
            help="options of Mininet's mn, or a script and its arguments, or -- and any command; "
            "without words, Mininet's prompt",
            show_default=False,
        ),
    ] = None,
    link: Annotated[
        str, typer.Option(metavar="CLASS", help="qjwire, qjtbf or qjtc in place of TCLink")
    ] = "",
    switch: Annotated[str, typer.Option(metavar="CLASS", help="qjprio, for Mininet's mn")] = "",
    host: Annotated[str, typer.Option(metavar="CLASS", help="qjvlan, for Mininet's mn")] = "",
    packages: Annotated[
        str, typer.Option(metavar="NAME,NAME", help="add these Debian packages to the machine")
    ] = "",
    mininet: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="a checkout of Mininet, in place of Debian's 2.3.0",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--in",
            metavar="FOLDER",
            help="folder that goes into the machine; without it, the script's, or the current one",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="folder in which the run gets its own folder")
    ] = Path("results"),
    seed: Annotated[
        str, typer.Option(metavar="N", help="seed of random numbers; 1..3 runs it three times")
    ] = "1",
    deadline: Annotated[
        str,
        typer.Option(metavar="TIME", help="end it then, with exit code 124, on its own clock"),
    ] = "600s",
    memory: Annotated[str, typer.Option(metavar="SIZE", help="the machine's memory")] = "1G",
    stdin: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="type its lines, each when the command waits for one",
            show_default=False,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="write what was typed, for --replay", show_default=False),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="type what --record wrote", show_default=False),
    ] = None,
) -> None:
    """Run Mininet's mn, a Mininet script or any command in the machine.

    Our options come first. The command's folder goes in, what it writes comes out into the run, and
    its exit code is passed on. The machine's clock stands still while code runs and while a person
    types, so the same command gives the same bytes. It needs no root and has no internet.
    """
    from qjump_mn.mn import request as requests
    from qjump_mn.mn import session, typed

    options = requests.Options(
        link=link,
        switch=switch,
        host=host,
        packages=names([packages] if packages else None, "--packages"),
        mininet=mininet,
        folder=folder,
        out=out,
        seeds=seed,
        deadline=deadline,
        memory=memory,
    )
    if stdin and replay:
        raise UsageError("--stdin and --replay both say what is typed: use one of them")
    _check_order(words or [], context)
    request = requests.of_words(words or (), options, typed.read(replay) if replay else None)
    argv = ("qjump-mn", *sys.argv[1:])
    with _opened(stdin) as file:
        code = session.run(request, out, argv, err, stdin=file.fileno(), record=record)
    raise typer.Exit(code)


def _check_order(words: list[str], context: typer.Context) -> None:
    """Raise :class:`UsageError` for an option of ours behind one of Mininet's."""
    if not words or not words[0].startswith("-"):
        return
    ours = {word for parameter in context.command.params for word in parameter.opts}
    for word in words:
        if (option := word.partition("=")[0]) in ours - {"--link", "--switch", "--host"}:
            raise UsageError(
                f"{option} is an option of qjump-mn, and here it would be Mininet's: write it "
                f"before {words[0]}"
            )


def _opened(path: Path | None) -> IO[bytes]:
    """Open the file that is typed in, or standard input."""
    try:
        return path.open("rb") if path else os.fdopen(os.dup(0), "rb")
    except OSError as error:
        raise UsageError(f"{path or 'standard input'} cannot be read: {reason_of(error)}") from None
