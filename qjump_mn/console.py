"""Print to the terminal, a pipe or a file: consoles and tables of rich with our settings."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import rich.table
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment


class Output(Console):
    """A console that highlights nothing, and prints no escape sequences if NO_COLOR is set.

    With NO_COLOR rich itself leaves out colours only, not bold and italic. See no-color.org.
    """

    def __init__(self, **options: Any) -> None:
        color_system = None if os.environ.get("NO_COLOR") else "auto"
        super().__init__(
            **{"highlight": False, "emoji": False, "color_system": color_system, **options}
        )


class Table(rich.table.Table):
    """A table without the spaces that rich adds at the end of each line."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in Segment.split_lines(super().__rich_console__(console, options)):  # type: ignore[arg-type]
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
            yield from line
            yield Segment.line()


MAX_COLUMNS = 1000
"""The greatest width of a table, in columns of text."""


def unfolded_width(console: Console, table: rich.table.Table) -> int:
    """Return the width of the table in columns if no cell is folded, whatever the terminal's
    width."""
    return console.measure(table, options=console.options.update_width(MAX_COLUMNS)).maximum


class _StandardOutput(Output):
    """Standard output, which may be a pipe whose reader ends first, as `head` does."""

    def on_broken_pipe(self) -> None:
        """Stop printing but let the run continue; rich would end the process."""
        self.quiet = True
        # The analysis process inherits this file descriptor and prints to it, too.
        null_fd = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_fd, 1)
        os.close(null_fd)


def replace_unencodable() -> None:
    """Print a question mark for a character that the terminal's encoding lacks, such as a dash in
    Latin-1, instead of ending with an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


out = _StandardOutput(soft_wrap=True)
err = Output(stderr=True, soft_wrap=True)
