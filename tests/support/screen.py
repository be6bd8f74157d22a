"""A console whose text can be read."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console


class Screen(Console):
    """A console that prints into `text`, plainly; ``options`` are those of rich's."""

    def __init__(self, width: int = 80, **options: Any) -> None:
        plain = {"highlight": False, "soft_wrap": True, **options}
        super().__init__(file=io.StringIO(), width=width, **plain)

    @property
    def text(self) -> str:
        assert isinstance(self.file, io.StringIO)
        return self.file.getvalue()
