"""Print the end of a run: the arms, one sentence, and where everything lies."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from qjump_mn.analysis.pipeline import Analysed
from qjump_mn.console import Table, unfolded_width
from qjump_mn.errors import command
from qjump_mn.model.plan import Plan
from qjump_mn.report import pdf
from qjump_mn.results import contents, formatting, remarks, result_tables, summary
from qjump_mn.results.outcome import ArmSummary, Comparison, Outcome

COLOURS = {
    "REPRODUCED": "green",
    "DIRECTION ONLY": "cyan",
    "PARTLY": "yellow",
    "NOT REPRODUCED": "red",
    "INVALID": "magenta",
    "NOT RUN": "dim",
}

LEAST = {"arm": 20, "scheme": 12}
"""Longer names are folded, but to no narrower columns than these."""
GAP = 2
"""So many spaces are between two columns."""
MAX_NAMED = 3
"""So many missing trials are named for each reason, unless everything is asked for."""


def show(console: Console, analysed: Analysed, *, verbose: bool = False) -> None:
    """Print the summary, or with ``verbose`` everything; paths stand alone on their lines, whole,
    so that they can be copied."""
    plan, outcome = analysed.manifest.plan, analysed.outcome
    console.print(Text(plan.shown.title, style="bold"))
    if any(arm.done for arm in outcome.arms):
        for table in arms_tables(
            plan, outcome.arms, console.width if console.is_terminal else None
        ):
            _print_unfolded(console, table)
    if verbose:
        _show_details(console, plan, outcome)
    console.print(Text(summary.of(plan, outcome).sentence), soft_wrap=not console.is_terminal)
    for sentence in () if verbose else outcome.alike:
        console.print(Text(sentence), soft_wrap=not console.is_terminal)
    if not verbose and outcome.exit_code:
        _print_unfolded(console, _failed(outcome))
    if outcome.missing:
        console.print(
            Text(f"Missing: {len(outcome.missing)} of {len(plan.trials())} trials", style="bold")
        )
        for line in _missing(outcome, verbose=verbose):
            console.print(Text(line), soft_wrap=not console.is_terminal)
        console.print(
            Text(f"Run what is missing:  {command('resume', analysed.run.path)}"), soft_wrap=True
        )
    for line in filter(None, map(formatting.missing_glyphs, outcome.drawings)):
        console.print(Text(line), soft_wrap=not console.is_terminal)
    for what, path in _paths(analysed):
        console.print(Text.assemble((f"{what:<8}", "bold"), path), soft_wrap=True)


def _print_unfolded(console: Console, table: Table) -> None:
    """Print a table; in a file it has room, and nothing of it is folded."""
    if not console.is_terminal:
        table.width = max(console.width, unfolded_width(console, table))
    console.print(table, crop=False)


def _show_details(console: Console, plan: Plan, outcome: Outcome) -> None:
    """Print what the report has, too: remarks, published values, verdicts, fidelity, reference
    run."""
    for sentence in remarks.of(plan, outcome):
        console.print(Text(sentence))
    if outcome.beside is not None:
        console.print(_beside(outcome.beside))
    console.print(_verdicts(outcome))
    console.print(Text.assemble(("Fidelity ", "bold"), formatting.fidelity(outcome)))
    idle = next((check.text for check in outcome.checks if check.name == "idle RTT"), None)
    if idle is not None:
        console.print(Text(f"  idle RTT: {idle}"))
    console.print(Text.assemble(("Reference: ", "bold"), outcome.reference), soft_wrap=True)


def _failed(outcome: Outcome) -> Table:
    """Print the claims that do not hold, or cannot be judged because the run is invalid."""
    table = Table(pad_edge=False, box=None, show_header=False)
    table.add_column("verdict", no_wrap=True)
    table.add_column("value", no_wrap=True)
    table.add_column("claim", overflow="fold")
    for row in outcome.verdicts:
        if row.verdict in ("PARTLY", "NOT REPRODUCED", "INVALID"):
            verdict = Text(row.verdict, style=COLOURS[row.verdict])
            table.add_row(verdict, formatting.value(row), Text(row.statement))
    return table


def _missing(outcome: Outcome, *, verbose: bool) -> Iterator[str]:
    """Name the missing trials with their reasons; without ``verbose`` a line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for name, why in outcome.missing.items():
        by_reason.setdefault(f"{name}: {why}" if verbose else why, []).append(name)
    for why, names in by_reason.items():
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        yield f"  {why}" if verbose else f"  {', '.join(names[:MAX_NAMED])}{more}: {why}"


