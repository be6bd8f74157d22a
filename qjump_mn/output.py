"""Where the command line prints."""

from __future__ import annotations

import os

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


out = _Output(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)
