"""Where the command line prints."""

from __future__ import annotations

import io
import os
import sys

from rich.console import Console


class _Output(Console):
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


out = _Output(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)