def arms_tables(
    plan: Plan, arms: Iterable[ArmSummary], width: int | None = None
) -> Iterator[Table]:
    """Return tables with a row for each arm, with medians over its seeds.

    Arms without a common column have tables of their own, of which the first has a title. Columns
    that do not fit into ``width`` go into tables below, again with the arms' names; rich would
    shorten the names instead.
    """
    title = "Arms: medians of the replicates"
    for block in result_tables.blocks(plan, arms):
        labels, schemes = (
            [arm.label for arm, _ in block.rows],
            [arm.scheme for arm, _ in block.rows],
        )
        columns = [
            Column(
                head.replace(": ", ":\n").replace(", ", ",\n"),
                [cells[place] for _, cells in block.rows],
            )
            for place, head in enumerate(block.heads)
        ]
        columns.append(Column("n", [formatting.replicates(arm) for arm, _ in block.rows]))
        for part, beside in _parts(columns, labels, schemes, width):
            table = Table(title=title, title_justify="left", pad_edge=False, box=None)
            names = {"arm": labels, **({"scheme": schemes} if beside else {})}
            widths = _shared(names, None if width is None else width - _taken(part))
            for head, wide in zip(names, widths, strict=True):
                least = 12 if head == "arm" and wide is None else None
                table.add_column(head, overflow="fold", width=wide, min_width=least)
            for column in part:
                table.add_column(column.head, justify="right", no_wrap=True)
            for place in range(len(labels)):
                texts = (Text(column[place]) for column in names.values())
                table.add_row(*texts, *(column.cells[place] for column in part))
            yield table
            title = ""


class Column(NamedTuple):
    """Numbers, which are never cut, below a heading of one line or several."""

    head: str
    cells: list[str]

    @property
    def width(self) -> int:
        return max(map(cell_len, (*self.head.split("\n"), *self.cells)))

    def narrowed(self) -> Column:
        """Return the column with its heading wrapped to the width of its numbers or its longest
        word."""
        width = max(map(cell_len, (*self.head.split(), *self.cells)))
        lines = [
            part
            for line in self.head.split("\n")
            for part in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
        ]
        return self._replace(head="\n".join(lines))


def _parts(
    columns: list[Column], labels: list[str], schemes: list[str], width: int | None
) -> Iterator[tuple[list[Column], bool]]:
    """Split columns into tables that fit, and say whether the schemes fit too; without a width all
    fit."""
    arm, scheme = _least("arm", labels), _least("scheme", schemes) + GAP
    room = math.inf if width is None else width - arm
    if scheme + _taken(columns) > room:
        columns = [column.narrowed() for column in columns]
    part: list[Column] = []
    beside = True
    for column in columns:
        if part and _taken([*part, column]) + (scheme if beside else 0) > room:
            yield part, beside
            part, beside = [], False
        part.append(column)
    yield part, beside


def _taken(columns: list[Column]) -> int:
    return sum(column.width + GAP for column in columns)


def _shared(names: Mapping[str, list[str]], room: int | None) -> list[int | None]:
    """Return the widths of columns of names: the widest is narrowed first."""
    if room is None:
        return [None] * len(names)
    widths = {head: max(map(cell_len, (head, *texts))) for head, texts in names.items()}
    while sum(widths.values()) + GAP * (len(widths) - 1) > room:
        wider = [head for head, texts in names.items() if widths[head] > _least(head, texts)]
        if not wider:
            break
        widths[max(wider, key=widths.__getitem__)] -= 1
    return [*widths.values()]


def _least(head: str, texts: list[str]) -> int:
    """Return the narrowest width for a column of names."""
    return min(max(map(cell_len, (head, *texts))), LEAST[head])


def _beside(comparison: Comparison) -> Table:
    table = Table(
        title="Side by side, in full-size frames of each scale's links in brackets",
        title_justify="left",
        pad_edge=False,
        box=None,
    )
    table.add_column("", overflow="fold", min_width=12)
    for head in result_tables.compared_heads(comparison):
        table.add_column(head.replace(", ", ",\n"), justify="right", overflow="fold")
    for what, *cells in result_tables.compared(comparison):
        table.add_row(Text(what), *(cell.replace(" (", "\n(") for cell in cells))
    return table


def _verdicts(outcome: Outcome) -> Table:
    table = Table(
        title="Verdicts: value, claim and its source",
        title_justify="left",
        pad_edge=False,
        box=None,
        show_header=False,
    )
    table.add_column("verdict", no_wrap=True)
    table.add_column("value", overflow="fold", max_width=18)
    table.add_column("claim", overflow="fold")
    for row in outcome.verdicts:
        cell = Text(row.statement)
        if row.note:
            cell.append(f" ({row.note})", style="italic")
        for line in (formatting.published(row), formatting.perturbed(row)):
            cell.append(f"\n{line}" if line else "")
        cell.append(f"\n{row.source} ({row.claim})", style="dim")
        table.add_row(Text(row.verdict, style=COLOURS[row.verdict]), formatting.value(row), cell)
    return table


def _paths(analysed: Analysed) -> list[tuple[str, str]]:
    run, outcome = analysed.run, analysed.outcome
    figures = [("figure", str(run.path / drawing.files["png"])) for drawing in outcome.drawings]
    names = {"report.html": "report", pdf.NAME: "report", contents.PLAYER: "player"}
    pages = [
        (kind, str(run.path / name)) for name, kind in names.items() if (run.path / name).is_file()
    ]
    return [*figures, *pages, ("run", str(run.path))]
