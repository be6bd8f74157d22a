"""Print to the terminal, a pipe or a file."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import rich.table
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment


class Output(Console):
    """A console that keeps to NO_COLOR and highlights nothing.

    Rich only leaves out colours then; bold and italic text are escape sequences, too. See no-color.org.
    """

    def __init__(self, **options: Any) -> None:
        color_system = None if os.environ.get("NO_COLOR") else "auto"
        super().__init__(**{"highlight": False, "emoji": False, "color_system": color_system, **options})


class Table(rich.table.Table):
    """A table whose lines end with their last character, where rich pads them with spaces."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in Segment.split_lines(super().__rich_console__(console, options)):  # type: ignore[arg-type]
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
            yield from line
            yield Segment.line()


MAX_COLUMNS = 1000
"""The most columns of text that a table may have."""


def unfolded_width(console: Console, table: rich.table.Table) -> int:
    """How many columns the table has with nothing folded, whatever the width of the terminal."""
    return console.measure(table, options=console.options.update_width(MAX_COLUMNS)).maximum


class _Standard(Output):
    """Standard output, which may be a pipe whose reader ends first, as `head` does."""

    def on_broken_pipe(self) -> None:
        """Go on without printing: rich would end the run, which nobody asked for."""
        self.quiet = True
        # The analysis, a process of its own, prints to the same handle.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


def accept_everything() -> None:
    """Print a question mark for what the encoding of a terminal has not, such as a dash in Latin-1, where
    Python would end with an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


out = _Standard(soft_wrap=True)
err = Output(stderr=True, soft_wrap=True)
