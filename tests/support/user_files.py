"""A user's own files, such as experiments/mine.toml: the fixture `own` writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.processes import CHECKOUT

Write = Callable[[str, str], Path]
"""Write a text into a file of the user's folder, and return its path."""

FIG3A = (CHECKOUT / "experiments/fig3a.toml").read_text()
