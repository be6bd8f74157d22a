"""``list``: print a row for each experiment and scheme, even if some of their files are broken."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from qjump_mn import resolve, session
from qjump_mn.backends import estimate, registry
from qjump_mn.console import Table, unfolded_width
from qjump_mn.errors import UsageError
from qjump_mn.model import suggestions
from qjump_mn.programs import user_programs
from qjump_mn.resolve import loading
from qjump_mn.results import formatting

PAPERS = {"QJump (NSDI'15), ": "", "Hadoop/ECN paper (CLUSTER'17, extended), ": "CLUSTER'17, "}
"""Short names for the papers that most figures come from."""
MIN_WIDTH = 20
"""The smallest width of the last column, in columns of text."""
LISTS = ("experiments", "schemes")
HEADS = ("experiment", "preset", "time", "memory", "what it shows")


def show(out: Console, what: str = "") -> None:
    """Print the table ``what``, one of ``LISTS``, or both if it is empty.

    Rows are wrapped on a terminal only. Raises :class:`UsageError` for another table.
    """
    if what and what not in LISTS:
        raise UsageError(f"there is no list of {what!r}: {suggestions.nearest(what, list(LISTS))}")
    if what != "schemes":
        _show_experiments(out)
    if not what:
        out.print("")
    if what != "experiments":
        _show_schemes(out)


def _show_experiments(out: Console) -> None:
    rows, broken = [], loading.misnamed("experiments")
    for name in loading.names("experiments"):
        try:
            rows.append(_experiment(name))
        except user_programs.NotImportedError:
            broken.append(f"{name} uses a program of its own: see  qjump-mn explain {name}")
        except UsageError as error:
            broken.append(f"{name} is broken: {error}")
    for line in (*_lines([HEADS, *rows], out.width if out.is_terminal else None), *broken):
        out.print(line, markup=False)
    out.print(
        "\nTime and memory are for the usual preset: as in its last run on this machine, else "
        "estimated. qjump-mn explain NAME shows the other presets.",
        markup=False,
    )


def _show_schemes(out: Console) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("scheme", no_wrap=True)
    table.add_column("what it is")
    for name in loading.names("schemes"):
        try:
            about = loading.scheme(name).about
        except UsageError as error:
            about = f"broken: {error}"
        table.add_row(name, Text(about))
    if not out.is_terminal:
        table.width = unfolded_width(out, table)
    out.print(table)


def _lines(rows: Sequence[tuple[str, ...]], width: int | None) -> Iterator[str]:
    """Yield the lines of a table, with its last column wrapped to fit into ``width``, if any."""
    *widths, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    for name, preset, time, memory, shows in rows:
        cells = (
            f"{name:<{widths[0]}}",
            f"{preset:<{widths[1]}}",
            f"{time:>{widths[2]}}",
            f"{memory:>{widths[3]}}",
        )
        left = f"{'  '.join(cells)}  "
        room = len(shows) if width is None else max(width - len(left), MIN_WIDTH)
        first, *others = textwrap.wrap(shows, room) or [""]
        yield left + first
        yield from (" " * len(left) + line for line in others)


def _experiment(name: str) -> tuple[str, ...]:
    preset = loading.usual_preset(name)
    plan = resolve.plan(name, preset, [])
    backend = registry.make(session.backend_name(plan))
    seconds, memory_mb = estimate.run(plan, backend)
    time = estimate.time_in_words(seconds)
    memory = formatting.NONE if memory_mb is None else estimate.memory_in_words(memory_mb)
    figure = plan.shown.reproduces
    for paper, short in PAPERS.items():
        figure = figure.replace(paper, short)
    shows = plan.shown.title if figure.startswith("none") else f"{figure}: {plan.shown.title}"
    return name, preset, time, memory, shows
