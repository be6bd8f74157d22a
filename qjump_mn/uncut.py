"""Tables of which nothing is cut, whatever width the terminal has or rich takes a file for."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

MOST = 1000
"""So many columns of text a table may have."""


def width(console: Console, table: Table) -> int:
    """How wide the table is with nothing folded."""
    return console.measure(table, options=console.options.update_width(MOST)).maximum
