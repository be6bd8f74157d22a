"""``list``: a row for each experiment and scheme; a file that is broken does not hide the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from qjump_mn import costs, session
from qjump_mn.backends import registry
from qjump_mn.errors import UsageError
from qjump_mn.model import loading, resolve
from qjump_mn.results import wording

PAPERS = {"QJump (NSDI'15), ": "", "Hadoop/ECN paper (CLUSTER'17, extended), ": "CLUSTER'17, "}
"""What is said instead of the papers that most figures are of."""
HEADS = ("experiment", "preset", "time", "memory", "what it shows")


def show(out: Console) -> None:
    """Print both tables: 80 columns are enough for a row of the first, which a file has whole."""
    rows, broken = [], []
    for name in loading.names("experiments"):
        try:
            rows.append(_experiment(name))
        except UsageError as error:
            broken.append(f"{name} is broken: {error}")
    for line in _lines([HEADS, *rows], out.width if out.is_terminal else None):
        out.print(line, markup=False)
    for line in broken:
        out.print(line, markup=False)
    out.print(
        "\nThe preset is the usual one; time and memory are of it, on this machine. "
        "qjump-mn explain NAME tells the others.\n",
        markup=False,
    )
    schemes = Table(box=None, pad_edge=False)
    schemes.add_column("scheme", no_wrap=True)
    schemes.add_column("what it is")
    for name in loading.names("schemes"):
        try:
            about = loading.scheme(name).about
        except UsageError as error:
            about = f"broken: {error}"
        schemes.add_row(name, Text(about))
    out.print(schemes)


def _lines(rows: Sequence[tuple[str, ...]], width: int | None) -> Iterator[str]:
    """The rows, of which only what an experiment shows may be cut, to fit into ``width``."""
    *widths, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    for name, preset, time, memory, shows in rows:
        cells = (
            f"{name:<{widths[0]}}",
            f"{preset:<{widths[1]}}",
            f"{time:>{widths[2]}}",
            f"{memory:>{widths[3]}}",
        )
        left = "  ".join(cells)
        room = len(shows) if width is None else width - len(left) - 2
        yield f"{left}  {shows if len(shows) <= room else f'{shows[: room - 1]}…'}"


def _experiment(name: str) -> tuple[str, ...]:
    preset = loading.usual_preset(name)
    plan = resolve.plan(name, preset, [])
    backend = registry.make(session.backend_name(plan))
    expected = costs.expected(plan, backend)
    time = costs.told_time(expected.seconds)
    memory = wording.NONE if expected.memory_mb is None else costs.told_memory(expected.memory_mb)
    figure = plan.reproduces
    for paper, short in PAPERS.items():
        figure = figure.replace(paper, short)
    shows = plan.title if figure.startswith("none") else f"{figure}: {plan.title}"
    return name, preset, time, memory, shows
