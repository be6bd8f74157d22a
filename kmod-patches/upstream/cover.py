"""The cover letter of the series. Its figures come from the tables in docs/qdisc.md and
docs/qdisc-cost.md."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from upstream import single

TEXT = Path(__file__).with_name("texts") / "cover.txt"

_COLUMNS = ("most", "below", "lost", "quarters", "message", "tcp4", "tcp16", "urgent")
_KERNEL, _OF_BPF = "6.12", "7"
"""The kernels whose costs the letter gives: ours, and one that supports BPF qdiscs."""
_WIDTH = 72


def letter(documents: Path, module: str) -> str:
    """Return the letter for a module with this text; the first line is the subject.

    Raises TextError if a table that it is filled from lacks a row or column.
    """
    compared = rows(single.read(documents / "qdisc.md"), "what limits level 4")
    costs_page = single.read(documents / "qdisc-cost.md")
    costs = rows(costs_page, "a packet that leaves at once")
    kernels = heads(costs_page, "a packet that leaves at once")
    kernel = re.search(r"Linux (7\.\d+)", costs_page)
    found = {"kernel": kernel[1] if kernel else "", "lines": str(module.count("\n"))}
    for name, cells in compared.items():
        found |= {f"{name}, {key}": cell for key, cell in zip(_COLUMNS, cells, strict=True)}
    for name, cells in costs.items():
        found[f"{name}, instructions"] = cells[
            kernels.index(_OF_BPF if name.startswith("bpf_qdisc") else _KERNEL)
        ]
    if device := re.search(r"^Linux 6\.12\S*: noqueue (\d+)", costs_page, re.M):
        limited = found.get("qjump_10ms_level0, instructions")
        found["whole"] = str(int(device[1]) + int(limited)) if limited else ""
    for name in ("prio", "ets"):
        own, whole = (
            found.get(f"{one}, instructions") for one in ("qjump_priorities", f"{name}8_level0")
        )
        if own and whole:
            found[f"of {name}"] = f"{int(own) / int(whole):.0%}"

    def figure(match: re.Match[str]) -> str:
        if match[1] not in found:
            raise single.TextError(
                f"cover.txt refers to {match[1]!r}, which is in no table of the documents"
            )
        return found[match[1]]

    # Wrap again: figures are longer or shorter than their placeholders.
    paragraphs = re.sub(
        r"\{([^{}]+)\}", figure, single.read(TEXT).replace("\n", " ").replace("  ", "\n\n")
    ).split("\n\n")
    return (
        "\n\n".join(textwrap.fill(one, _WIDTH, break_on_hyphens=False) for one in paragraphs) + "\n"
    )


def heads(text: str, first: str) -> list[str]:
    """Return the headings after the first of the table whose first heading is `first`."""
    match = re.search(rf"^\| {re.escape(first)} \|(.*)\|$", text, re.M)
    if not match:
        raise single.TextError(f"no table of the documents begins with {first!r}")
    return [cell.strip() for cell in match[1].split("|")]


def rows(text: str, first: str) -> dict[str, list[str]]:
    """Return the other cells of each row of that table, by the cell in the first column."""
    lines = text[text.index(f"| {first} |") :].partition("\n\n")[0].splitlines()[2:]
    split = (
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    )
    return {name: cells for name, *cells in split}
