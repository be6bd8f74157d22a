"""The tutorial's section on the simulator's own package, cell by cell, with the package that is
built here."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("package")]

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "tutorial.ipynb"


def test_its_cells_run_and_show_what_its_text_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    cells = [
        cell
        for cell in json.loads(NOTEBOOK.read_text())["cells"]
        if cell["id"].startswith("simulator-code")
    ]
    names: dict[str, Any] = {"plt": plt}  # of an earlier cell
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        for cell in cells:
            exec("".join(cell["source"]), names)
    assert len(cells) == 3
    tcp, dctcp = (names["outcomes"][scheme] for scheme in ("tcp", "dctcp"))
    dropped = [int(count) for count in re.findall(r"([0-9]+) packets dropped", said.getvalue())]
    assert dropped[:2] == [tcp.counters["full"].data, dctcp.counters["full"].data]
    assert len(dropped) == 3
    # TCP fills the queue until it drops, DCTCP keeps it short.
    port = [to for _, to in tcp.series.ports].index(("host", 0))
    waits = {
        name: outcome.series.queued[:, port].mean() / 1500
        for name, outcome in names["outcomes"].items()
    }
    assert (
        tcp.counters["full"].data > dctcp.counters["full"].data
        and waits["tcp"] > 2 * waits["dctcp"]
    ), waits
    queue, window = names["queue"], names["window"]
    assert len(queue.lines) == len(window.lines) == 2
    assert max(queue.lines[0].get_ydata()) <= 151
    plt.close(names["figure"])
