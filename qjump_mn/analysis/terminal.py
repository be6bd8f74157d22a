"""What the terminal shows at the end of a run: arms, verdicts, fidelity, and where everything lies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from qjump_mn.analysis.pipeline import Analysed
from qjump_mn.model.plan import Plan
from qjump_mn.report import pdf
from qjump_mn.results import remarks, tabulated, wording
from qjump_mn.results.outcome import ArmSummary, Comparison

COLOURS = {
    "REPRODUCED": "green",
    "DIRECTION ONLY": "cyan",
    "PARTLY": "yellow",
    "NOT REPRODUCED": "red",
    "INVALID": "magenta",
    "NOT RUN": "dim",
}


def show(console: Console, analysed: Analysed) -> None:
    """Print the summary; paths stand alone on their lines, whole, so that they can be copied."""
    plan, outcome = analysed.manifest.plan, analysed.outcome
    console.print(Text(plan.title, style="bold"))
    for table in arms_tables(plan, outcome.arms):
        console.print(table)
    for sentence in remarks.of(plan, outcome):
        console.print(Text(sentence))
    if outcome.beside is not None:
        console.print(_beside(outcome.beside))
    console.print(_verdicts(analysed))
    if outcome.missing:
        console.print(Text(f"Missing: {len(outcome.missing)} of {len(plan.trials())} trials", style="bold"))
        for name, why in outcome.missing.items():
            console.print(Text(f"  {name}: {why}"))
    console.print(Text.assemble(("Fidelity ", "bold"), wording.fidelity(outcome)))
    idle = next((check.text for check in outcome.checks if check.name == "idle RTT"), None)
    if idle is not None:
        console.print(Text(f"  idle RTT: {idle}"))
    console.print(Text.assemble(("Reference: ", "bold"), outcome.reference), soft_wrap=True)
    for what, path in _paths(analysed):
        console.print(Text.assemble((f"{what:<8}", "bold"), path), soft_wrap=True)


def arms_tables(plan: Plan, arms: Iterable[ArmSummary]) -> Iterator[Table]:
    """A row for each arm, with the medians over its seeds; arms without a common column stand in tables of
    their own, of which the first has a title."""
    title = "Arms: medians of the replicates"
    for block in tabulated.blocks(plan, arms):
        table = Table(title=title, title_justify="left", pad_edge=False, box=None)
        table.add_column("arm", overflow="fold", min_width=12)
        table.add_column("scheme", overflow="fold")
        for head in (*block.heads, "n"):
            table.add_column(
                re.sub("(: |, )", lambda gap: f"{gap[0].strip()}\n", head), justify="right", no_wrap=True
            )
        for arm, cells in block.rows:
            table.add_row(Text(arm.label), arm.scheme, *cells, wording.replicates(arm))
        yield table
        title = ""


def _beside(comparison: Comparison) -> Table:
    table = Table(
        title="Side by side, in full-size frames of each scale's links in brackets",
        title_justify="left",
        pad_edge=False,
        box=None,
    )
    table.add_column("", overflow="fold", min_width=12)
    for head in tabulated.compared_heads(comparison):
        table.add_column(head.replace(", ", ",\n"), justify="right", overflow="fold")
    for what, *cells in tabulated.compared(comparison):
        table.add_row(Text(what), *(cell.replace(" (", "\n(") for cell in cells))
    return table


def _verdicts(analysed: Analysed) -> Table:
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
    for row in analysed.outcome.verdicts:
        cell = Text(row.statement)
        if row.note:
            cell.append(f" ({row.note})", style="italic")
        for line in (wording.published(row), wording.perturbed(row)):
            cell.append(f"\n{line}" if line else "")
        cell.append(f"\n{row.source} ({row.claim})", style="dim")
        table.add_row(Text(row.verdict, style=COLOURS[row.verdict]), wording.shown(row.shown), cell)
    return table


def _paths(analysed: Analysed) -> list[tuple[str, str]]:
    run, outcome = analysed.run, analysed.outcome
    figures = [("figure", str(run.path / drawing.files["png"])) for drawing in outcome.drawings]
    printed = run.path / pdf.NAME
    pages = [run.path / "report.html", *([printed] if printed.is_file() else [])]
    return [*figures, *(("report", str(page)) for page in pages), ("run", str(run.path))]
