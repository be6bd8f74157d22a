"""A console whose text can be read."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from qjump_mn.analysis import pipeline, terminal


class Screen(Console):
    """A console that prints into `text`, plainly; ``options`` are those of rich's."""

    def __init__(self, width: int = 80, **options: Any) -> None:
        plain = {"highlight": False, "soft_wrap": True, **options}
        super().__init__(file=io.StringIO(), width=width, **plain)

    @property
    def text(self) -> str:
        assert isinstance(self.file, io.StringIO)
        return self.file.getvalue()


def ending(
    analysed: pipeline.Analysed, width: int = 80, *, is_terminal: bool = True, verbose: bool = False
) -> str:
    """What a run ends with, without its colours."""
    plain = {"soft_wrap": False, "markup": False, "record": True, "force_terminal": is_terminal}
    screen = Screen(width, **plain)
    terminal.show(screen, analysed, verbose=verbose)
    return screen.export_text()
